"""`coupler convert`: a robot from one format into another, read again and compared."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from coupler.cli.agreement import agreement
from coupler.cli.loading import heard, load_robot, quietly
from coupler.cli.output import columns, complain, fitted
from coupler.cli.parser import Verb, add_file
from coupler.model import ModelError, Robot
from coupler.model.words import counted

__all__ = ["VERB"]

AGREED = 1e-9  # how far apart two robots may be, as a part of what is compared


def _add(parser: ArgumentParser) -> None:
    add_file(parser, "IN")
    parser.add_argument("out", metavar="OUT", type=Path, help="a new file: .urdf for URDF+, .xml for MJCF")
    parser.add_argument("--force", action="store_true", help="overwrite OUT")


def _run(given: Namespace) -> int:
    out: Path = given.out
    if out.exists() and not given.force:
        raise ModelError(f"there is {out} already; --force overwrites it")
    robot = load_robot(given)
    with _all_or_nothing(out), heard() as said:
        again = _written(robot, given)
    print(f"saved {out}: {counted(len(robot.bodies), 'body', 'bodies')}, {counted(robot.nv, 'freedom')}")
    for text in (*robot.warnings, *said):
        print(fitted(text, "  ", "warning: "))
    if again is None:
        print("not read again and compared: MJCF is read by MuJoCo, which is not installed")
        return 0
    return _compare(robot, again)


VERB = Verb("convert", "write a robot as URDF+ or MJCF", "coupler convert robot.urdf robot.xml", _add, _run)


@contextmanager
def _all_or_nothing(path: Path) -> Iterator[None]:
    """Whatever goes wrong, the file is then as it was before."""
    before = path.read_bytes() if path.exists() else None
    try:
        yield
    except BaseException:
        if before is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(before)
        raise


def _written(robot: Robot, given: Namespace) -> Robot | None:
    """The robot that is read from what was written; none where it cannot be read here."""
    from coupler.io.save import save

    save(robot, given.out)
    if given.out.suffix.lower() == ".xml" and find_spec("mujoco") is None:
        return None
    try:
        return quietly(given.out, packages=dict(given.package), lock_idle=given.lock_idle)
    except ModelError as error:
        raise ModelError(f"nothing is saved, because it could not be read again: {error}") from None


def _compare(robot: Robot, again: Robot) -> int:
    try:
        apart = agreement(robot, again)
    except ModelError as error:
        complain(f"what was written is another robot than what was read: {error}")
        return 1
    print("read again, and compared at a random state; relative differences:")
    print(columns({what: f"{difference:.2g}" for what, difference in apart.items()}, "  "))
    wrong = [what for what, difference in apart.items() if not difference <= AGREED]
    if wrong:
        complain(f"what was written is another robot than what was read: see {', '.join(wrong)}")
    return 1 if wrong else 0
