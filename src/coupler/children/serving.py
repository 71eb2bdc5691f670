"""The side of a child: it waits for requests, and does each in a fork of its own, confined, that ends with it.

Run as a script, by its path, with the job's file and the folders of modules as arguments. The job is a module with two
functions: `prepare()` imports what it needs, once, and `run(request)` returns a header and arrays for `answers.encode`.
What one request leaves behind, be it a hang, a crash or a broken library, the next one does not see.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sys
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

MOST = 256 << 20  # bytes of an answer


def main() -> None:
    """Serves until its input ends, which it does when the process that asks ends."""
    job_file, modules = sys.argv[1:3]
    sys.path[:] = json.loads(modules)
    answers, confinement = (_module(Path(__file__).with_name(f"{name}.py")) for name in ("answers", "confinement"))
    job, incoming, outgoing = _module(Path(job_file)), sys.stdin.buffer, sys.stdout.buffer
    sys.stdin, sys.stdout = open(os.devnull), open(os.devnull, "w")  # noqa: SIM115 - for as long as it lives
    unready = _prepared(job)
    while head := incoming.read(answers.HEAD):
        request, _ = answers.decode(incoming.read(answers.length_of(head)))
        if unready:
            answer = answers.encode(unready)
        elif hasattr(os, "fork"):
            answer = _forked(answers, confinement, job, request)
        else:
            answer = _done(answers, confinement, job, request)
        outgoing.write(answer)
        outgoing.flush()


def _module(path: Path) -> ModuleType:
    """The module in a file, without the package that it is in."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _prepared(job: Any) -> dict[str, Any]:
    """A header with the error that preparing the job raised; empty if it raised none."""
    try:
        job.prepare()
    except Exception as error:
        return _failure(error)
    return {}


def _failure(error: BaseException) -> dict[str, Any]:
    return {"failed": type(error).__name__, "why": str(error)[:10_000]}


def _forked(answers: Any, confinement: Any, job: Any, request: dict[str, Any]) -> bytes:
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.close(reader)
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in range(3):  # the job must not reach the pipes to the process that asks
                os.dup2(null, descriptor)
            with open(writer, "wb") as pipe:
                pipe.write(_done(answers, confinement, job, request))
        finally:
            os._exit(1)
    os.close(writer)
    with open(reader, "rb") as pipe:
        data = _whole(answers, pipe)
    if data is None:
        os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    if data is not None and len(data) > answers.HEAD:
        return data
    return answers.encode({"died": os.waitstatus_to_exitcode(status) if data is not None else "too much"})


def _whole(answers: Any, pipe: BinaryIO) -> bytes | None:
    """The one message in a pipe; empty if it is incomplete, None if it is too long."""
    head = pipe.read(answers.HEAD)
    length = answers.length_of(head)
    if length > MOST:
        return None
    body = pipe.read(length)
    return head + body if len(body) == length else b""


def _libraries() -> list[str]:
    """The folders of Python's own and of installed modules, some of which are imported late."""
    paths = sysconfig.get_paths()
    folders = {os.path.realpath(paths[kind]) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    return sorted(folder for folder in folders if os.path.isdir(folder))


def _done(answers: Any, confinement: Any, job: Any, request: dict[str, Any]) -> bytes:
    """The answer of a job, in this process, which is confined from then on."""
    try:
        folders = [*request["folders"], *_libraries()]
        if hasattr(os, "fork"):
            confinement.confine(folders, request["seconds"], request["memory"])
        refused = confinement.watch(folders)
        try:
            answer = job.run(request)
        finally:
            if refused:
                raise PermissionError(f"it tries to {refused[0]}") from None
        return answers.encode(*answer)
    except BaseException as error:  # a job may raise anything, and so may what it read
        return answers.encode(_failure(error))


if __name__ == "__main__":
    main()
