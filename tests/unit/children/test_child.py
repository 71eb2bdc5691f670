"""A child process: what it answers, and what becomes of one that fails, hangs, crashes, lies or is interrupted."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from coupler.children import Child, ChildError
from coupler.children.answers import HEAD, decode, encode

JOB = """
import ctypes, os, signal, sys, time

calls = 0

def prepare():
    import numpy

def run(request):
    global calls
    calls += 1
    what = request["what"]
    if what == "add":
        import numpy as np
        return {"calls": calls, "environment": dict(os.environ)}, {"sum": np.arange(3.0), "none": np.zeros((0, 2))}
    if what == "sleep":
        time.sleep(100)
    if what == "raise":
        raise KeyError("of its own")
    if what == "exit":
        sys.exit("so be it")
    if what == "quit":
        os._exit(0)
    if what == "crash":
        os.abort()
    if what == "read":
        return {"text": open(request["path"]).read()}, {}
    if what == "swallow":
        try:
            open(request["path"])
        except OSError:
            return {"text": ""}, {}
    if what == "lie":
        return {"text": "x"}, {"array": type("Odd", (), {"dtype": type("D", (), {"str": "|O"}), "shape": (1,),
                                                        "tobytes": lambda self: b"12345678"})()}
    return {}, {}
"""


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "folder").mkdir()
    own = Child(tmp_path / "job.py", 5, 4 << 30)
    yield own
    own.end()


def failure(child: Child, what: str, folder: Path, **more: str) -> ChildError:
    with pytest.raises(ChildError) as told:
        child.ask({"what": what} | more, [folder])
    return told.value


def test_names_numbers_and_arrays_come_back(child: Child, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "of the caller")
    header, arrays = child.ask({"what": "add"}, [tmp_path / "folder"])
    np.testing.assert_array_equal(arrays["sum"], [0.0, 1.0, 2.0])
    assert arrays["none"].shape == (0, 2)
    assert "SECRET" not in header["environment"] and "HOME" not in header["environment"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each request has a process of its own")
def test_a_job_leaves_nothing_to_the_next_and_the_process_stays(child: Child, tmp_path: Path) -> None:
    for _ in range(3):
        assert child.ask({"what": "add"}, [tmp_path / "folder"])[0]["calls"] == 1
    first = child._process
    for what in ("raise", "exit", "quit", "crash"):
        failure(child, what, tmp_path / "folder")
    assert child.ask({"what": "add"}, [tmp_path / "folder"])[0]["calls"] == 1
    assert child._process is first


@pytest.mark.parametrize(
    ("what", "kind", "told"),
    [
        ("raise", "KeyError", "of its own"),
        ("exit", "SystemExit", "so be it"),
        ("quit", "crash", "its process crashed"),
        ("crash", "crash", "its process crashed"),
        ("lie", "crash", "its process ended"),
    ],
)
def test_what_goes_wrong_is_one_error(what: str, kind: str, told: str, child: Child, tmp_path: Path) -> None:
    error = failure(child, what, tmp_path / "folder")
    assert error.kind == kind and told in str(error)


def test_a_hang_is_ended(child: Child, tmp_path: Path) -> None:
    child.seconds = 1
    error = failure(child, "sleep", tmp_path / "folder")
    assert error.kind == "time" and "longer than 1 s" in str(error)


@pytest.mark.parametrize("what", ["read", "swallow"])
def test_what_a_job_tries_to_read_elsewhere_is_told_even_if_it_hides_it(
    what: str, child: Child, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("text")
    error = failure(child, what, tmp_path / "folder", path=str(secret))
    assert error.kind == "PermissionError" and str(secret) in str(error)
    (tmp_path / "folder" / "own").write_text("text")
    assert child.ask({"what": "read", "path": str(tmp_path / "folder" / "own")}, [tmp_path / "folder"])[0] == {
        "text": "text"
    }


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="there are no signals")
def test_an_interrupt_ends_the_child_and_the_next_request_has_another(child: Child, tmp_path: Path) -> None:
    child.seconds = 300  # under any load
    child.ask({"what": "add"}, [tmp_path / "folder"])
    process, main = child._process, threading.main_thread().ident
    assert process is not None and main is not None
    timer = threading.Timer(0.3, signal.pthread_kill, [main, signal.SIGINT])
    timer.start()
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # in a shell's background they are ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            child.ask({"what": "sleep"}, [tmp_path / "folder"])
    finally:
        signal.signal(signal.SIGINT, handler)
    assert process.poll() is not None
    assert child.ask({"what": "add"}, [tmp_path / "folder"])[0]["calls"] == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked")
def test_a_fork_of_this_process_has_a_child_of_its_own(child: Child, tmp_path: Path) -> None:
    child.ask({"what": "add"}, [tmp_path / "folder"])
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = child.ask({"what": "add"}, [tmp_path / "folder"])[0]["calls"] - 1
            child.end()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert child.ask({"what": "add"}, [tmp_path / "folder"])[0]["calls"] == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x" * 40,
        (5).to_bytes(HEAD, "little") + b"[1,2]",
        encode({"a": 1}, {"a": np.zeros(4)})[HEAD:-1],
        encode({}, {"a": np.zeros(2, complex)})[HEAD:],
        (2**60).to_bytes(HEAD, "little") + b"{}",
        encode({}, {"a": np.zeros(4)})[HEAD:].replace(b'"<f8"', b"[{}] "),
    ],
)
def test_a_message_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(data)
