"""`coupler view`: shows a robot, a log or a simulation in the browser, or saves a log as a page."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from coupler.cli.loading import is_log, load_robot, load_with_log
from coupler.cli.parser import Verb, add_file, add_force, add_robot_of_log, check_out, file_path
from coupler.model import ModelError, Plane, Robot


def _add(parser: ArgumentParser) -> None:
    add_file(parser, "ROBOT|LOG")
    add_robot_of_log(parser)
    parser.add_argument("--simulate", action="store_true", help="simulate the robot while it is looked at")
    parser.add_argument("--save", metavar="PAGE.html", type=file_path, help="write a page that plays the log anywhere")
    parser.add_argument(
        "--trace", metavar="FRAME", action="append", default=[], help="draw its way in the page; may be repeated"
    )
    add_force(parser)
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: this machine alone)")
    parser.add_argument("--port", type=int, default=8080, help="the first port to try (default: 8080)")


def _run(given: Namespace) -> int:
    from coupler.simulate import Simulation
    from coupler.view import save_page, view

    place = {"host": given.host, "port": given.port}
    if is_log(given.file):
        if given.simulate:
            raise ModelError(f"{given.file} is a log: --simulate is for robots")
        if given.save is not None:
            check_out(given.save, given)
        robot, log = load_with_log(given)
        if given.save is not None:
            print(f"saved {save_page(robot, log, given.save, trace=given.trace)}")
            return 0
        viewer = view(robot, log, **place)
    elif given.save is not None or given.robot is not None or given.trace:
        raise ModelError(f"{given.file} is a robot: --save, --trace and --robot are for logs")
    else:
        robot = load_robot(given)
        viewer = view(Simulation(_on_floor(robot)) if given.simulate else robot, **place)
    with viewer:
        print("Ctrl-C ends it", flush=True)
        viewer.wait()
    return 0


VERB = Verb(
    "view",
    "show a robot, a log or a simulation in the browser",
    "coupler view mini_cheetah",
    _add,
    _run,
    ("A log is shown with the robot that --robot names, or the bundled one that it is of.",),
)


def _on_floor(robot: Robot) -> Robot:
    """The robot; if it floats and has no floor, over one."""
    floats = any(joint.kind.floats for joint in robot.joints)
    return robot if not floats or any(isinstance(s.geometry, Plane) for s in robot.shapes) else robot.with_floor()
