"""mitmproxy addon: requests to a simulated service's real host names go to its simulator.

The file named by OORT_PORT_FILE is what oort-simulate wrote. Anything else is refused: tests speak
to nobody outside of this machine.
"""

import json
import os

from mitmproxy import http

with open(os.environ["OORT_PORT_FILE"]) as file:
    PORTS = {
        host: service["port"]
        for service in json.load(file).values()
        for host in service["hosts"]
    }


def requestheaders(flow: http.HTTPFlow):
    host = flow.request.pretty_host
    if host not in PORTS:
        flow.response = http.Response.make(502, b"not simulated: " + host.encode())
        return
    name = flow.request.headers.get("Host", host)
    flow.request.scheme = "http"
    flow.request.host = "127.0.0.1"
    flow.request.port = PORTS[host]
    # The simulator knows by this field which of its hosts was meant.
    flow.request.headers["Host"] = name


def request(flow: http.HTTPFlow):
    # A body without a length, as rclone sends it over HTTP/2, would go on over HTTP/1.1 without a
    # frame, and so not at all.
    if flow.request.raw_content and "transfer-encoding" not in flow.request.headers:
        flow.request.headers["content-length"] = str(len(flow.request.raw_content))


def responseheaders(flow: http.HTTPFlow):
    # Bodies of any size pass through without lying in memory.
    flow.response.stream = True
