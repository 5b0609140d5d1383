"""What is kept here: pins, how they end, and giving room back."""

import datetime
import json
import os
import time

import pytest

from machine import eventually

# The route that brings a content, and the most requests by it for one: Drive is asked by the same one
# whether the revision is current, before and after.
READ = {"dropbox": ("files/download", 1), "drive": ("files.get", 3), "onedrive": ("download", 1)}
SMALL = 20_000


def files(clouds, cloud, folder, count, size=SMALL):
    clouds.edits(cloud, [
        {"op": "write", "path": f"{folder}/file{number:03}", "seed": number + 1, "size": size}
        for number in range(count)])


def quiet(machine, clouds, *more):
    """Nothing but the acts of the test calls the clouds, once the trees are known."""
    settings = "".join(line + "\n" for line in more)
    machine.write_settings('poll_interval = "1s"\nsettle = "200ms"\n' + settings + clouds.settings())


def reads(clouds, cloud):
    """Requests for content, and the bytes of their answers."""
    of = clouds.traffic(cloud).get(READ[cloud][0], {"calls": 0, "bytes_out": 0})
    return of["calls"], of["bytes_out"]


def pins(machine):
    return json.loads(machine.oort("pins", "--json"))


def complete(machine, path=None):
    found = [pin for pin in pins(machine) if path is None or pin["path"] == str(path)]
    return all(p["progress"]["files"] == p["progress"]["files_here"] for p in found) and found


def attribute(path):
    return os.getxattr(path, "user.oort.availability").decode()


def test_a_folder_is_kept_and_read_without_a_network(machine, clouds, cloud, drive):
    files(clouds, cloud, "/trip/photos", 30)
    clouds.edit(cloud, "write", "/trip/map.bin", seed=99, size=6 << 20)
    clouds.edit(cloud, "write", "/other.bin", seed=98, size=SMALL)
    eventually((drive / "trip/photos/file029").exists, "all files are known")
    eventually((drive / "trip/map.bin").exists, "all files are known")
    eventually((drive / "other.bin").exists, "all files are known")
    clouds.forget_calls(cloud)
    said = machine.oort("pin", drive / "trip")
    assert str(drive / "trip") in said and "until oort unpin" in said, said
    eventually(lambda: complete(machine), "all is here")
    eventually(lambda: attribute(drive / "trip") == "pinned", "the folder says so")
    # Each file by one request, and no byte twice.
    calls, sent = reads(clouds, cloud)
    assert 31 <= calls <= 31 * READ[cloud][1], clouds.counts(cloud)
    assert 30 * SMALL + (6 << 20) <= sent < 1.1 * (30 * SMALL + (6 << 20))
    assert attribute(drive / "trip/map.bin") == "pinned" and attribute(drive) == "partly"
    assert attribute(drive / "other.bin") == "online"
    clouds.gates[cloud].shut()
    for number in range(30):
        assert len((drive / f"trip/photos/file{number:03}").read_bytes()) == SMALL
    assert len((drive / "trip/map.bin").read_bytes()) == 6 << 20
    clouds.gates[cloud].open()
    assert reads(clouds, cloud) == (calls, sent)
    eventually(lambda: machine.account(cloud)["keeping"]["files_here"] == 31, "status says so")
    # It comes into the folder, leaves it, changes, and goes.
    clouds.edit(cloud, "write", "/trip/photos/new.bin", seed=7, size=SMALL)
    clouds.edit(cloud, "write", "/trip/map.bin", seed=8, size=3 << 20)
    eventually(lambda: (drive / "trip/photos/new.bin").exists()
               and attribute(drive / "trip/photos/new.bin") == "pinned", "what is new is here")
    eventually(lambda: (drive / "trip/map.bin").stat().st_size == 3 << 20
               and attribute(drive / "trip/map.bin") == "pinned", "so is a new version")
    os.rename(drive / "trip/photos/new.bin", drive / "new.bin")
    assert attribute(drive / "new.bin") == "cached"
    os.rename(drive / "other.bin", drive / "trip/other.bin")
    eventually(lambda: attribute(drive / "trip/other.bin") == "pinned", "what is moved in is here")
    os.rename(drive / "trip", drive / "journey")
    assert [pin["path"] for pin in pins(machine)] == [str(drive / "journey")]
    machine.sync()
    clouds.edit(cloud, "trash", "/journey")
    eventually(lambda: pins(machine) == [], "the pin goes with its folder")
    assert machine.oort("pins").startswith("Nothing is pinned")


@pytest.mark.parametrize("cloud", ["dropbox", "drive"])
def test_it_goes_on_after_a_kill_a_pause_and_without_a_network(machine, clouds, cloud, drive):
    files(clouds, cloud, "/trip", 40)
    clouds.edit(cloud, "write", "/trip/big.bin", seed=99, size=30 << 20)
    eventually((drive / "trip/file039").exists, "all files are known")
    eventually((drive / "trip/big.bin").exists, "all files are known")
    # Slow until the network is back: none of what follows is to find it complete.
    clouds.weather(cloud, download_bytes_per_second=1 << 18)
    clouds.forget_calls(cloud)
    machine.oort("pin", drive / "trip", "--for", "48h")
    eventually(lambda: 6 < pins(machine)[0]["progress"]["files_here"], "some are here")
    machine.kill()
    said = machine.oort("pins")
    assert "waits for the next mount" in said and f"{cloud}/trip" in said, said
    machine.mount()
    drive = machine.ready(cloud)
    here = pins(machine)[0]["progress"]["files_here"]
    assert here > 0 and "until" in pins(machine)[0]
    machine.oort("pause")
    eventually(lambda: "pause" in (pins(machine)[0]["progress"].get("waits") or ""), "it waits")
    eventually(lambda: machine.account(cloud)["transfers"] == [], "nothing comes")

    def is_still():
        before = reads(clouds, cloud)[0]
        time.sleep(1.5)
        return reads(clouds, cloud)[0] == before

    eventually(is_still, "nothing is asked for")
    before = reads(clouds, cloud)[0]
    machine.oort("resume")
    eventually(lambda: reads(clouds, cloud)[0] > before, "it goes on")
    clouds.gates[cloud].shut()
    eventually(lambda: "network" in (pins(machine)[0]["progress"].get("waits") or ""),
               "it waits for the network")
    clouds.weather(cloud)
    clouds.gates[cloud].open()
    eventually(lambda: complete(machine), "all is here")
    # The large file has two parts; four files at most were under way when they were broken off.
    calls, _ = reads(clouds, cloud)
    assert calls <= (42 + 5 * 4) * READ[cloud][1], clouds.counts(cloud)
    clouds.gates[cloud].shut()
    assert len((drive / "trip/big.bin").read_bytes()) == 30 << 20
    clouds.gates[cloud].open()


def test_eviction_and_free_leave_what_is_pinned(machine, clouds, cloud):
    quiet(machine, clouds, 'cache_size = "2M"')
    files(clouds, cloud, "/kept", 20, 50_000)
    files(clouds, cloud, "/read", 60, 50_000)
    machine.login(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    said = machine.oort("pin", drive / "read", status=1)
    assert "does not fit" in said and "2.9 MiB" in said and "2 MiB" in said, said
    assert pins(machine) == []
    machine.oort("pin", drive / "kept")
    eventually(lambda: complete(machine), "all is here")
    clouds.forget_calls(cloud)
    for number in range(60):
        (drive / f"read/file{number:03}").read_bytes()
    eventually(lambda: machine.status()["mount"]["cached_bytes"] <= 2 << 20, "the limit holds")
    for number in range(20):
        assert attribute(drive / f"kept/file{number:03}") == "pinned"
        assert len((drive / f"kept/file{number:03}").read_bytes()) == 50_000
    assert reads(clouds, cloud)[0] <= 60 * READ[cloud][1], "only what was read came"
    # What does not fit any longer waits, and says so.
    files(clouds, cloud, "/kept/more", 30, 50_000)
    eventually(lambda: "files_without_room" in (pins(machine)[0]["progress"]), "it says so")
    assert "no room for" in machine.oort("pins")
    for number in range(20):
        assert attribute(drive / f"kept/file{number:03}") == "pinned"
    clouds.edit(cloud, "trash", "/kept/more")
    eventually(lambda: complete(machine), "what is left fits")

    # One that the kernel has no pages of.
    clouds.edit(cloud, "write", "/fresh.bin", seed=77, size=50_000)
    eventually((drive / "fresh.bin").exists, "the file is known")
    with open(drive / "fresh.bin", "rb") as held:
        held.read(10)
        # Sent, its copy would be one more that is in use for a moment.
        machine.oort("pause")
        (drive / "mine.bin").write_bytes(os.urandom(100_000))
        said = machine.oort("free", "--all")
        assert "20 copies stay" in said and "pinned" in said, said
        assert "1 copy stays" in said and "open in a program" in said, said
        machine.oort("resume")
    assert machine.oort("free", drive / "kept").startswith("Freed 0 B")
    assert attribute(drive / "read") in ("online", "partly")
    said = machine.oort("unpin", drive / "kept")
    assert "no longer pinned" in said
    assert "Freed 0 B" in machine.oort("free", drive / "kept", "--older", "30d")
    assert "Freed 976.6 KiB: 20 copies." in machine.oort("free", drive / "kept")
    assert attribute(drive / "kept") == "online"
    machine.sync()
    assert clouds.tree(cloud)["/mine.bin"]["size"] == 100_000
    assert len((drive / "kept/file000").read_bytes()) == 50_000


@pytest.mark.parametrize("cloud", ["drive"])
@pytest.mark.parametrize("size", [10_000_000, 60_000_000], ids=["less than the cache", "more"])
def test_what_cannot_fit_takes_nothing_away(machine, clouds, cloud, size):
    quiet(machine, clouds, 'cache_size = "20M"')
    files(clouds, cloud, "/kept", 12, 1_000_000)
    files(clouds, cloud, "/also", 1, 1000)
    files(clouds, cloud, "/read", 40, 100_000)
    machine.login(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    eventually((drive / "read/file039").exists, "the files are known")
    eventually((drive / "kept/file011").exists, "the files are known")
    eventually((drive / "also/file000").exists, "the files are known")
    machine.oort("pin", drive / "kept")
    machine.oort("pin", drive / "also")
    eventually(lambda: complete(machine), "all is here")
    for number in range(40):
        (drive / f"read/file{number:03}").read_bytes()
    eventually(lambda: attribute(drive / "read") == "cached", "all was read")
    cached = machine.status()["mount"]["cached_bytes"]
    for folder in ("/kept", "/also"):
        clouds.edit(cloud, "write", f"{folder}/film.bin", seed=99, size=size)
    eventually(
        lambda: [pin["progress"].get("bytes_without_room") for pin in pins(machine)] == [size] * 2,
        "each says what it lacks")
    assert attribute(drive / "read") == "cached"
    assert machine.status()["mount"]["cached_bytes"] == cached


@pytest.mark.parametrize("cloud", ["drive"])
def test_a_cache_that_is_too_small_for_what_is_pinned_is_told_of(machine, clouds, cloud):
    """By whoever set cache_size lower afterwards: all of it stays, and nothing else does."""
    files(clouds, cloud, "/kept", 4, 1_000_000)
    files(clouds, cloud, "/read", 1, 1_000_000)
    machine.login(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    eventually((drive / "kept/file003").exists, "the files are known")
    machine.oort("pin", drive / "kept")
    eventually(lambda: complete(machine), "all is here")
    assert "kept_above_limit" not in machine.status()["mount"] and machine.status_code() == 0
    machine.unmount()
    machine.write_settings('cache_size = "2M"\n' + machine.settings())
    machine.mount()
    machine.ready(cloud)
    eventually(lambda: machine.status()["mount"].get("kept_above_limit") == 4_000_000, "it is noticed")
    words = "3.8 MiB of the cache are pinned, more than cache_size (2 MiB): nothing else stays in it."
    assert words in machine.oort("status") and machine.status_code() == 4
    assert words in machine.oort("doctor", status=4)
    (drive / "read/file000").read_bytes()
    eventually(lambda: attribute(drive / "read") == "online", "it does not stay")
    assert attribute(drive / "kept") == "pinned"
    # As it advises.
    machine.oort("unpin", drive / "kept")
    eventually(lambda: machine.status()["mount"]["cached_bytes"] <= 2 << 20, "what is not pinned makes room")
    assert words not in machine.oort("status") and machine.status_code() == 0
    machine.oort("pin", drive / "kept/file003")
    eventually(lambda: complete(machine), "it fits")


@pytest.mark.parametrize("cloud", ["drive"])
def test_the_rest_of_what_is_changed_in_part_is_kept_too(machine, clouds, cloud):
    machine.write_settings('poll_interval = "1s"\nsettle = "1h"\n' + clouds.settings())
    size = 12 << 20
    clouds.edit(cloud, "write", "/kept/big.bin", seed=3, size=size)
    content = bytearray(clouds.content(cloud, "/kept/big.bin"))
    machine.login(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    eventually((drive / "kept/big.bin").exists, "the file is known")
    machine.oort("pause")
    machine.oort("pin", drive / "kept")
    with open(drive / "kept/big.bin", "r+b") as file:
        file.seek(size // 2)
        file.write(b"mine")
    content[size // 2:size // 2 + 4] = b"mine"
    progress = pins(machine)[0]["progress"]
    assert progress["files"] == 1 and progress["files_here"] == 0, progress
    assert attribute(drive / "kept/big.bin") == "partly" == attribute(drive / "kept")
    machine.oort("resume")
    eventually(lambda: complete(machine), "the rest is here")
    assert attribute(drive / "kept/big.bin") == "pinned"
    clouds.gates[cloud].shut()
    assert (drive / "kept/big.bin").read_bytes() == content
    assert machine.account(cloud)["pending_count"] == 1
    clouds.gates[cloud].open()
    machine.sync()
    assert clouds.content(cloud, "/kept/big.bin") == content


@pytest.mark.parametrize("cloud", ["drive"])
def test_a_left_out_folder_is_not_kept_with_the_one_above(machine, clouds, cloud):
    quiet(machine, clouds)
    files(clouds, cloud, "/kept/raw", 5)
    files(clouds, cloud, "/kept/good", 3)
    machine.login(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    eventually((drive / "kept/raw/file004").exists, "the files are known")
    eventually((drive / "kept/good/file002").exists, "the files are known")
    machine.oort("pin", drive / "kept")
    eventually(lambda: complete(machine), "all is here")
    machine.unmount()
    machine.write_settings(machine.settings() + f'\n[accounts.{cloud}]\nleave_out = ["/kept/raw"]\n')
    machine.mount()
    drive = machine.ready(cloud)
    assert pins(machine)[0]["progress"]["files"] == 3
    said = machine.oort("free", "--all")
    assert "5 copies." in said and "3 copies stay" in said and "pinned" in said, said
    assert machine.status()["mount"]["cached_bytes"] == 3 * SMALL


def test_free_leaves_what_could_not_be_fetched_again(machine, clouds):
    quiet(machine, clouds)
    for cloud in ("drive", "dropbox"):
        files(clouds, cloud, "/read", 3)
        machine.login(cloud)
    machine.mount()
    for cloud in ("drive", "dropbox"):
        drive = machine.ready(cloud)
        eventually((drive / "read/file002").exists, "the files are known")
        for number in range(3):
            (drive / f"read/file{number:03}").read_bytes()
        eventually(lambda: attribute(drive / "read") == "cached", "all was read")
    clouds.control("drive", "POST", "tokens/revoke")
    eventually(lambda: machine.account("drive")["state"] == "trouble", "the trouble is told")
    drive = machine.mount_point / "drive"

    def free():
        said = machine.oort("free", drive / "read")
        assert said.startswith("Freed 0 B") and "The copies of drive stay" in said, said
        said = machine.oort("free", "--all")
        assert "The copies of drive stay" in said and "dropbox" not in said, said
        assert attribute(drive / "read") == "cached"
        return said

    assert "3 copies." in free()
    assert attribute(machine.mount_point / "dropbox" / "read") == "online"
    # A list of accounts that cannot be read: their folders are shown, and nothing is asked for.
    machine.unmount()
    accounts = machine.state / "accounts.json"
    known = json.loads(accounts.read_text())
    entries = known["accounts"] if isinstance(known, dict) else known
    entries[:] = [entry for entry in entries if entry["name"] != "drive"]
    accounts.write_text(json.dumps(known))
    machine.mount()
    machine.ready("dropbox")
    assert "0 copies." in free()


@pytest.mark.clouds("dropbox")
def test_a_pin_by_another_case_tells_of_that_pin(machine, clouds):
    quiet(machine, clouds)
    for folder in ("/Docs", "/Other"):
        files(clouds, "dropbox", folder, 1)
    machine.login("dropbox")
    machine.mount()
    drive = machine.ready("dropbox")
    for folder in ("Docs", "Other"):
        eventually((drive / folder / "file000").exists, "the files are known")
        machine.oort("pin", drive / folder)
    assert machine.oort("pin", drive / "DOCS").startswith(str(drive / "Docs") + " ")


@pytest.mark.parametrize("cloud", ["drive"])
def test_a_pin_ends_by_itself(machine, clouds, cloud, drive):
    files(clouds, cloud, "/trip", 3)
    eventually((drive / "trip/file002").exists, "all files are known")
    machine.oort("pin", drive / "trip", "--for", "1h")
    eventually(lambda: complete(machine), "all is here")
    said = machine.oort("pin", drive / "trip", "--for", "6s")
    assert "until 20" in said
    eventually(lambda: pins(machine) == [], "the time is over")
    assert attribute(drive / "trip") == "cached"
    assert "3 copies" in machine.oort("free", drive / "trip")
    assert len((drive / "trip/file001").read_bytes()) == SMALL


@pytest.mark.parametrize("cloud", ["dropbox"])
def test_what_is_saved_over_a_pinned_file_is_pinned(machine, clouds, cloud, drive):
    clouds.edit(cloud, "write", "/report.txt", text="first")
    file = drive / "report.txt"
    eventually(file.exists, "the file is known")
    machine.oort("pin", file)
    eventually(lambda: attribute(file) == "pinned", "it is here")
    temporary = drive / ".report.txt.tmp"
    temporary.write_text("second, by an editor")
    os.replace(temporary, file)
    assert attribute(file) == "pinned"
    machine.sync()
    eventually(lambda: [pin["path"] for pin in pins(machine)] == [str(file)], "it is pinned still")
    clouds.edit(cloud, "write", "/report.txt", text="third, by somebody else")
    eventually(lambda: file.stat().st_size == 23 and attribute(file) == "pinned", "it is here")
    machine.unmount()
    machine.mount()
    assert [pin["path"] for pin in pins(machine)] == [str(file)]


@pytest.mark.sample
@pytest.mark.parametrize("cloud", ["drive"])
def test_documents_are_kept_as_they_are_shown(machine, clouds, cloud, drive):
    document = drive / "Documents" / "Travel plan.docx"
    eventually(document.exists, "the document is known")
    machine.oort("pin", document)
    eventually(lambda: attribute(document) == "pinned", "it is here")
    clouds.gates[cloud].shut()
    assert document.read_bytes()[:2] == b"PK"
    clouds.gates[cloud].open()


@pytest.mark.parametrize("cloud", ["drive"])
def test_what_the_service_refuses_is_named_and_not_asked_for_again(machine, clouds, cloud, drive):
    files(clouds, cloud, "/trip", 3)
    eventually((drive / "trip/file002").exists, "all files are known")
    clouds.fault(cloud, route=READ[cloud][0], fault="status", status=403, times=None)
    clouds.forget_calls(cloud)
    machine.oort("pin", drive / "trip")
    eventually(lambda: len(pins(machine)[0]["progress"]["refused"]) == 3, "they are named")
    calls = reads(clouds, cloud)[0]
    said = machine.oort("pins")
    assert "3 files cannot be fetched" in said and str(drive / "trip/file001") in said, said
    assert "cannot be fetched" in machine.oort("status")
    clouds.edit(cloud, "write", "/trip/file003", text="new")
    eventually(lambda: len(pins(machine)[0]["progress"]["refused"]) == 4, "so is a new one")
    assert reads(clouds, cloud)[0] <= calls + READ[cloud][1], "each is asked for once"
    clouds.no_faults(cloud)
    machine.oort("pin", drive / "trip")
    eventually(lambda: complete(machine), "a person can have them asked for again")


@pytest.mark.parametrize("cloud", ["dropbox"])
def test_bad_input(machine, clouds, cloud):
    for arguments in (["pin", "x"], ["unpin", "x"], ["free", "--all"]):
        assert "No mount" in machine.oort(*arguments, status=1)
    assert "Nothing is pinned" in machine.oort("pins")
    machine.login(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    clouds.edit(cloud, "write", "/folder/file", text="x")
    eventually((drive / "folder/file").exists, "the file is known")
    assert "does not lie in the mount" in machine.oort("pin", "/etc/passwd", status=1)
    assert "is not there" in machine.oort("pin", drive / "nothing", status=1)
    assert "is not there" in machine.oort("free", drive / "nothing", status=1)
    past = (datetime.date.today() - datetime.timedelta(days=2)).isoformat()
    assert "over already" in machine.oort("pin", drive / "folder", "--until", past, status=1)
    for wrong in (["--until", "soon"], ["--for", "0s"], ["--for", "1h", "--until", past],
                  ["--until", "2027-02-30"]):
        machine.oort("pin", drive / "folder", *wrong, status=2)
    machine.oort("free", status=2)
    machine.oort("free", drive, "--all", status=2)
    assert "is not pinned." in machine.oort("unpin", drive / "folder", status=1)
    machine.oort("pin", drive / "folder", "--until", "2099-01-31")
    assert "2099-01-31 23:59:59" in machine.oort("pins")
    said = machine.oort("unpin", drive / "folder/file", status=1)
    assert "by itself" in said and str(drive / "folder") in said
    os.symlink("folder/file", drive / "link")
    assert "is a link" in machine.oort("pin", drive / "link", status=1)
    # A folder whose name does things to terminals.
    (drive / "evil\x1b[31mred").mkdir()
    assert "\x1b" not in machine.oort("pin", drive / "evil\x1b[31mred")
    assert "\x1b" not in machine.oort("pins")
