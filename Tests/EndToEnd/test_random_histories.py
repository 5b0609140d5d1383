"""Random histories on real mounts, bounded by count; scripts/torture runs them for long."""

import os
import random

import pytest

from torture.modes import history

SEED = os.environ.get("OORT_SEED") or str(random.SystemRandom().randrange(1 << 32))


@pytest.mark.parametrize("mode", ["faults", "kills", "cold", "pairs", "machines"])
def test_random_history(folder, cloud, mode):
    # Each round of `cold` and `pairs` ends with a sync and a remount.
    usual = "40" if mode in ("cold", "pairs") else "100"
    operations = int(os.environ.get("OORT_OPERATIONS", usual))
    try:
        history(mode, folder, cloud, SEED, operations).run()
    except Exception as error:
        error.add_note(
            f"repeat: scripts/torture --service {cloud} --mode {mode} --seed {SEED} "
            f"--operations {operations}   or OORT_SEED={SEED}")
        raise
