"""Weather that changes while a history goes on: everything that a network and a service do."""

import threading
import time

# A read may be retried for minutes; then the history would stand still.
LONGEST_WAIT = 5

# A share of each, of all requests of a stew.
KINDS = [
    {"fault": "status", "status": 500},
    {"fault": "status", "status": 503},
    {"fault": "status", "status": 503, "retry_after": 1},
    {"fault": "status", "status": 429, "retry_after": 1},
    {"fault": "html", "status": 502},
    {"fault": "no_answer"},
    {"fault": "cut_upload", "bytes": 100},
    {"fault": "cut_upload", "bytes": 20_000},
    {"fault": "cut_download", "bytes": 0},
    {"fault": "cut_download", "bytes": 150},
    {"fault": "truncated", "bytes": 90},
    {"fault": "stall", "seconds": 0.7},
    {"fault": "done_but_status", "status": 500},
    {"fault": "done_but_no_answer"},
    {"fault": "expired_token"},
]
LOST_ANSWERS = [kind for kind in KINDS if kind["fault"].startswith(("done", "cut_download"))]


class Storms:
    """Changes one service's weather at random."""

    # Each weather by the name of its method, and its weight.
    KINDS = []

    def __init__(self, gate, random, without=frozenset()):
        self.gate, self.random = gate, random
        self.lock = threading.Lock()
        self.last_sign = time.monotonic()
        self.is_over = threading.Event()
        self.kinds = [(name, weight) for name, weight in self.KINDS if name not in without]
        threading.Thread(target=self._watch, daemon=True).start()

    def change(self):
        """Ends the weather that was; its successor's name."""
        self.end()
        names, weights = zip(*self.kinds)
        name = self.random.choices(names, weights)[0]
        getattr(self, name)()
        return name

    def end(self):
        with self.lock:
            self.clear()
            if self.gate.is_shut:
                self.gate.open()

    def clear(self):
        """Takes all trouble away but the shut gate."""
        raise NotImplementedError

    def sign_of_life(self):
        """The history goes on; without one for a while the weather clears up."""
        self.last_sign = time.monotonic()

    def stop(self):
        self.is_over.set()
        self.end()

    def _watch(self):
        while not self.is_over.wait(0.5):
            if time.monotonic() - self.last_sign > LONGEST_WAIT:
                try:
                    self.end()
                except OSError:
                    return  # the services have ended
                self.sign_of_life()

    def counts(self):
        """How often each kind of fault happened."""
        raise NotImplementedError

    def fair(self):
        pass

    def offline(self):
        self.gate.shut()


class RequestStorms(Storms):
    """Of a service that answers requests: any of them may fail, each in one of several ways."""

    def place(self, kinds, share):
        """Has so many of all requests fail in one of these ways."""
        raise NotImplementedError

    def delay(self, milliseconds):
        raise NotImplementedError

    def throttle(self, status):
        """Refuses all but a few requests a second."""
        raise NotImplementedError

    def stew(self):
        self.place(KINDS, self.random.choice([0.1, 0.3, 0.6]))

    def answers_lost(self):
        self.place(LOST_ANSWERS, self.random.choice([0.3, 0.7]))

    def slow(self):
        self.delay(self.random.choice([30, 150, 400]))

    def throttled(self):
        self.throttle(self.random.choice([429, 503]))


class SimulatedStorms(RequestStorms):
    """Of a simulator, which does all of that by itself."""

    KINDS = [
        ("fair", 2), ("stew", 6), ("answers_lost", 4), ("slow", 2), ("throttled", 2), ("offline", 2),
        ("cursors_lost", 2), ("sessions_lost", 2), ("tokens_expired", 1)]

    def __init__(self, clouds, cloud, random, without=frozenset()):
        self.clouds, self.cloud, self.without = clouds, cloud, without
        super().__init__(clouds.gates[cloud], random, without)
        self.control("PUT", "faults/seed", {"seed": random.getrandbits(60)})

    def control(self, method, path, body=None):
        self.clouds.control(self.cloud, method, path, body)

    def clear(self):
        self.clouds.no_faults(self.cloud)
        self.control("PUT", "weather", {})

    def counts(self):
        return self.clouds.fault_counts(self.cloud)

    def place(self, kinds, share):
        kinds = [kind for kind in kinds if kind["fault"] not in self.without]
        for kind in kinds:
            self.clouds.fault(
                self.cloud, route="*", times=None, probability=share / len(kinds), **kind)

    def delay(self, milliseconds):
        self.control("PUT", "weather", {"latency_ms": milliseconds})

    def throttle(self, status):
        limit = {"requests": 4, "seconds": 1, "retry_after": 1, "status": status}
        self.control("PUT", "weather", {"rate_limit": limit})

    def cursors_lost(self):
        self.control("POST", "cursors/lose")
        self.place(KINDS, 0.1)

    def sessions_lost(self):
        self.control("POST", "sessions/lose")
        self.place(LOST_ANSWERS, 0.2)

    def tokens_expired(self):
        self.control("POST", "tokens/expire")
        self.place(KINDS, 0.1)


class RelayStorms(RequestStorms):
    """Of a server of a person's own behind a relay that knows HTTP."""

    KINDS = [
        ("fair", 2), ("stew", 6), ("answers_lost", 4), ("slow", 2), ("throttled", 2), ("offline", 2),
        ("server_killed", 2)]

    def __init__(self, relay, gate, random, server=None):
        self.relay, self.server = relay, server
        super().__init__(gate, random, without={"server_killed"} if server is None else set())
        relay.random.seed(random.getrandbits(60))

    def clear(self):
        self.relay.fair()
        restart(self.server)

    def counts(self):
        return self.relay.counts

    def place(self, kinds, share):
        # Neither a password nor a key expires.
        kinds = [kind for kind in kinds if kind["fault"] != "expired_token"]
        self.relay.faults = [(kind, share / len(kinds)) for kind in kinds]

    def delay(self, milliseconds):
        self.relay.latency = milliseconds / 1000

    def throttle(self, status):
        self.relay.limit = (4, status)

    def server_killed(self):
        self.relay.counts["server killed"] += 1
        self.server.kill()


class WireStorms(Storms):
    """Of a server whose protocol nothing between knows: its connections break, and itself does."""

    KINDS = [
        ("fair", 2), ("rough", 6), ("slow", 2), ("offline", 2), ("cut", 4), ("server_killed", 2)]

    def __init__(self, gate, server, random):
        self.server = server
        super().__init__(gate, random)
        gate.random.seed(random.getrandbits(60))

    def clear(self):
        self.gate.fair()
        restart(self.server)

    def counts(self):
        return self.gate.counts

    def rough(self):
        self.gate.roughness = self.random.choice([0.003, 0.02, 0.06])

    def slow(self):
        self.gate.latency = self.random.choice([0.03, 0.1, 0.2])

    def cut(self):
        """What goes on is cut off now; what comes later is not."""
        self.gate.counts["cut"] += 1
        self.server.cut()

    def offline(self):
        super().offline()
        # Contents may have connections of their own.
        self.server.cut()

    def server_killed(self):
        self.gate.counts["server killed"] += 1
        self.server.kill()


def restart(server):
    if server is not None and server.process.poll() is not None:
        server.start()
