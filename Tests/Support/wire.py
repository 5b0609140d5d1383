"""A server that does on the wire what well-behaved ones do not; and a TLS-inspecting proxy.

usage: wire.py [CERTIFICATE KEY]   With a certificate, CONNECT is answered and the connection then
served here, as such proxies do; `--tls` as third argument speaks TLS from the start.
Prints its port, serves until its standard input ends. Python's standard library only.
"""

import gzip
import hashlib
import os
import socket
import ssl
import sys
import threading
import time

tls = None
if len(sys.argv) > 2:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(sys.argv[1], sys.argv[2])
sent = 0  # Bytes of the last /bytes answer that went out.
gone = 0  # Connections that the client closed while being served.
seen = {}  # Requests by path.
lock = threading.Lock()
block = hashlib.sha256(b"oort").digest() * 2048  # 64 KiB


def serve(connection, via=""):
    global sent, gone
    stream = connection.makefile("rb")
    served = 0  # Requests on this connection.
    while True:
        line = stream.readline()
        if not line:
            return
        method, target, _ = line.decode().split(" ", 2)
        headers = {}
        while (field := stream.readline().strip()):
            name, _, value = field.decode().partition(":")
            headers[name.lower()] = value.strip()
        if method == "CONNECT":
            connection.sendall(b"HTTP/1.1 200 Connection established\r\nX-Proxy: 1\r\n\r\n")
            return serve(tls.wrap_socket(connection, server_side=True), via=target)
        if "://" in target:
            via, target = target.split("/", 3)[2], "/" + target.split("/", 3)[3]
        path, _, query = target.partition("?")
        served += 1
        with lock:
            seen[path] = seen.get(path, 0) + 1

        def head(status, length, *fields):
            lines = [f"HTTP/1.1 {status}", f"Content-Length: {length}", f"X-Via: {via}", *fields]
            connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())

        def answer(text, *fields):
            head("200 OK", len(text), *fields)
            connection.sendall(text.encode())

        length = int(headers.get("content-length", "0"))
        if path == "/stop-reading":  # Takes the head and never the body.
            time.sleep(600)
        if path == "/hang-up-if-reused" and served > 1:
            # A part of the body, then the end of this side, as when a server's patience is over.
            stream.read(1 << 20)
            connection.shutdown(socket.SHUT_WR)
            while stream.read(1 << 16):
                pass
            return
        digest, left = hashlib.sha256(), length
        while left > 0:
            part = stream.read(min(left, 1 << 16))
            if not part:
                break
            digest.update(part)
            left -= len(part)
        if path in ("/hash", "/hang-up-if-reused"):
            answer(f"{length - left} {digest.hexdigest()}")
        elif path == "/headers":
            answer("\n".join(f"{n}: {v}" for n, v in headers.items()))
        elif path == "/compressed":
            text = gzip.compress(b"compressed " * 1000)
            head("200 OK", len(text), "Content-Encoding: gzip")
            connection.sendall(text[: len(text) // 2] if query == "cut" else text)
            if query == "cut":
                connection.shutdown(socket.SHUT_RDWR)
                return
        elif path == "/not-compressed":
            head("200 OK", 5, "Content-Encoding: gzip")
            connection.sendall(b"plain")
        elif path == "/bytes":
            total, out = int(query), 0
            sent = 0
            head("200 OK", total)
            try:
                while out < total:
                    connection.sendall(block[: min(len(block), total - out)])
                    out += min(len(block), total - out)
                    sent = out
            except OSError:
                with lock:
                    gone += 1
                return
        elif path == "/sent":
            answer(str(sent))
        elif path == "/gone":
            answer(str(gone))
        elif path == "/count":
            answer(str(seen.get(query, 0)))
        elif path == "/cut":
            head("200 OK", 1000)
            connection.sendall(b"x" * 500)
            connection.shutdown(socket.SHUT_RDWR)
            return
        elif path == "/stall":
            head("200 OK", 1000)
            connection.sendall(b"x" * 10)
            stream.readline()
            with lock:
                gone += 1
            return
        elif path == "/silent":
            stream.readline()
            return
        elif path == "/drop":
            connection.shutdown(socket.SHUT_RDWR)
            return
        elif path == "/redirect":
            head("302 Found", 0, "Location: http://127.0.0.1:1/elsewhere")
        elif path == "/continue":
            connection.sendall(b"HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n")
            answer("done", "X-Empty:", "X-Twice: a", "X-Twice: b")
        else:
            head("404 Not Found", 0)


def safely(connection):
    try:
        if tls and len(sys.argv) > 3:
            connection = tls.wrap_socket(connection, server_side=True)
        serve(connection)
    except OSError:
        pass
    finally:
        try:
            connection.close()
        except OSError:
            pass


def accept(listener):
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=safely, args=(connection,), daemon=True).start()


listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=accept, args=(listener,), daemon=True).start()
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
os._exit(0)
