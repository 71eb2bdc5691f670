"""`coupler convert`: writes a robot in another format, reads it back and compares the two."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree

from coupler.cli.agreement import agreement
from coupler.cli.loading import caught_warnings, load_file, load_robot
from coupler.cli.output import columns, complain, fitted
from coupler.cli.parser import Verb, add_file, add_force, check_out, file_path
from coupler.model import ModelError, Robot
from coupler.model.wording import counted

# Relative: what is left of 16 digits after a file has rounded its numbers and a loop was closed twice.
AGREED = 1e-9


def _add(parser: ArgumentParser) -> None:
    add_file(parser, "IN")
    parser.add_argument("out", metavar="OUT", type=file_path, help="the file to write: .urdf, .xml (MJCF) or .sdf")
    add_force(parser)


def _run(given: Namespace) -> int:
    out: Path = given.out
    check_out(out, given)
    robot = load_robot(given)
    with _restored_on_failure(out), caught_warnings() as messages:
        reread = _save_and_reload(robot, given)
    print(f"saved {out}: {counted(len(robot.bodies), 'body', 'bodies')}, {counted(robot.nv, 'freedom')}")
    for text in (*robot.warnings, *messages):
        print(fitted(text, "  ", "warning: "))
    if reread is None:
        print("not read back and compared: reading MJCF needs MuJoCo, which is not installed")
        return 0
    return _compare(robot, reread)


VERB = Verb("convert", "write a robot as URDF+, MJCF or SDFormat", "coupler convert robot.urdf robot.xml", _add, _run)


@contextmanager
def _restored_on_failure(path: Path) -> Iterator[None]:
    """A context that restores the file, and the folder of its meshes, if anything goes wrong in it."""
    before = path.read_bytes() if path.exists() else None
    meshes = path.with_name(f"{path.stem}_meshes")
    there = meshes.exists()
    try:
        yield
    except BaseException:
        if before is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(before)
        if not there:
            rmtree(meshes, ignore_errors=True)
        raise


def _save_and_reload(robot: Robot, given: Namespace) -> Robot | None:
    """Saves the robot and reads it back; None if MuJoCo, which reads MJCF, is missing."""
    from coupler.io.save import save

    save(robot, given.out)
    if given.out.suffix.lower() == ".xml" and find_spec("mujoco") is None:
        return None
    try:
        return load_file(given.out, packages=dict(given.package), lock_idle=given.lock_idle)
    except ModelError as error:
        raise ModelError(f"not saved, since the written file could not be read back: {error}") from None


def _compare(robot: Robot, reread: Robot) -> int:
    try:
        differences = agreement(robot, reread)
    except ModelError as error:
        complain(f"the written file describes a different robot: {error}")
        return 1
    print("read back and compared at a random state; relative differences:")
    print(columns({what: f"{difference:.2g}" for what, difference in differences.items()}, "  "))
    wrong = [what for what, difference in differences.items() if not difference <= AGREED]
    if wrong:
        complain(f"the written file describes a different robot: see {', '.join(wrong)}")
    return 1 if wrong else 0
