"""`coupler draw`: draws a robot's connectivity graph and cluster tree."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from coupler.cli.loading import load_robot
from coupler.cli.parser import Verb, add_file
from coupler.model import ModelError


def _add(parser: ArgumentParser) -> None:
    add_file(parser)
    parser.add_argument(
        "--out", metavar="PICTURE.svg", type=Path, help="the file to write (default: the robot's name, in this folder)"
    )


def _run(given: Namespace) -> int:
    from coupler.simulate.archive import check_target

    if given.out is not None and given.out.suffix.lower() != ".svg":
        raise ModelError(f"--out {given.out}: pictures are SVG files; call it {given.out.with_suffix('.svg').name}")
    if given.out is not None:
        check_target(given.out)
    print(f"saved {load_robot(given).draw(given.out)}")
    return 0


VERB = Verb(
    "draw", "draw the bodies, joints, loops and clusters of a robot", "coupler draw tello --out tello.svg", _add, _run
)
