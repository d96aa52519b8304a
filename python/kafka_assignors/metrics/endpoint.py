"""The HTTP server of the exporter: `/metrics`, `/-/healthy` and `/-/ready`."""

from __future__ import annotations

import socket
import socketserver
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from kafka_assignors.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_assignors.metrics.exporter import Page

__all__ = ["Endpoint", "address_of"]

# If a client sends no request, or reads no answer, its connection is closed after this number of seconds.
_PATIENCE_S = 10.0
_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_HOME = b"""<!doctype html><title>kafka-assignors exporter</title>
<p>Consumer groups of a Kafka cluster: <a href="/metrics">metrics</a>.
"""


def address_of(text: str) -> tuple[str, int]:
    """Host and port of `--listen`; IPv6 addresses in brackets.

    Raises:
        OptionError: it is something else.

    >>> address_of("[::1]:9464")
    ('::1', 9464)
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise OptionError(
            f"--listen is {text!r}; give HOST:PORT, such as 127.0.0.1:9464, or 0.0.0.0:9464 for everybody"
        )
    return host, int(port)


class Endpoint(ThreadingHTTPServer):
    """A server on this address; it serves in `serve_forever`, each request on a thread of its own.

    Args:
        host: a name or an address.
        port: 0 for any that is free.
        page: gives the newest metrics.

    Raises:
        OptionError: the address cannot be used: another process listens there, for example.
    """

    daemon_threads = True
    # A restarted exporter need not wait for the sockets of the old one.
    allow_reuse_address = True
    # Otherwise two exporters could listen at one address, and a scrape would get the answer of one of them at random.
    allow_reuse_port = False

    def __init__(self, host: str, port: int, page: Callable[[], Page]) -> None:
        self.page = page
        try:
            family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            self.address_family = family
            super().__init__(where[:2], _Handler)  # type: ignore[arg-type]
        except OSError as error:
            raise OptionError(
                f"--listen is {host}:{port}, where nothing can listen: {error.strerror or error}; give another "
                "address, or end the process that listens there"
            ) from None

    def server_bind(self) -> None:
        """Binds as a `TCPServer`: an `HTTPServer` also looks the host name up, which may take long."""
        socketserver.TCPServer.server_bind(self)
        host, port = self.server_address[:2]
        self.server_name, self.server_port = str(host), int(port)

    def handle_error(self, request: object, client_address: object) -> None:
        """Prints nothing: a client that closes its connection early is no error of the exporter."""


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint
    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE_S

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            page = self.server.page()
            if "gzip" in self.headers.get("Accept-Encoding", ""):
                self._answer(_TEXT, page.packed, "gzip")
            else:
                self._answer(_TEXT, page.plain)
        elif path in ("/-/healthy", "/-/ready"):
            self._answer("text/plain; charset=utf-8", b"ok\n")
        elif path == "/":
            self._answer("text/html; charset=utf-8", _HOME)
        else:
            self.send_error(404, "there is /metrics, /-/healthy and /-/ready")

    do_HEAD = do_GET  # noqa: N815 (the name that http.server calls)

    def _answer(self, kind: str, body: bytes, encoding: str = "") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        return "kafka-assignors"

    def log_message(self, format: str, *arguments: object) -> None:
        """Logs nothing: there is a scrape every few seconds."""
