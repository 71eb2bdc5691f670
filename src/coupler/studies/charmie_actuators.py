"""What the paper's motion asks of CHARMIE's actuators: the study that its model was made for [004, §1, §7]."""

from __future__ import annotations

from pathlib import Path

from coupler.model import ModelError
from coupler.sizing import size_actuators
from coupler.studies.charmie_motion import paper_motion, robot_by_actuators
from coupler.studies.report import keep_picture, save_table, verdict

STATES = 1001


def run(name: str, folder: Path) -> None:
    """Runs the study; see `coupler.studies.run`."""
    motion = paper_motion(STATES)
    sizing = size_actuators(robot_by_actuators(), motion.t, motion.q, motion.v, motion.a)
    summary = sizing.summary
    units = ["rad, N m" if turns else "m, N" for turns in sizing.turning]
    rows = [[name, unit, *summary[name].values()] for name, unit in zip(sizing.names, units, strict=True)]
    save_table(folder / f"{name}.csv", ["actuator", "units", *next(iter(summary.values()))], rows)
    try:
        keep_picture(sizing.plot(folder / f"{name}.png"))
    except ModelError as error:
        print(f"no picture: {error}")
    peaks = {actuator: load["peak force"] for actuator, load in summary.items()}
    strongest = max((actuator for actuator in peaks if actuator.startswith(("8", "10"))), key=peaks.__getitem__)
    squat, bow, arm = (peaks[actuator] for actuator in ("4d", "5d", strongest))
    measured = f"4d {squat:.0f} N, 5d {bow:.0f} N, {strongest} {arm:.2f} N m at most"
    verdict(
        "loads of actuators", "computed, not printed", measured, "differs: no numbers to compare with; springs are ours"
    )
