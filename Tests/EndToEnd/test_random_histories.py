"""Random histories on real mounts, bounded by count; scripts/torture runs them for long."""

import os
import random

import pytest

from machine import CLOUDS
from torture.modes import history

SEED = os.environ.get("OORT_SEED") or str(random.SystemRandom().randrange(1 << 32))

MODES = ["faults", "kills", "cold", "pairs", "machines"]


@pytest.mark.parametrize("service, mode", [
    *((service, mode) for service in CLOUDS for mode in MODES),
    ("box", "machines"), ("nextcloud", "faults"), ("opencloud", "machines"), ("webdav", "faults"),
    ("sftp", "kills"), ("ftp", "kills"), ("s3", "cold")])
def test_random_history(folder, service, mode):
    # Each round of `cold` and `pairs` ends with a sync and a remount.
    usual = "40" if mode in ("cold", "pairs") else "100"
    operations = int(os.environ.get("OORT_OPERATIONS", usual))
    try:
        history(mode, folder, service, SEED, operations).run()
    except Exception as error:
        error.add_note(
            f"repeat: scripts/torture --service {service} --mode {mode} --seed {SEED} "
            f"--operations {operations}   or OORT_SEED={SEED}")
        raise
