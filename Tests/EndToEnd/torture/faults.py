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

    def __init__(self, clouds, cloud, random):
        self.clouds, self.cloud, self.random = clouds, cloud, random
        self.lock = threading.Lock()
        self.last_sign = time.monotonic()
        self.is_over = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()
        clouds.control(cloud, "PUT", "faults/seed", {"seed": random.getrandbits(60)})
        self.kinds = [
            (self.fair, 2), (self.stew, 6), (self.answers_lost, 4), (self.slow, 2),
            (self.throttled, 2), (self.offline, 2), (self.cursors_lost, 2),
            (self.sessions_lost, 2), (self.tokens_expired, 1)]

    def change(self):
        """Ends the weather that was; its successor's name."""
        self.end()
        kinds, weights = zip(*self.kinds)
        kind = self.random.choices(kinds, weights)[0]
        kind()
        return kind.__name__

    def end(self):
        with self.lock:
            self.clouds.no_faults(self.cloud)
            self.clouds.control(self.cloud, "PUT", "weather", {})
            gate = self.clouds.gates[self.cloud]
            if gate.is_shut:
                gate.open()

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
                    return  # the simulators have ended
                self.sign_of_life()

    def counts(self):
        """How often each kind of fault happened."""
        return self.clouds.fault_counts(self.cloud)

    def place(self, kinds, share):
        for kind in kinds:
            self.clouds.fault(
                self.cloud, route="*", times=None, probability=share / len(kinds), **kind)

    def fair(self):
        pass

    def stew(self):
        self.place(KINDS, self.random.choice([0.1, 0.3, 0.6]))

    def answers_lost(self):
        self.place(LOST_ANSWERS, self.random.choice([0.3, 0.7]))

    def slow(self):
        self.clouds.control(
            self.cloud, "PUT", "weather", {"latency_ms": self.random.choice([30, 150, 400])})

    def throttled(self):
        limit = {"requests": 4, "seconds": 1, "retry_after": 1}
        limit["status"] = self.random.choice([429, 503])
        self.clouds.control(self.cloud, "PUT", "weather", {"rate_limit": limit})

    def offline(self):
        self.clouds.gates[self.cloud].shut()

    def cursors_lost(self):
        self.clouds.control(self.cloud, "POST", "cursors/lose")
        self.place(KINDS, 0.1)

    def sessions_lost(self):
        self.clouds.control(self.cloud, "POST", "sessions/lose")
        self.place(LOST_ANSWERS, 0.2)

    def tokens_expired(self):
        self.clouds.control(self.cloud, "POST", "tokens/expire")
        self.place(KINDS, 0.1)
