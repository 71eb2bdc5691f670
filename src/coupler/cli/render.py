"""`coupler render`: a picture or a film of a log, without a browser."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace

from coupler.cli.loading import load_with_log
from coupler.cli.parser import Verb, add_file, add_force, add_robot_of_log, check_out, file_path


def _add(parser: ArgumentParser) -> None:
    add_file(parser, "LOG")
    parser.add_argument("out", metavar="OUT", type=file_path, help="the file to write: .png, .gif, .mp4 (with ffmpeg)")
    add_robot_of_log(parser)
    parser.add_argument("--time", metavar="T", type=float, help="the instant of a picture, s (default: the last)")
    parser.add_argument("--size", metavar="WxH", type=_size, help="px (default: 960x640, of a film 480x320)")
    parser.add_argument("--rate", metavar="N", type=float, default=20.0, help="frames a second of a film (default: 20)")
    parser.add_argument("--speed", metavar="S", type=float, default=1.0, help="0.1 is ten times slower (default: 1)")
    add_force(parser)


def _run(given: Namespace) -> int:
    from coupler.view.render import render

    check_out(given.out, given)
    robot, log = load_with_log(given)
    options = {"time": given.time, "size": given.size, "frames_per_second": given.rate, "speed": given.speed}
    progress = _tell if sys.stderr.isatty() else None
    print(f"saved {render(robot, log, given.out, progress=progress, **options)}")
    return 0


VERB = Verb("render", "draw a log as a picture or a film", "coupler render run.clog run.gif", _add, _run)


def _tell(done: int, of: int) -> None:
    if of > 1:
        print(f"\rframe {done} of {of}", end="\n" if done == of else "", file=sys.stderr, flush=True)


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    try:
        return int(width), int(height)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} must be a width and a height, as 960x640") from None
