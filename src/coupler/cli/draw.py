"""`coupler draw`: draws a robot's connectivity graph and cluster tree."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from coupler.cli.loading import load_robot
from coupler.cli.parser import Verb, add_file, add_force, check_out, file_path
from coupler.model import ModelError
from coupler.model.outputs import check_target
from coupler.model.wording import plain_name


def _add(parser: ArgumentParser) -> None:
    add_file(parser)
    parser.add_argument(
        "--out",
        metavar="PICTURE.svg",
        type=file_path,
        help="the file to write (default: named after the robot)",
    )
    add_force(parser)


def _run(given: Namespace) -> int:
    if given.out is not None and given.out.suffix.lower() != ".svg":
        raise ModelError(f"--out {given.out}: robots are drawn as SVG; name it {given.out.with_suffix('.svg').name!r}")
    if given.out is not None:
        check_target(given.out)
    robot = load_robot(given)
    out = given.out or Path(f"{plain_name(robot.name)}.svg")
    check_out(out, given)
    print(f"saved {robot.draw(out)}")
    return 0


VERB = Verb(
    "draw", "draw the bodies, joints, loops and clusters of a robot", "coupler draw tello --out tello.svg", _add, _run
)
