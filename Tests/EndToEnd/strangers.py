"""What answers in a server's place: captive portals, other protocols, nothing, an answer without an end;
and certificates that are to be refused.

`cryptography` is there for mitmproxy.
"""

import datetime
import ipaddress
import socket
import ssl
import threading

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

PORTAL = b"<html><head><title>Wi-Fi</title></head><body>Please log in\x1b[2J</body></html>"


def http(body, status="200 OK", kind="text/html", more=""):
    return (f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
            f"Connection: close\r\n{more}\r\n").encode() + body


# What each says to a client that has said something: once, and then without an end.
WORDS = {
    "portal": (http(PORTAL), b""),
    "portal elsewhere": (
        http(b"", "302 Found", more="Location: http://portal.invalid/login?next=1\r\n"), b""),
    "json": (http(b'{"status": "ok", "error": null}', kind="application/json"), b""),
    "empty": (http(b""), b""),
    "nothing": (b"", b""),
    "another protocol": (b"220 \x1b]0;owned\x07 ESMTP\r\n500 what?\r\n", b""),
    "half a head": (b"HTTP/1.1 207 Multi-Status\r\nContent-Ty", b""),
    "half a body": (http(b"<", "207 Multi-Status", "application/xml").replace(
        b"Length: 1", b"Length: 5000"), b""),
    "endless head": (b"HTTP/1.1 207 Multi-Status\r\n", b"X-More: " + b"x" * 4000 + b"\r\n"),
    "endless body": (
        b"HTTP/1.1 207 Multi-Status\r\nContent-Type: application/xml\r\n\r\n<m>", b"<a/>" * 4096),
}


class Stranger:
    """A loopback port at which every connection gets the same words; `None` listens and says nothing."""

    def __init__(self, words, certificate=None):
        self.words = WORDS[words] if isinstance(words, str) else words
        self.context = None
        if certificate is not None:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(certificate)
        self.connections = []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self):
        for end in [self.listener, *self.connections]:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            if self.words is not None:
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        once, again = self.words
        try:
            if self.context is not None:
                connection = self.context.wrap_socket(connection, server_side=True)
            # Who waits to be greeted hears it a little later.
            connection.settimeout(0.3)
            try:
                heard = b""
                while b"\r\n\r\n" not in heard and (more := connection.recv(65536)):
                    heard += more
            except TimeoutError:
                pass
            connection.settimeout(None)
            connection.sendall(once)
            while again:
                connection.sendall(again)
        except (OSError, ssl.SSLError):
            pass
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        connection.close()


def certificate(place, name="127.0.0.1", days=(-1, 30)):
    """Writes a certificate that no authority signed, with its key before it; days from now."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.timezone.utc)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    try:
        alternative = x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        alternative = x509.DNSName(name)
    made = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(subject)
        .public_key(key.public_key()).serial_number(x509.random_serial_number())
        .not_valid_before(now + datetime.timedelta(days=days[0]))
        .not_valid_after(now + datetime.timedelta(days=days[1]))
        .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        .sign(key, hashes.SHA256()))
    place.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                          serialization.NoEncryption())
        + made.public_bytes(serialization.Encoding.PEM))
    return place
