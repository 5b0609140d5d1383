"""A proxy before a simulator that changes its answers in JSON and XML: by a seed, or by a rule of the test's."""

import copy
import json
import random
import threading
from xml.etree import ElementTree

from relay import Relay

# Stores of S3 write its names without a prefix, and so are what they are changed into.
ElementTree.register_namespace("", "http://s3.amazonaws.com/doc/2006-03-01/")

HUGE = "n" * 10_000
TEXTS = [
    "", ".", "..", "/", "//", "a/b", "../../../etc/passwd", "\\", "\0", "a\0b", "\r\n", "\x7f",
    "\x1b[2J", "\u202etxt.exe", "\ufeffx", "e\u0301", "\u0301x", "/\u0301x", HUGE, "/" + HUGE,
    "x" + "\u0301" * 5_000, "a/" * 3_000, "\U0001f30b", "%2e%2e%2f", "%zz", "id:", "rev:", "root",
    "oort:root", "null", "-1", "0", "9223372036854775807", "-9223372036854775808", "1e309", "NaN",
    "9999-12-31T23:59:59Z", "99999999-01-01T00:00:00Z", "-0001-01-01T00:00:00Z", "T",
    "2026-13-45T99:99:99Z", "complete", "failed", "http://127.0.0.1:1/", "file:///etc/passwd",
    "application/vnd.google-apps.folder", "application/vnd.google-apps.shortcut",
    "application/vnd.google-apps.document", "0-", "5-2", "x.rclonelink"]
NUMBERS = [
    0, -1, 1, 2**53, 2**53 + 1, 2**31, 2**63 - 1, 2**63 - 511, 2**63, -2**63, 1e300, -1e300, 0.5, 1e19]


class MutatingProxy(Relay):
    """A relay of which some of the answers, or a certain one, are others than the service's."""

    def __init__(self, target, seed):
        super().__init__(target)
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        # How many of the answers are changed while it is armed.
        self.rate = 0.0
        # Changes an answer in place, JSON or the root of some XML; for tests of one certain answer.
        self.rule = None
        self.mutated = 0
        # Texts of earlier answers: an item's id in another's place makes circles and twins.
        self.seen = []

    def forward(self, handler):
        answer, data = self.ask(handler, self.body_of(handler))
        data = self.changed(handler.path, answer, data)
        self.give(handler, answer.status, answer.getheaders(), data)

    def changed(self, path, answer, data):
        kind = answer.headers.get("Content-Type", "")
        # Tokens that were replaced would only sign the account out.
        if "token" in path or not ("json" in kind or "xml" in kind):
            return data
        is_xml = "json" not in kind
        try:
            value = ElementTree.fromstring(data) if is_xml else json.loads(data)
        except (ValueError, ElementTree.ParseError):
            return data
        with self.lock:
            if self.rule is not None:
                self.rule(value)
            elif self.random.random() < self.rate:
                self.mutated += 1
                if self.random.random() < 0.1:
                    return self.raw(data)
                for _ in range(self.random.randint(1, 3)):
                    value = self.mutate_element(value) if is_xml else self.mutate(value)
            else:
                self.remember_texts(value) if is_xml else self.remember(value)
                return data
        return ElementTree.tostring(value) if is_xml else json.dumps(value).encode()

    # By the seed

    def raw(self, data):
        place = self.random.randint(0, len(data))
        return self.random.choice([
            b"", data[:place], b"null", b"[" * 100_000, b"<html>502</html>", b"\xef\xbb\xbf" + data,
            data[:place] + b"\xff\xc0\x80\0" + data[place:]])

    def remember(self, value):
        for place in places(value):
            text = get(value, place)
            if isinstance(text, str) and len(text) < 200:
                self.seen.append(text)
        del self.seen[:-2_000]

    def remember_texts(self, root):
        self.seen += [element.text for element in root.iter() if element.text and len(element.text) < 200]
        del self.seen[:-2_000]

    def mutate_element(self, root):
        choose = self.random.choice
        owner = choose([element for element in root.iter() if len(element)] or [root])
        if not len(owner):
            owner.text = choose(TEXTS)
            return root
        child = choose(list(owner))
        leaves = [element for element in child.iter() if not len(element)]
        act = self.random.randrange(8)
        if act == 0:
            owner.remove(child)
        elif act == 1:
            owner.append(copy.deepcopy(child))
        elif act == 2:
            self.random.shuffle(owner)
        elif act == 3:
            child.tag = choose([element.tag for element in root.iter()])
        elif act in (4, 5) and self.seen:
            choose(leaves).text = choose(self.seen)
        else:
            choose(leaves).text = choose([None, str(choose(NUMBERS)), choose(TEXTS), choose(TEXTS)])
        return root

    def mutate(self, value):
        found = [place for place in places(value) if place]
        if not found:
            return self.hostile(value)
        place = self.random.choice(found)
        owner, key = get(value, place[:-1]), place[-1]
        act = self.random.randrange(8)
        if act == 0:
            del owner[key]
        elif act == 1 and isinstance(owner, list):
            owner.append(copy.deepcopy(owner[key]))
        elif act == 2 and isinstance(owner, list):
            self.random.shuffle(owner)
        elif act in (3, 4) and isinstance(owner[key], str) and self.seen:
            owner[key] = self.random.choice(self.seen)
        else:
            owner[key] = self.hostile(owner[key])
        return value

    def hostile(self, value):
        choose = self.random.choice
        if self.random.random() < 0.7:
            if isinstance(value, bool):
                return not value
            if isinstance(value, str):
                return choose(TEXTS)
            if isinstance(value, (int, float)):
                return choose(NUMBERS)
        return choose([None, True, choose(NUMBERS), [], {}, [value, None, choose(TEXTS)],
                       choose(TEXTS), str(value)[:100]])


def places(value, place=()):
    """Where each value of some JSON lies, itself among them."""
    found = [place]
    if isinstance(value, dict):
        for key in value:
            found += places(value[key], place + (key,))
    elif isinstance(value, list):
        for index in range(len(value)):
            found += places(value[index], place + (index,))
    return found


def get(value, place):
    for key in place:
        value = value[key]
    return value


def each(value):
    """Every object in some JSON."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else (
            value if isinstance(value, list) else ()):
        yield from each(inner)
