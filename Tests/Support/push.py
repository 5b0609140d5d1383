"""A WebSocket server that nobody here wrote (PyPI `websockets`), on a free port, which it prints.

`push.py [CERT KEY]`: with a certificate it speaks TLS. By the path of a connection:

/echo     each text comes back
/parts    each text comes back in frames of seven characters
/ping     asks whether the client is there, and says `there` when it is
/long     a text of 3 MiB comes back
/refuse   answers 403
/end      is ended after the first text, with code 4001
"""

import http
import ssl
import sys

from websockets.sync.server import serve


def talk(connection):
    path = connection.request.path
    for text in connection:
        if path == "/echo":
            connection.send(text)
        elif path == "/parts":
            connection.send(text[place:place + 7] for place in range(0, len(text), 7))
        elif path == "/ping":
            if connection.ping(b"are you there?").wait(60):
                connection.send("there")
        elif path == "/long":
            connection.send("x" * (3 << 20))
        elif path == "/end":
            connection.close(4001, "that is all")
            return


def greet(connection, request):
    if request.path == "/refuse":
        return connection.respond(http.HTTPStatus.FORBIDDEN, "no\n")
    return None


context = None
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
# Its own questions whether the client is there would mix with those of the tests.
with serve(talk, "127.0.0.1", 0, ssl=context, process_request=greet, ping_interval=None,
           max_size=8 << 20) as server:
    print(server.socket.getsockname()[1], flush=True)
    server.serve_forever()
