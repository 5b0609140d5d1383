import os
import pathlib
import re
import tempfile

import pytest

from crash_kit import Faults
from desk import Desk
from machine import CLOUDS, Clouds, Machine, remove
from session import Session


@pytest.fixture
def folder():
    # Short, since a Unix socket's path has at most 107 bytes.
    path = pathlib.Path(tempfile.mkdtemp(prefix="oort-e2e-", dir="/tmp"))
    yield path
    remove(path)


@pytest.fixture
def clouds(folder, request):
    others = request.node.get_closest_marker("clouds")
    clouds = Clouds(
        folder, sample=request.node.get_closest_marker("sample") is not None,
        names=list(others.args) if others else CLOUDS)
    yield clouds
    leaks = clouds.leaks() if clouds.process.poll() is None else []
    clouds.stop()
    assert not leaks, "\n".join(leaks[:10])


@pytest.fixture
def machine(folder, clouds):
    machine = Machine(folder, clouds)
    yield machine
    log = machine.log()
    print(f"the end of the mount's log:\n{log[-4000:]}")  # shown by pytest for a failure
    machine.clean()
    for word in ("Fatal error", "Illegal instruction", "Segmentation fault"):
        assert word not in log, log[-3000:]


@pytest.fixture
def session(folder, machine):
    """A desktop's session for the machine's mount."""
    session = Session(folder, machine.environment)
    machine.environment.update(session.environment)
    yield session
    machine.clean()
    session.stop()


@pytest.fixture
def page(machine):
    """Starts the page of `oort web`."""
    from browser import Page  # only where a browser is used
    pages = []

    def open_page(*arguments, **more):
        pages.append(Page(machine, *arguments, **more))
        return pages[-1]

    yield open_page
    for each in pages:
        each.stop()
        # The token opens the page once, so that it is of no further use; and nothing else secret is printed.
        assert each.said.count(each.token) == 1


@pytest.fixture
def browser(folder):
    """Starts a browser."""
    from browser import chromium
    drivers = []

    def start(**more):
        drivers.append(chromium(folder / f"profile{len(drivers)}", **more))
        return drivers[-1]

    yield start
    for driver in drivers:
        driver.quit()


@pytest.fixture
def faults(folder):
    return Faults(folder)


@pytest.fixture(scope="module")
def desk(request):
    """One quiet mount of all clouds for a module's tests, each of which keeps to its own folder.

    The module's `prepare(clouds, cloud)` fills each account before.
    """
    folder = pathlib.Path(tempfile.mkdtemp(prefix="oort-e2e-", dir="/tmp"))
    others = request.node.get_closest_marker("clouds")
    clouds = Clouds(folder, names=list(others.args) if others else CLOUDS)
    desk = Desk(clouds, Machine(folder, clouds))
    try:
        for cloud in clouds.names:
            desk.prepared[cloud] = request.module.prepare(clouds, cloud)
            desk.machine.login(cloud)
        desk.machine.mount()
        for cloud in clouds.names:
            desk.machine.ready(cloud)
        yield desk
        log = desk.machine.log()
    finally:
        desk.machine.clean()
        clouds.stop()
        remove(folder)
    for word in ("Fatal error", "Illegal instruction", "Segmentation fault"):
        assert word not in log, log[-3000:]


@pytest.fixture(params=CLOUDS)
def cloud(request):
    return request.param


@pytest.fixture
def drive(machine, cloud):
    """The folder of one account, mounted, its tree known."""
    machine.login(cloud)
    machine.mount()
    return machine.ready(cloud)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A failure at a mount that many tests share shows what the mount wrote until then."""
    report = yield
    desk = getattr(item, "funcargs", {}).get("desk")
    if report.failed and desk is not None:
        report.sections.append(("the end of the mount's log", desk.machine.log()[-8000:]))
    return report


class FailedTests:
    """Writes each test that failed, and the seeds it printed, as a line of a file."""

    def __init__(self, path):
        self.path = path

    def pytest_runtest_logreport(self, report):
        if not report.failed:
            return
        seeds = sorted(set(re.findall(r"^(OORT_[A-Z_]*SEED=\S+)$", report.capstdout, re.M)))
        with open(self.path, "a", encoding="utf-8") as file:
            print("\t".join([report.nodeid, *seeds]), file=file)


def pytest_configure(config):
    config.addinivalue_line("markers", "sample: the clouds hold the sample account")
    config.addinivalue_line("markers", "clouds(names): other clouds than the three")
    path = os.environ.get("OORT_FAILED_TESTS")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailedTests(path))
