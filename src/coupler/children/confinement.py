"""Confines a process for good: it gives up time, memory, files, other processes and the network.

What the system offers is used, and what it lacks is passed over. Everywhere: a hook that sees what Python is about to
do. On POSIX: limits of time, and of what may be written. On Linux: Landlock, by which the kernel itself refuses all
files outside some folders, and a filter of system calls, by which it refuses other programs, processes and sockets.
Neither needs any privilege, and neither can be undone.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

# Prefixes of Python's audit events that no job needs. They stop well-behaved code; the kernel stops the rest.
_REFUSED = (
    *("subprocess.", "socket.", "ctypes.", "shutil.", "tempfile.", "urllib.", "http.", "ftplib.", "smtplib.", "pty."),
    *("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.kill", "os.startfile"),
    *("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown"),
    *("os.chdir", "os.setxattr", "os.utime", "winreg.", "msvcrt.", "syslog.", "webbrowser.", "signal."),
)
_LOOKING = {"open", "os.listdir", "os.scandir", "os.walk"}  # events that name a path


def confine(folders: Sequence[str], seconds: int, memory: int) -> None:
    """Confines this process, which has one thread.

    Args:
        folders: the only folders that it may read from then on.
        seconds: the time after which it is ended.
        memory: the most bytes that it may use.
    """
    with suppress(ImportError):  # POSIX
        _limit(seconds, memory)
    if sys.platform == "linux":
        with suppress(OSError):  # an old kernel, or one without them
            _restrict_files(folders)
        with suppress(OSError):
            _restrict_calls()


def watch(folders: Sequence[str]) -> list[str]:
    """Refuses forbidden actions of Python code from here on; attempts are added to the list that is returned."""
    inside = tuple(os.path.realpath(folder) for folder in folders)
    refused: list[str] = []

    def refuse(what: str) -> None:
        refused.append(what)
        raise PermissionError(f"it tries to {what}")

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _LOOKING:
            path = os.fsdecode(arguments[0]) if isinstance(arguments[0], str | bytes | os.PathLike) else ""
            real = os.path.realpath(path or ".")
            if not isinstance(arguments[0], int) and not any(_is_within(real, folder) for folder in inside):
                refuse(f"read {real}, outside its folder and the named packages")
            if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
                refuse(f"write {real}")
        elif event.startswith(_REFUSED):
            refuse(f"do what no file needs ({event})")

    sys.addaudithook(hook)
    return refused


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _limit(seconds: int, memory: int) -> None:
    import resource
    import signal

    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends the process, also deep in a library
    signal.alarm(seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds + 1, seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # pipes are no files
    with suppress(ValueError, OSError):  # not on macOS
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


# Landlock: see linux/landlock.h

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, on every architecture
_READ = 0b1100  # files and folders
_HANDLED = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # by version: how many rights to files it knows; later ones as the last


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def _called(function: Callable[..., int], *arguments: Any) -> int:
    result = function(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), "the kernel refuses")
    return result


def _restrict_files(folders: Sequence[str]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    version = _called(libc.syscall, _CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    rules = _Ruleset((1 << _HANDLED.get(version, 16)) - 1, 0b11 if version >= 4 else 0, 0b11 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _called(libc.syscall, _CREATE, ctypes.byref(rules), ctypes.c_size_t(size), ctypes.c_uint32(0))
    for folder in folders:
        parent = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        rule = _Beneath(_READ, parent)
        _called(libc.syscall, _ADD, ruleset, 1, ctypes.byref(rule), ctypes.c_uint32(0))
        os.close(parent)
    _called(libc.prctl, 38, 1, 0, 0, 0)  # no new privileges
    _called(libc.syscall, _RESTRICT, ruleset, ctypes.c_uint32(0))
    os.close(ruleset)


# The filter of system calls: see linux/seccomp.h and linux/filter.h

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000  # on x86-64, numbers from here on are those of another interface
_EPERM, _ENOSYS = 1, 38
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE3 = 435
_THREAD = 0x10000  # a flag of clone: a thread, not a process
_DENIED = {
    # fork vfork execve execveat kill tkill tgkill ptrace socket socketpair setsid setpgid unshare setns mount
    # rt_sigqueueinfo rt_tgsigqueueinfo process_vm_readv process_vm_writev keyctl add_key request_key shmget bpf
    # perf_event_open userfaultfd prlimit64
    "x86_64": (
        *(57, 58, 59, 322, 62, 200, 234, 101, 41, 53, 112, 109, 272, 308, 165, 129, 297, 310, 311, 250, 248, 249),
        *(29, 321, 298, 323, 302),
    ),
    "aarch64": (
        *(221, 281, 129, 130, 131, 117, 198, 199, 157, 154, 97, 268, 40, 138, 240, 270, 271, 219, 217, 218, 194, 280),
        *(241, 282, 261),
    ),
}
_DENIED_EVERYWHERE = (424, 425, 426, 427, 428, 429, 434, 438)  # pidfd_*, io_uring_*, open_tree, move_mount


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("filter", ctypes.POINTER(_Instruction)))


def _restrict_calls() -> None:
    machine = platform.machine()
    if machine not in _ARCHITECTURES or sys.maxsize < 2**32:
        return
    load, equal, at_least, has, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, end, fail = 0x7FFF0000, 0x80000000, 0x00050000
    steps = [(load, 0, 0, 4), (equal, 1, 0, _ARCHITECTURES[machine]), (answer, 0, 0, end), (load, 0, 0, 0)]
    if machine == "x86_64":
        steps += [(at_least, 0, 1, _X32), (answer, 0, 0, fail | _ENOSYS)]
    for number in (*_DENIED[machine], *_DENIED_EVERYWHERE):
        steps += [(equal, 0, 1, number), (answer, 0, 0, fail | _EPERM)]
    steps += [(equal, 0, 1, _CLONE3), (answer, 0, 0, fail | _ENOSYS)]  # for which clone is taken then
    steps += [(equal, 0, 3, _CLONE[machine]), (load, 0, 0, 16), (has, 1, 0, _THREAD), (answer, 0, 0, fail | _EPERM)]
    steps += [(answer, 0, 0, allow)]
    instructions = (_Instruction * len(steps))(*(_Instruction(*step) for step in steps))
    program = _Program(len(steps), instructions)
    libc = ctypes.CDLL(None, use_errno=True)
    _called(libc.prctl, 38, 1, 0, 0, 0)
    _called(libc.prctl, 22, 2, ctypes.byref(program), 0, 0)
