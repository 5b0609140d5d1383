"""The weather: places that come and go as folders, documents that cost few calls, and no network."""

import csv
import errno
import io
import json
import subprocess
import urllib.request
import xml.etree.ElementTree

import pytest

from machine import SIMULATORS, Gate, eventually, read

FILES = {"now.txt", "hourly.csv", "daily.csv", "forecast.json", "sun-and-moon.txt", "chart.svg"}
HOSTS = ["api.open-meteo.com", "geocoding-api.open-meteo.com", "api.met.no"]


class Weather:
    """The simulated services, behind a gate."""

    def __init__(self, folder):
        places = folder / "weather.json"
        self.log = open(folder / "weather.log", "w")
        self.process = subprocess.Popen(
            [str(SIMULATORS), "--port-file", str(places), "weather"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        eventually(lambda: places.exists() or self.process.poll() is not None, "it started")
        self.port = json.loads(places.read_text())["weather"]["port"]
        self.gate = Gate(self.port)

    def settings(self, units=""):
        lines = ["[weather]", units, "[weather.endpoints]"]
        lines += [f'"{host}" = "http://127.0.0.1:{self.gate.port}/{host}"' for host in HOSTS]
        return "\n".join(lines) + "\n"

    def counts(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/_oort/counts") as answer:
            return {route: count["calls"] for route, count in json.load(answer).items()}

    def stop(self):
        self.gate.shut()
        self.process.terminate()
        self.process.wait(timeout=120)
        self.log.close()


@pytest.fixture
def weather(folder):
    weather = Weather(folder)
    yield weather
    weather.stop()


@pytest.fixture
def drive(machine, weather):
    machine.write_settings(machine.settings() + weather.settings())
    machine.oort("login", "weather")
    machine.mount()
    return machine.ready("weather")


def refused(action):
    """The error that an action ends with."""
    with pytest.raises(OSError) as caught:
        action()
    return caught.value.errno


def test_places_and_calls(machine, weather, drive):
    place = drive / "Valencia"
    place.mkdir()
    # At once, without a wait for an engine.
    assert {entry.name for entry in place.iterdir()} == FILES
    for name in FILES:
        assert (place / name).read_bytes(), name
    assert weather.counts() == {"geocoding": 1, "open-meteo": 1}, "one forecast for all files"
    now = (place / "now.txt").read_text()
    assert now.startswith("Valencia, Spain\n") and "Temperature" in now and "°C" in now
    assert "Open-Meteo, fetched 20" in now and "cannot be reached" not in now
    assert (place / "now.txt").stat().st_size == len(now.encode())
    hours = list(csv.DictReader(io.StringIO((place / "hourly.csv").read_text())))
    days = list(csv.DictReader(io.StringIO((place / "daily.csv").read_text())))
    document = json.loads((place / "forecast.json").read_text())
    assert len(hours) == len(document["hours"]) > 150 and len(days) == len(document["days"]) >= 7
    assert float(hours[0]["temperature_celsius"]) == document["hours"][0]["temperature"]
    assert hours[0]["time"].endswith(("+01:00", "+02:00")), "by the clocks of Valencia"
    assert "full moon" in (place / "sun-and-moon.txt").read_text().lower() or (
        "Full: " in (place / "sun-and-moon.txt").read_text())
    assert xml.etree.ElementTree.parse(place / "chart.svg").getroot().tag.endswith("svg")
    # A second look, and one after a restart, cost nothing.
    machine.unmount()
    machine.mount()
    machine.ready("weather")
    for name in FILES:
        assert (place / name).read_bytes(), name
    assert weather.counts() == {"geocoding": 1, "open-meteo": 1}
    # Two places of one name, and one that is none.
    (drive / "valencia, Venezuela").mkdir()
    assert (drive / "valencia, Venezuela" / "now.txt").read_text().startswith(
        "Valencia, Carabobo, Venezuela\n")
    assert refused((drive / "Nowhereville").mkdir) == errno.EINVAL
    assert not (drive / "Nowhereville").exists()
    eventually(lambda: 'no place is called "Nowhereville"' in machine.log().replace("\\", ""),
               "the log says why")
    assert 'no place is called "Nowhereville"' in machine.oort("status")
    assert refused((drive / "VALENCIA").mkdir) == errno.EEXIST
    # All else is read-only.
    assert refused(lambda: (drive / "note.txt").write_text("x")) == errno.EINVAL
    assert refused(lambda: (place / "note.txt").write_text("x")) == errno.EACCES
    assert refused(lambda: (place / "now.txt").write_text("x")) == errno.EACCES
    assert refused((place / "now.txt").unlink) == errno.EACCES
    assert refused((place / "more").mkdir) == errno.EACCES
    assert refused(lambda: place.rename(drive / "Berlin")) == errno.EACCES
    place.rmdir()
    assert not place.exists() and (drive / "valencia, Venezuela").exists()
    machine.sync()
    assert machine.status_code() == 0
    machine.unmount()
    machine.mount()
    machine.ready("weather")
    assert [entry.name for entry in drive.iterdir()] == ["valencia, Venezuela"]


def test_without_a_network(machine, weather):
    machine.write_settings(machine.settings() + weather.settings(
        'temperature = "fahrenheit"\nwind = "mph"\nrain = "inch"'))
    machine.oort("login", "weather", "--source", "met-norway")
    machine.mount()
    drive = machine.ready("weather")
    place = drive / "Oslo"
    place.mkdir()
    text = (place / "now.txt").read_text()
    assert "MET Norway, fetched" in text and "°F" in text and "mph" in text, text
    assert weather.counts() == {"geocoding": 1, "met-norway": 1}
    machine.unmount()
    # The forecast is of five hours ago.
    kept = machine.state / "places" / "weather.sqlite.list"
    places = json.loads(kept.read_text())

    def ages(value):
        if isinstance(value, dict):
            return {key: ages(entry) - 5 * 3600 if key in ("fetched", "fresh")
                    else ages(entry) for key, entry in value.items()}
        return [ages(entry) for entry in value] if isinstance(value, list) else value

    kept.write_text(json.dumps(ages(places)))
    weather.gate.shut()
    machine.mount()
    assert refused((drive / "Berlin").mkdir) == errno.EHOSTUNREACH
    old = eventually(lambda: (text := read(place / "now.txt")) and "5 hours ago" in text and text,
                     "the age is told")
    assert "the service cannot be reached now" in old
    assert json.loads((place / "forecast.json").read_text())["is_old"] is True
    assert "5 hours ago" in (place / "chart.svg").read_text()
    assert "Now: " in (place / "sun-and-moon.txt").read_text()
    weather.gate.open()
    machine.unmount()
    machine.mount()
    machine.ready("weather")
    eventually(lambda: (text := read(place / "now.txt")) and "hours ago" not in text and text,
               "the weather is new again")
    (drive / "Berlin").mkdir()
    assert weather.counts()["met-norway"] == 2


def test_what_one_does_with_files_is_answered(machine, drive):
    """Found and kept as any file; all that needs a service with files is refused in a sentence."""
    (drive / "Valencia").mkdir()
    now = drive / "Valencia" / "now.txt"
    assert now.read_text()
    found = json.loads(machine.oort("search", "now", "--in", drive / "Valencia", "--json"))
    assert str(now) in [result["path"] for result in found["results"]]
    machine.oort("pin", drive / "Valencia")
    machine.oort("unpin", drive / "Valencia")
    machine.oort("free", drive / "Valencia", status=None)
    assert now.read_text()
    for words, arguments in [
            ("has no links to share", ["share", now]), ("has no links", ["share", "--list", drive]),
            ("has no links", ["unshare", now]), ("has no trash", ["trash", drive]),
            ("has no trash", ["restore", drive / "Valencia" / "gone.txt"]),
            ("keeps no earlier contents", ["versions", now]),
            ("has no web page", ["open", now, "--print"])]:
        said = machine.oort(*arguments, status=1)
        assert f"weather: the weather {words}" in said, said
    assert machine.oort("conflicts") == "There is no conflict.\n"
