"""A person's request goes before those that no person waits for."""

from machine import eventually
from test_pins import READ

FILES = 1_500
SIZE = 2_000
# Answers to other requests while a file is opened and read. A dozen or two are under way at any time, and
# each may end, and the next of it, too; behind those that wait for a place it would be more than a thousand.
MOST_BEFORE = 40


def test_an_open_passes_by_what_goes_up_and_what_comes_down(machine, clouds, cloud):
    clouds.give_full_pages(cloud)
    clouds.edits(cloud, [
        {"op": "write", "path": f"/kept/file{number:04}", "seed": number, "size": SIZE}
        for number in range(FILES)] + [
        {"op": "write", "path": f"/other{number}/file", "text": f"content {number}"}
        for number in range(10)])
    machine.login(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    clouds.weather(cloud, latency_ms=200, upload_bytes_per_second=1 << 20)
    with open(drive / "large.bin", "wb") as file:
        file.truncate(200 << 20)
    machine.oort("pin", drive / "kept")

    def under_way():
        """What goes up has begun, and as much comes down as may."""
        transfers = machine.account(cloud)["transfers"]
        return (any(t["is_upload"] and t["done_bytes"] > 0 for t in transfers)
                and clouds.counts(cloud).get(READ[cloud][0], 0) > 50)

    def count():
        return sum(clouds.counts(cloud).values())

    eventually(under_way, "both directions are busy")
    for number in range(10):
        before = count()
        assert (drive / f"other{number}" / "file").read_text() == f"content {number}"
        assert count() - before <= MOST_BEFORE, f"file {number}"
    # It was busy all the time.
    before = count()
    eventually(lambda: count() > before + MOST_BEFORE, "it goes on")
    assert under_way()
