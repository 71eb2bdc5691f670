"""The gate before the viewer: who knows the token is let in, nobody else."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from coupler.view.browser.gate import Gate
from coupler.view.browser.server import _free_port


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"inside")

    def log_message(self, format: str, *given: object) -> None:
        pass


@pytest.fixture
def gate() -> Iterator[tuple[Gate, int]]:
    behind = HTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=behind.serve_forever)
    thread.start()
    port = _free_port("127.0.0.1", 8500)
    gate = Gate("127.0.0.1", port, behind.server_port)
    yield gate, port
    gate.stop()
    behind.shutdown()
    behind.server_close()
    thread.join()


def answer(port: int, path: str = "/", cookie: str = "") -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path, headers={"Cookie": cookie} if cookie else {})
    got = connection.getresponse()
    found = got.status, got.getheader("Set-Cookie") or "", got.read().decode()
    connection.close()
    return found


def test_a_stranger_is_refused(gate: tuple[Gate, int]) -> None:
    _, port = gate
    for path, cookie in (("/", ""), ("/?token=guess", ""), ("/", f"coupler-{port}=guess"), ("/", "=;;,\x01")):
        status, _, text = answer(port, path, cookie)
        assert status == 403 and "inside" not in text


def test_the_token_gives_a_cookie_that_opens(gate: tuple[Gate, int]) -> None:
    own, port = gate
    status, cookie, _ = answer(port, f"/?token={own.token}")
    assert status == 303 and "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert answer(port, "/page", cookie.split(";")[0])[::2] == (200, "inside")
    assert answer(port, "/page", f"other=1; {cookie.split(';')[0]}")[::2] == (200, "inside")


def test_each_gate_has_its_own_token(gate: tuple[Gate, int]) -> None:
    own, _ = gate
    other = Gate("127.0.0.1", _free_port("127.0.0.1", 8600), 1)
    other.stop()
    assert own.token != other.token and len(own.token) >= 32
