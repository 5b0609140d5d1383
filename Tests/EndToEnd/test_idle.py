"""What a mount asks of the services while nothing is used: only the feed."""

import pytest

from machine import eventually

QUOTA = {"dropbox": "users/get_space_usage", "drive": "about.get", "onedrive": "drive"}
FEED = {"drive": "changes.list", "onedrive": "delta/get"}


@pytest.mark.parametrize("polled", ["drive", "onedrive"])
def test_a_poll_without_news_is_one_call(machine, clouds, polled):
    machine.login(polled)
    machine.mount()
    machine.ready(polled)

    def asked():
        clouds.forget_calls(polled)
        eventually(lambda: clouds.counts(polled).get(FEED[polled], 0) >= 3, "three polls")
        return set(clouds.counts(polled))

    # What the mount's beginning asks for once may still be under way.
    assert any(asked() == {FEED[polled]} for _ in range(3)), clouds.counts(polled)


def test_what_was_written_has_the_room_asked_for(machine, clouds, drive, cloud):
    eventually(lambda: clouds.counts(cloud).get(QUOTA[cloud]), "the room was asked for")
    clouds.forget_calls(cloud)
    (drive / "file").write_text("some bytes")
    machine.sync()
    eventually(lambda: clouds.counts(cloud).get(QUOTA[cloud]), "the room was asked for again")
