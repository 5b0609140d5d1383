"""mitmproxy addon: requests to a service's real hosts go to its simulator, their Host field kept.

Anything else is refused: a test reaches nothing but loopback.
"""

import os

from mitmproxy import http

SIMULATOR = os.environ["OORT_SIMULATOR"]
HOSTS = set(os.environ["OORT_HOSTS"].split(","))


def request(flow: http.HTTPFlow) -> None:
    host = flow.request.pretty_host
    if host not in HOSTS:
        flow.response = http.Response.make(502, f"{host} is not simulated".encode())
        return
    address, port = SIMULATOR.removeprefix("http://").split(":")
    flow.request.scheme = "http"
    flow.request.host = address
    flow.request.port = int(port)
    flow.request.headers["Host"] = host
