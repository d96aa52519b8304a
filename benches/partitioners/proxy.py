"""A proxy in front of one broker. On each connection it delays the responses, one after the other.

`python -m partitioners.proxy 0.02` prints its port and reads the address of the broker from standard input.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
import threading
import time

__all__: list[str] = []


def main() -> None:
    """Serves until it is killed."""
    hold = float(sys.argv[1])
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        host, _, port = sys.stdin.readline().strip().rpartition(":")
        while True:
            client, _ = server.accept()
            broker = socket.create_connection((host, int(port)))
            for each in (client, broker):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=requests, args=(client, broker), daemon=True).start()
            threading.Thread(target=responses, args=(broker, client, hold), daemon=True).start()


def requests(client: socket.socket, broker: socket.socket) -> None:
    """Forwards the client's bytes at once."""
    with contextlib.suppress(OSError):
        while data := client.recv(65_536):
            broker.sendall(data)
    hang_up(client, broker)


def responses(broker: socket.socket, client: socket.socket, hold: float) -> None:
    """Forwards the broker's responses. Each is delayed, and the next one waits for it."""
    with contextlib.suppress(OSError, EOFError):
        while True:
            size = exactly(broker, 4)
            body = exactly(broker, struct.unpack(">i", size)[0])
            time.sleep(hold)
            client.sendall(size + body)
    hang_up(client, broker)


def exactly(source: socket.socket, count: int) -> bytes:
    """Reads this number of bytes, or raises EOFError."""
    data = bytearray()
    while len(data) < count:
        more = source.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return bytes(data)


def hang_up(*ends: socket.socket) -> None:
    """Closes both sockets, so that the thread of the other one ends, too."""
    for each in ends:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()


if __name__ == "__main__":
    main()
