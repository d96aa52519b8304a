"""An issuer of tokens for a client's credentials, as an OpenID provider has one (RFC 6749, 4.4)."""

from __future__ import annotations

import http.server
import json
import threading
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from support.secured import unsecured_token
from support.threads import TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Iterator

LIFETIME = 30
GRANT = "grant_type=client_credentials"


@contextmanager
def issuer() -> Iterator[tuple[str, list[str]]]:
    """Runs an issuer; gives its address, and the list of the requests that it receives."""
    asked: list[str] = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            token, _ = unsecured_token("", float(LIFETIME))
            self.send_response(200)
            # librdkafka accepts no other type of content.
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps({"access_token": token, "expires_in": LIFETIME}).encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/token", asked
    finally:
        server.shutdown()
        server.server_close()


def granted(url: str) -> tuple[str, float]:
    """Requests a token and waits for the answer. Returns the token, and for how many seconds it is valid."""
    with urllib.request.urlopen(url, GRANT.encode(), timeout=TIMEOUT) as answer:
        found = json.load(answer)
    return found["access_token"], found["expires_in"]
