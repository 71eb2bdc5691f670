"""A gate before the viewer's server: it lets in those who know a token.

A browser that opens the address with the token gets a cookie, which counts from then on, for pages and WebSockets
alike. Requests that pass are handed on unchanged, one connection for each.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

_HEAD = 1 << 16  # bytes of a request before its body, at most
_PATIENCE = 10.0  # s, for a request to come
_CLOSING = 0.05  # s, for connections to close
_REFUSED = (
    b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
    b"This viewer wants the whole address that was printed when it started, with its token.\n"
)


class Gate:
    """A proxy that listens on one port and forwards to another port of this machine.

    Attributes:
        token: the token that a browser has to know.
    """

    def __init__(self, host: str, port: int, behind: int) -> None:
        """Starts the gate in a thread of its own.

        Raises:
            OSError: if the port cannot be listened on.
        """
        self.token, self._behind = secrets.token_urlsafe(24), behind
        self._cookie = f"coupler-{port}"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="coupler-gate", daemon=True)
        self._thread.start()
        opened = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._serve, host, port, limit=_HEAD), self._loop
        )
        try:
            self._server = opened.result()
        except OSError:
            self._end()
            raise

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._end()

    async def _close(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(_CLOSING)

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _PATIENCE)
                answer = self._answer(head)
                if answer is None:
                    await self._hand_on(_closing(head), reader, writer)
                else:
                    writer.write(answer)
                    await writer.drain()
        finally:
            writer.close()

    def _answer(self, head: bytes) -> bytes | None:
        """The gate's own answer to a request; None for a request that may pass."""
        first, *lines = head.decode("latin-1").split("\r\n")
        target = urlsplit(first.split(" ")[1] if first.count(" ") == 2 else "/")
        given = parse_qs(target.query).get("token", [""])[0]
        if given and secrets.compare_digest(given.encode(), self.token.encode()):
            cookie = f"{self._cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
            return (
                f"HTTP/1.1 303 See Other\r\nLocation: /\r\nSet-Cookie: {cookie}\r\nConnection: close\r\n\r\n".encode()
            )
        cookies = SimpleCookie()
        with suppress(CookieError):
            for line in lines:
                if line.lower().startswith("cookie:"):
                    cookies.load(line[7:].strip())
        known = cookies[self._cookie].value if self._cookie in cookies else ""
        return None if secrets.compare_digest(known.encode(), self.token.encode()) else _REFUSED

    async def _hand_on(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection("127.0.0.1", self._behind)
        outer.write(head)
        ways = [asyncio.ensure_future(_copied(reader, outer)), asyncio.ensure_future(_copied(inner, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            outer.close()


def _closing(head: bytes) -> bytes:
    """The request, asking for the connection to be closed after its answer, unless it is for a WebSocket.

    So each request comes through the gate by itself, even from a proxy that shares connections.
    """
    lines = head.split(b"\r\n")
    if any(line.lower().startswith(b"upgrade:") for line in lines):
        return head
    kept = [line for line in lines if not line.lower().startswith((b"connection:", b"keep-alive:"))]
    return b"\r\n".join([kept[0], b"Connection: close", *kept[1:]])


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
