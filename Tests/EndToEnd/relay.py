"""A loopback port before an HTTP server: what it hears it hands on, and a subclass may change it."""

import collections
import hashlib
import http.client
import http.server
import random
import threading
import time


class Cut(Exception):
    """The connection ends here."""


class Relay:
    """A loopback port that speaks HTTP and hands on what it hears; `shut` ends it, as a `Gate`."""

    def __init__(self, target):
        self.target = target
        relay = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *arguments):
                pass

            def forward(self):
                try:
                    relay.forward(self)
                except (OSError, http.client.HTTPException, Cut):
                    self.close_connection = True

            def __getattr__(self, name):
                # Whatever the method is called: WebDAV has its own.
                if name.startswith("do_"):
                    return self.forward
                raise AttributeError(name)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def shut(self):
        self.server.shutdown()
        self.server.server_close()

    def forward(self, handler):
        answer, data = self.ask(handler, self.body_of(handler))
        self.give(handler, answer.status, answer.getheaders(), data)

    def ask(self, handler, body):
        """What the server answers."""
        service = http.client.HTTPConnection("127.0.0.1", self.target, timeout=600)
        service.putrequest(
            handler.command, handler.path, skip_host=True, skip_accept_encoding=True)
        for name, value in handler.headers.items():
            if name.lower() not in ("connection", "content-length", "transfer-encoding",
                                    "accept-encoding", "expect"):
                service.putheader(name, self.named(name, value))
        service.putheader("Content-Length", str(len(body)))
        service.endheaders(body)
        answer = service.getresponse()
        data = answer.read()
        service.close()
        return answer, data

    def named(self, name, value):
        """A header field of a request as the server is to have it."""
        return value

    def give(self, handler, status, headers, data, cut_after=None):
        """Answers; the connection may end within the body."""
        handler.send_response_only(status)
        is_head = handler.command == "HEAD"
        for name, value in headers:
            # The length of what is not sent is the server's word.
            left = ("connection", "transfer-encoding") + (() if is_head else ("content-length",))
            if name.lower() not in left:
                handler.send_header(name, value)
        if not is_head and status not in (204, 304):
            handler.send_header("Content-Length", str(len(data)))
        if handler.close_connection:
            handler.send_header("Connection", "close")
        handler.end_headers()
        if cut_after is not None:
            handler.wfile.write(data[:cut_after])
            raise Cut
        if not is_head:
            handler.wfile.write(data)

    @staticmethod
    def body_of(handler):
        if "chunked" not in handler.headers.get("Transfer-Encoding", ""):
            return handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        body = b""
        while size := int(handler.rfile.readline().split(b";")[0], 16):
            body += handler.rfile.read(size)
            handler.rfile.readline()
        handler.rfile.readline()
        return body


class FaultyRelay(Relay):
    """Does to any server's requests what the simulators do to theirs; the faults have their words."""

    def __init__(self, target, public=None):
        super().__init__(target)
        # The port by which the machines know the server, where requests must name the server's own port.
        self.public = public
        self.lock = threading.Lock()
        self.random = random.Random(0)
        # (the fault, its share of all requests)
        self.faults = []
        self.latency = 0.0
        # (how many requests a second, the status that is answered to the others)
        self.limit = None
        self.recent = collections.deque()
        self.counts = collections.Counter()
        self.received = 0
        # The contents that the server took: their digests.
        self.taken = set()

    def named(self, name, value):
        if self.public is not None and name.lower() in ("destination", "host", "if"):
            return value.replace(f"127.0.0.1:{self.public}", f"127.0.0.1:{self.target}")
        return value

    def fair(self):
        with self.lock:
            self.faults, self.latency, self.limit = [], 0.0, None

    def forward(self, handler):
        with self.lock:
            fault = next((fault for fault, share in self.faults
                          if self.random.random() < share), {})
            kind = fault.get("fault")
            latency, is_over = self.latency, self.is_over()
            if is_over:
                kind = "limit"
            if kind:
                self.counts[f"{kind} {fault['status']}" if kind == "status" else kind] += 1
        time.sleep(latency)
        if kind == "cut_upload":
            length = int(handler.headers.get("Content-Length", 0))
            handler.rfile.read(min(length, fault["bytes"]))
            raise Cut
        body = self.body_of(handler)
        with self.lock:
            self.received += len(body)
        match kind:
            case "limit":
                return self.refuse(handler, self.limit[1] if self.limit else 503, 1)
            case "status":
                return self.refuse(handler, fault["status"], fault.get("retry_after"))
            case "html":
                return self.give(handler, fault["status"], [("Content-Type", "text/html")],
                                 b"<html><body>Error</body></html>")
            case "no_answer":
                raise Cut
            case "stall":
                time.sleep(fault["seconds"])
                raise Cut
        answer, data = self.ask(handler, body)
        if handler.command == "PUT" and answer.status < 300:
            with self.lock:
                self.taken.add(hashlib.sha256(body).hexdigest())
        match kind:
            case "done_but_status":
                return self.refuse(handler, fault["status"])
            case "done_but_no_answer":
                raise Cut
            case "truncated":
                data = data[:fault["bytes"]]
        self.give(handler, answer.status, answer.getheaders(), data,
                  fault["bytes"] if kind == "cut_download" else None)

    def refuse(self, handler, status, retry_after=None):
        headers = [] if retry_after is None else [("Retry-After", str(retry_after))]
        self.give(handler, status, headers, b"")

    def is_over(self):
        """Whether a request is one too many; the lock is held."""
        if self.limit is None:
            return False
        now = time.monotonic()
        while self.recent and now - self.recent[0] > 1:
            self.recent.popleft()
        if len(self.recent) >= self.limit[0]:
            return True
        self.recent.append(now)
        return False


class HoldingRelay(Relay):
    """Gives no answer to the first upload of one name, and delays every read of it until `may_read`."""

    def __init__(self, target, name):
        super().__init__(target)
        self.place = f"/{name}"
        self.uploads = 0
        self.has_arrived = threading.Event()
        self.is_read = threading.Event()
        self.may_read = threading.Event()

    def forward(self, handler):
        body = self.body_of(handler)
        if handler.command == "GET" and handler.path == self.place:
            self.is_read.set()
            self.may_read.wait(600)
        # What is sent comes under another name first.
        if handler.headers.get("Destination", handler.path).endswith(self.place) and (
                handler.command in ("MOVE", "PUT")):
            self.uploads += 1
            if self.uploads == 1:
                self.ask(handler, body)
                self.has_arrived.set()
                self.may_read.wait(600)
                raise Cut
        self.hand_on(handler, body)

    def hand_on(self, handler, body):
        answer, data = self.ask(handler, body)
        self.give(handler, answer.status, answer.getheaders(), data)

    def shut(self):
        self.may_read.set()
        super().shut()
