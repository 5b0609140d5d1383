"""A gate that treats what passes it as bad networks do, whatever protocol it is."""

import collections
import random
import threading
import time

from machine import Gate, shut_down


class RoughGate(Gate):
    """Connections end before or after something has passed, or after nothing did for a while."""

    def __init__(self, target):
        self.random = random.Random(0)
        self.lock = threading.Lock()
        # Of the parts that pass, the share with which their connection ends.
        self.roughness = 0.0
        self.latency = 0.0
        self.counts = collections.Counter()
        super().__init__(target)

    def fair(self):
        with self.lock:
            self.roughness = self.latency = 0.0

    def _pump(self, source, sink, is_up):
        try:
            while data := source.recv(1 << 16):
                with self.lock:
                    ends = self.random.random() < self.roughness
                    fate = self.random.choice(["no_answer", "done_but_no_answer", "stall"])
                    latency = self.latency
                    if is_up:
                        self.received += len(data)
                    if ends:
                        self.counts[fate] += 1
                # There and back again.
                time.sleep(latency / 2)
                if ends and fate == "stall":
                    time.sleep(0.7)
                if not ends or fate == "done_but_no_answer":
                    sink.sendall(data)
                if ends:
                    break
        except OSError:
            pass
        shut_down(source, sink)
