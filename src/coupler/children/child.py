"""The side that asks: a child is started when it is first needed, kept for the next request, and ended if it fails."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from coupler.children import serving
from coupler.children.answers import HEAD, decode, encode, length_of

_STARTING = 60.0  # s that a child may take on top of its job's time, to start on a machine that is busy
_KEPT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "SYSTEMROOT")  # to find libraries
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # a process with several cannot be forked safely
_WARM = hasattr(os, "fork")


class ChildError(Exception):
    """A job that did not end well.

    Attributes:
        kind: the name of the exception in the child; "time", "memory" or "crash" if there was none.
    """

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


class Child:
    """Does a job in a process of its own, which has none of this one's environment, memory or open files.

    Args:
        job: the job's file; see `serving`.
        seconds: the longest time that a request may take.
        memory: the most bytes that the job may use.
    """

    def __init__(self, job: Path, seconds: int, memory: int) -> None:
        self.job, self.seconds, self.memory = job, seconds, memory
        self._process: subprocess.Popen[bytes] | None = None
        self._modules: list[str] = []
        self._lock = threading.Lock()
        self._inherited: list[subprocess.Popen[bytes]] = []
        atexit.register(self.end)
        if _WARM:
            os.register_at_fork(after_in_child=self._forget)

    def ask(self, request: Mapping[str, Any], folders: Iterable[Path]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The job's answer to a request.

        Args:
            request: names and numbers.
            folders: the only ones that the job may read.

        Returns:
            Names and numbers, and arrays by name.

        Raises:
            ChildError: if the job raises anything, takes too long or too much memory, or crashes.
        """
        limits = {"folders": [str(folder) for folder in folders], "seconds": self.seconds, "memory": self.memory}
        with self._lock:
            try:
                answer = self._exchanged(encode({**request, **limits}))
                header, arrays = decode(answer)
            except (OSError, ValueError, EOFError) as error:
                self._end()
                raise ChildError("crash", f"its process ended: {error}") from None
            except BaseException:  # an interrupt: the answer of this job must not be taken for that of the next one
                self._end()
                raise
        _check(header, self.seconds, self.memory)
        return header, arrays

    def end(self) -> None:
        """Ends the child if it runs."""
        with self._lock:
            self._end()

    def _exchanged(self, message: bytes) -> bytes:
        if not _WARM:
            return self._asked_once(message)
        process = self._started()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(message)
        process.stdin.flush()
        until = time.monotonic() + self.seconds + _STARTING
        length = length_of(_read(process.stdout.fileno(), HEAD, until))
        if length > serving.MOST:
            raise ValueError("its answer is too long")
        return _read(process.stdout.fileno(), length, until)

    def _asked_once(self, message: bytes) -> bytes:
        """The answer to a request from a child of its own, for systems on which processes cannot be forked."""
        process = _process(self.job, _modules())
        try:
            answer, _ = process.communicate(message, timeout=self.seconds + _STARTING)
        except subprocess.TimeoutExpired:
            raise ChildError("time", f"it takes longer than {self.seconds} s") from None
        finally:
            process.kill()
            process.wait()
        return answer[HEAD:]

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and (self._process.poll() is not None or self._modules != _modules()):
            self._end()
        if self._process is None:
            self._modules = _modules()
            self._process = _process(self.job, self._modules)
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(OSError):  # it has ended
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)  # and what it has forked
            else:
                process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was not sent
                    pipe.close()
        process.wait()

    def _forget(self) -> None:
        """Called in a forked process: the child belongs to the process that started it; this one will start another."""
        self._lock = threading.Lock()
        if self._process is not None:
            self._inherited.append(self._process)
            self._process = None


def _modules() -> list[str]:
    """The folders of modules, without the working folder, which may be the untrusted file's."""
    return [path for path in sys.path if os.path.isabs(path)]


def _process(job: Path, modules: list[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", "-X", "utf8", serving.__file__, str(job), json.dumps(modules)]
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | _ONE_THREAD
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=null, env=environment, cwd=Path(serving.__file__).parent,
        start_new_session=_WARM,  # Ctrl-C is for this process, which ends the child
    )  # fmt: skip


def _read(descriptor: int, length: int, until: float) -> bytes:
    """A number of bytes from a pipe.

    Raises:
        TimeoutError: if they have not come by the time `until`, s of the monotonic clock.
        EOFError: if the other end is closed before.
    """
    pieces, missing = [], length
    while missing:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            raise TimeoutError("it does not answer")
        piece = os.read(descriptor, min(missing, 1 << 20))
        if not piece:
            raise EOFError("it has closed its output")
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)


def _check(header: dict[str, Any], seconds: int, memory: int) -> None:
    """Refuses the answer of a job that failed."""
    if "died" in header:
        _raise_death(header["died"], seconds)
    if "failed" in header:
        kind, why = str(header["failed"]), str(header.get("why"))
        if kind == "MemoryError":
            raise ChildError("memory", f"it needs more than {memory >> 20} MB of memory")
        raise ChildError(kind, why)


def _raise_death(status: Any, seconds: int) -> None:
    if status == "too much":
        raise ChildError("memory", f"it comes to more than {serving.MOST >> 20} MB")
    names = {-int(each): each.name for each in signal.Signals} if isinstance(status, int) else {}
    if status in (-int(getattr(signal, "SIGALRM", 0)), -int(getattr(signal, "SIGXCPU", 0))):
        raise ChildError("time", f"it takes longer than {seconds} s")
    raise ChildError("crash", f"its process crashed ({names.get(status, status)})")
