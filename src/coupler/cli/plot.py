"""`coupler plot`: the columns of a log over time."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from coupler.cli.loading import load_with_log
from coupler.cli.parser import Verb, add_file, add_force, add_robot_of_log, check_out, file_path


def _add(parser: ArgumentParser) -> None:
    add_file(parser, "LOG")
    parser.add_argument("out", metavar="OUT", type=file_path, nargs="?", help="the picture (default: LOG_plot.png)")
    add_robot_of_log(parser)
    add_force(parser)


def _run(given: Namespace) -> int:
    log_file = Path(given.file)
    out = given.out or log_file.with_name(f"{log_file.stem}_plot.png")
    check_out(out, given)
    robot, log = load_with_log(given, needed=False)
    print(f"saved {log.plot(out, robot)}")
    return 0


VERB = Verb("plot", "plot positions, forces, energies and errors of a log", "coupler plot run.clog", _add, _run)
