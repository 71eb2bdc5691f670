"""`coupler.view`: shows a robot, a log, a rollout or a simulation in the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coupler.forks import imports
from coupler.model import ModelError, Robot
from coupler.simulate import Log, Rollout, Simulation
from coupler.simulate.control import Controller

if TYPE_CHECKING:
    from coupler.view.browser.viewer import Viewer


def view(
    what: Robot | Simulation,
    motion: Log | Rollout | None = None,
    *,
    q: Any = None,
    controller: Controller | None = None,
    motors: Any = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    quiet: bool = False,
) -> Viewer:
    """Shows a robot in the browser, and prints the address to open.

        coupler.view(robot)                         # posed by sliders
        coupler.view(robot, log)                    # a run, played
        coupler.view(robot, coupler.rollout(...))   # up to 64 states of a batch, side by side
        coupler.view(simulation, controller=...)    # runs while it is looked at; bodies can be pulled

    It returns at once, and the viewer lives as long as the process: `viewer.wait()` waits for Ctrl-C.

    Args:
        what: a robot, or a simulation, which then runs.
        motion: what the robot did: a log or a rollout.
        q: (nq,), the configuration to begin with; neutral, if not given.
        controller, motors: what acts in a simulation, as for `Simulation.run`.
        host: the address to listen on: this machine alone, unless told otherwise. On any other, the address to open
            has a token, and whoever lacks it is refused.
        port: the first to try; one in use takes the next.
        quiet: whether the address is not printed.

    Returns:
        The viewer; `url` is its address.

    Raises:
        ModelError: without viser (`pip install 'coupler[view]'`), for a motion of another robot, or a q that is not
            closed.
    """
    if isinstance(what, Robot) and what.given is not None and what.given.packed.ndim > 1:
        if what.given.variant.tree.all_rows:
            raise ModelError(
                "view: this robot stands for many robots of different lengths; choose the parameters of one"
            )
        what = what.given.base  # which looks like all of them
    with imports():
        from coupler.view.browser.crowd import crowd_viewer
        from coupler.view.browser.live import live_viewer
        from coupler.view.browser.player import log_viewer
        from coupler.view.browser.viewer import pose_viewer
    if isinstance(what, Simulation):
        if motion is not None or q is not None:
            raise ModelError("a simulation is shown as it runs: it takes neither a motion nor a q")
        viewer = live_viewer(what, controller, motors, host, port)
    elif not isinstance(what, Robot):
        raise ModelError(f"view takes a robot or a simulation, got {type(what).__name__}")
    elif controller is not None or motors is not None:
        raise ModelError("controllers act in simulations: give coupler.Simulation(robot) instead of the robot")
    elif motion is None:
        viewer = pose_viewer(what, q, host, port)
    elif q is not None:
        raise ModelError("a motion has its own states: it takes no q")
    elif isinstance(motion, Log):
        viewer = log_viewer(what, motion, host, port)
    elif isinstance(motion, Rollout):
        viewer = crowd_viewer(what, motion, host, port)
    else:
        raise ModelError(f"view: a motion is a log or a rollout, got {type(motion).__name__}")
    if not quiet:
        print(f"open {viewer.url}", flush=True)
    return viewer
