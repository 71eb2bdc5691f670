"""A confined process: what the kernel refuses it, whatever Python thinks of that, and that it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from coupler.children import confinement

linux = pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's")

SCRIPT = """
import ctypes, importlib.util, json, os, socket, subprocess, sys
spec = importlib.util.spec_from_file_location("confinement", {module!r})
confinement = importlib.util.module_from_spec(spec)
spec.loader.exec_module(confinement)
libc = ctypes.CDLL(None, use_errno=True)
confinement.confine([{folder!r}], {seconds}, 4 << 30)
def tried(act):
    try:
        return repr(act())
    except BaseException as error:
        return type(error).__name__
print(json.dumps({{name: tried(eval("lambda: " + text)) for name, text in {acts!r}.items()}}))
"""


def confined(folder: Path, acts: dict[str, str], seconds: int = 20) -> subprocess.CompletedProcess[str]:
    """A process of its own that confines itself and then tries some acts, with no watch of Python's events."""
    script = SCRIPT.format(module=confinement.__file__, folder=str(folder), acts=acts, seconds=seconds)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)


@linux
def test_the_kernel_refuses_all_but_reading_some_folders(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "file").write_text("text")
    (inside / "link").symlink_to(outside / "file")
    acts = {
        "read inside": f"open({str(inside / 'file')!r}).read()",
        "list inside": f"sorted(os.listdir({str(inside)!r}))",
        "read outside": f"open({str(outside / 'file')!r}).read()",
        "read by a link": f"open({str(inside / 'link')!r}).read()",
        "read by dots": f"open({str(inside / '..' / 'outside' / 'file')!r}).read()",
        "list outside": f"os.listdir({str(outside)!r})",
        "write inside": f"open({str(inside / 'new')!r}, 'w')",
        "delete inside": f"os.unlink({str(inside / 'file')!r})",
        "write outside": f"open({str(outside / 'new')!r}, 'w')",
        "run a program": "subprocess.run(['true'])",
        "run by the shell": "os.system('true')",
        "run in its place": "os.execv('/bin/true', ['true'])",
        "fork": "os.fork()",
        "connect": "socket.socket()",
        "kill its parent": "os.kill(os.getppid(), 0)",
        "trace its parent": "libc.ptrace(16, os.getppid(), 0, 0)",
        "raise its limits": "__import__('resource').setrlimit(0, (100, 100))",
    }
    run = confined(inside, acts)
    found = json.loads(run.stdout or "{}")
    assert found.pop("read inside") == "'text'" and found.pop("list inside") == "['file', 'link']", run.stderr
    assert found.pop("run by the shell") != "0"
    assert found.pop("trace its parent") == "-1"
    assert found.pop("raise its limits") in ("PermissionError", "ValueError")
    assert set(found.values()) <= {"PermissionError", "OSError"}, found
    assert (inside / "file").exists() and not (inside / "new").exists() and not (outside / "new").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals")
def test_a_process_that_sleeps_or_works_for_ever_is_ended(tmp_path: Path) -> None:
    for act in ("__import__('time').sleep(100)", "[0 for a in range(10**9) for b in range(10**9)]"):
        assert confined(tmp_path, {"wait": act}, seconds=1).returncode < 0


@linux
def test_memory_is_bounded(tmp_path: Path) -> None:
    assert json.loads(confined(tmp_path, {"take": "len(bytearray(8 << 30))"}).stdout) == {"take": "MemoryError"}
