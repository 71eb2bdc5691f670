"""The server for browsers, which only this machine can reach unless asked otherwise."""

from __future__ import annotations

import socket
import threading
from contextlib import redirect_stdout
from io import StringIO
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from coupler.forks import held_at_fork, imports
from coupler.model import ModelError
from coupler.view.browser.gate import Gate

if TYPE_CHECKING:
    from viser import ViserServer

LOOPBACK, PORT = "127.0.0.1", 8080
_MOST = 100  # ports that are tried
_STARTING = held_at_fork(threading.Lock())  # between finding a free port and listening on it


class Server:
    """A running viser server, with a gate in front if other machines may reach it.

    Attributes:
        viser: the server.
        url: the address to open, with the token that it may need.
    """

    def __init__(self, viser: ViserServer, url: str, gate: Gate | None) -> None:
        self.viser, self.url, self._gate = viser, url, gate

    def stop(self) -> None:
        if self._gate is not None:
            self._gate.stop()
        with redirect_stdout(StringIO()):  # where viser prints that it stopped
            self.viser.stop()


def started(host: str = LOOPBACK, port: int = PORT) -> Server:
    """Starts a server.

    On an address of this machine alone, anybody on this machine may look. On any other address, a browser needs the
    token that the address to open contains; others are refused.

    Args:
        host: the address to listen on; "0.0.0.0" for all.
        port: the first to try; one in use takes the next.

    Raises:
        ModelError: without viser, for an address that is not this machine's, or if no port is free.
    """
    try:
        with imports():
            import viser
    except ImportError:
        raise ModelError("the viewer needs viser: pip install 'coupler[view]'") from None
    if not isinstance(port, int) or isinstance(port, bool) or not 0 < port < 65536:
        raise ModelError(f"port must be a number from 1 to 65535, got {port!r}")
    with _STARTING:
        return _started(viser, host, port)


def _started(viser: Any, host: str, port: int) -> Server:
    free = _free_port(host, port)
    if _is_loopback(host):
        server = _quiet(viser, host, free)
        return Server(server, f"http://{_in_url(host)}:{server.get_port()}", None)
    behind = _quiet(viser, LOOPBACK, _free_port(LOOPBACK, 0))
    try:
        gate = Gate(host, free, behind.get_port())
    except OSError as error:
        behind.stop()
        raise ModelError(f"host {host!r}, port {free}: it cannot be opened ({error.strerror})") from None
    shown = socket.gethostname() if host in ("0.0.0.0", "::") else host
    return Server(behind, f"http://{_in_url(shown)}:{free}/?token={gate.token}", gate)


def _quiet(viser: Any, host: str, port: int) -> ViserServer:
    with redirect_stdout(StringIO()):  # where viser prints its own address, which is not always the one to open
        return viser.ViserServer(host=host, port=port, verbose=False)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _free_port(host: str, first: int) -> int:
    """The first port from one on that nothing listens on; any, from 0 on."""
    try:
        family, *_, place = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
    except OSError:
        raise ModelError(f"host {host!r}: there is no such address; give one of this machine's, or 0.0.0.0") from None
    why = ""
    for port in range(first, min(first + _MOST, 65536)):
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((place[0], port))
            except OSError as error:
                why = error.strerror or str(error)
                continue
            return probe.getsockname()[1]
    raise ModelError(f"host {host!r}: no port from {first} to {first + _MOST - 1} can be opened ({why})")
