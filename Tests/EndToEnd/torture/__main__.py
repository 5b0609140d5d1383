"""Runs random histories for as long as one likes and adds up; see scripts/torture."""

import argparse
import concurrent.futures
import itertools
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback

from torture.check import Discrepancy
from torture.figures import Figures
from torture.kinds import KINDS
from torture.modes import MODES, history


def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/torture",
        description="Random histories of file-system operations on real mounts against simulated "
        "services and real servers: crashes, faults, a second machine, other people's edits. Ends with figures, "
        "and with 1 when anything was lost, doubled or unequal.")
    parser.add_argument("--minutes", type=float, help="how long to go on (default: 20; with "
                        "--seed: each service and mode once)")
    parser.add_argument("--seed", help="repeats a history; with --minutes, the first of many")
    parser.add_argument("--service", choices=list(KINDS), action="append", help="default: all")
    parser.add_argument("--mode", choices=list(MODES), action="append", help="default: all")
    parser.add_argument("--operations", type=int, default=300, help="of each history "
                        "(default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="histories at a time "
                        "(default: %(default)s)")
    parser.add_argument("--small", action="store_true", help="no file of some megabytes")
    parser.add_argument("--shrink", action="store_true", help="repeats a failing history with "
                        "fewer operations for as long as it fails")
    return parser.parse_args()


class Run:
    """Histories one after the other, some at a time."""

    def __init__(self, options):
        self.options = options
        self.figures = Figures()
        self.failed = []
        self.lock = threading.Lock()
        self.began = time.monotonic()
        first = options.seed or str(random.SystemRandom().randrange(1 << 32))
        services, modes = options.service or list(KINDS), options.mode or list(MODES)
        round = [(service, mode) for mode in modes for service in services]
        if options.seed and options.minutes is None:
            self.plan = iter([(*pair, first) for pair in round])
        else:
            seeds = itertools.chain([first], (f"{first}+{n}" for n in itertools.count(1)))
            self.plan = ((*pair, seed) for seed in seeds for pair in round)
        minutes = 20 if options.minutes is None else options.minutes
        self.until = None if options.seed and options.minutes is None else minutes * 60

    def stop(self):
        """Ends with the histories that are under way, so that no mount is left behind."""
        self.plan = iter([])

    def next(self):
        with self.lock:
            if self.until is not None and time.monotonic() - self.began >= self.until:
                return None
            return next(self.plan, None)

    def work(self):
        while task := self.next():
            service, mode, seed = task
            began = time.monotonic()
            error, figures, folder = self.once(service, mode, seed, self.options.operations)
            with self.lock:
                self.figures += figures
                result = "ok" if error is None else f"FAILED: {error}"
                print(f"{time.monotonic() - self.began:7.0f}s  {service:9} {mode:10} seed {seed:14}"
                      f" {figures.operations:4} operations, {figures.kills} kills,"
                      f" {sum(figures.faults.values()):4} faults,"
                      f" {time.monotonic() - began:5.1f}s  {result}", flush=True)
                if error is not None:
                    self.failed.append((service, mode, seed, figures.operations, folder))

    def once(self, service, mode, seed, operations):
        """One history: its error, its figures, and the folder that is kept of a failed one."""
        # Short, since a Unix socket's path has at most 107 bytes.
        folder = pathlib.Path(tempfile.mkdtemp(prefix="oort-torture-", dir="/tmp"))
        life = history(mode, folder, service, seed, operations, large=not self.options.small)
        try:
            life.run()
        except Exception as error:
            kind = error.kind if isinstance(error, Discrepancy) else "other"
            life.figures.failures[kind] += 1
            (folder / "failure.txt").write_text(traceback.format_exc())
            return error, life.figures, folder
        shutil.rmtree(folder, ignore_errors=True)
        return None, life.figures, None

    def shrink(self, service, mode, seed, operations):
        """The fewest operations with which a history still fails, by halving."""
        low, high = 0, operations
        while high - low > 1:
            middle = (low + high) // 2
            error, _, folder = self.once(service, mode, seed, middle)
            print(f"  {middle} operations: {'ok' if error is None else error}", flush=True)
            low, high = (middle, high) if error is None else (low, middle)
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
        return high

    def report(self):
        print(f"\nafter {(time.monotonic() - self.began) / 60:.1f} minutes")
        print(self.figures)
        flags = " --small" if self.options.small else ""
        for service, mode, seed, operations, folder in self.failed:
            if self.options.shrink:
                operations = self.shrink(service, mode, seed, operations)
            print(f"FAILED, kept in {folder}; repeat: scripts/torture --service {service} "
                  f"--mode {mode} --seed {seed} --operations {operations}{flags}")
        return 1 if self.failed else 0


def main():
    options = arguments()
    run = Run(options)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: run.stop())
    with concurrent.futures.ThreadPoolExecutor(max_workers=options.jobs) as pool:
        for worker in [pool.submit(run.work) for _ in range(options.jobs)]:
            worker.result()
    return run.report()


sys.exit(main())
