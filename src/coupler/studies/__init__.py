"""Tables and figures of the papers: `coupler study NAME` prints our numbers beside the paper's, and saves data."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from coupler.model import ModelError
from coupler.model.outputs import made_folder
from coupler.model.wording import listed
from coupler.studies.page import write_page
from coupler.studies.report import LeftOut, Record, recorded

__all__ = ["STUDIES", "run", "run_all"]

STUDIES = {  # name: module, and what the study shows
    "000-fig3": ("scaling", "forward dynamics of chains with random gears and belts, of 2 to 1,000 links"),
    "001-table2": ("speed", "inverse dynamics: the time of other methods relative to C-RNEA"),
    "001-table3": ("speed", "forward dynamics: the time of other methods relative to C-ABA"),
    "001-table4": ("speed", "inverse operational-space inertia: the time of other methods relative to C-EFPA"),
    "001-fig9": ("speed", "inverse dynamics: times of all methods on six robots"),
    "001-fig10": ("speed", "forward dynamics: times of all methods on six robots"),
    "001-fig11": ("scaling", "forward dynamics of chains of 2 to 1,000 links, baselines to 384"),
    "001-fig12": ("speed", "inverse operational-space inertia: times of all methods on six robots"),
    "001-fig13": ("scaling", "inverse operational-space inertia of chains of 2 to 1,000 links, baselines to 384"),
    "001-complexity": ("complexity", "operations by the length of loops and the number of end effectors"),
    "001-fig14": ("torques", "torque errors without rotors and with armatures"),
    "002-fig5": ("formulations", "cost of the mass matrix, ABA and divide and conquer on chains without contact"),
    "002-fig6": ("formulations", "cost of the three ways to set up the contact problem, with no, one and two contacts"),
    "002-fig7": ("drift", "energy drift of a swinging chain, with Euler's and with a Runge-Kutta method"),
    "002-fig8": ("penetration", "drift and penetration of a chain that lands, with the same methods"),
    "003-table2": ("torso", "RH5 Manus: its torso's actuators, closed numerically and analytically, along cycloids"),
    "003-fig5": ("boxing", "RH5 Manus in a boxing motion, which stands for the paper's: poses"),
    "003-fig6": ("boxing", "RH5 Manus in that motion: positions and forces of its actuators, hybrid and analytical"),
    "003-fig7": ("hybrid", "RH5 Manus, reduced: the cost of closing loops numerically, analytically, and in part"),
    "003-fig9": ("hybrid", "RH5 Manus, complete, whose wrists are closed numerically: the same"),
    "003-fig10": ("embedding", "RH5 Manus: accelerations along cycloids, by C-ABA and by the mass matrix"),
    "004-table5": ("charmie_times", "arms and CHARMIE: times of 1,000 steps, without and with graphics"),
    "004-fig4": ("charmie_figures", "CHARMIE: the points of body 5"),
    "004-fig6": ("charmie_figures", "CHARMIE: main bodies, with all joints at zero"),
    "004-fig8": ("charmie_figures", "CHARMIE: all bodies, with all joints at zero"),
    "004-fig11": ("charmie_figures", "CHARMIE in motion, at 1.3 s, with arrows of velocities and forces"),
    "004-fig12": ("charmie_validation", "CHARMIE: the way of its left claw, by coupler and by the paper's recursion"),
    "004-fig13": ("charmie_validation", "CHARMIE: forces of body 2 on 3, by both"),
    "004-animation": ("charmie_figures", "CHARMIE in the paper's motion, as a GIF"),
    "004-controller": ("charmie_controller", "arms and CHARMIE: operations of each module, and programs in C"),
    "004-sizing": ("charmie_actuators", "CHARMIE: peaks, RMS and energies of all actuators in the paper's motion"),
    "004-springs": ("charmie_springs", "CHARMIE: springs that balance a squat and a bow best; needs SciPy"),
}


def run(name: str, folder: Path, *, full: bool = False) -> Record:
    """Runs a study, and saves its data and pictures in a folder.

    Args:
        name: one of `STUDIES`.
        folder: the folder to write to; it is created if necessary.
        full: whether it may take longer than two minutes.

    Returns:
        Its verdicts, notes, tables and pictures.
    """
    if name not in STUDIES:
        raise ModelError(f"there is no study {name!r}; there are {listed(STUDIES)}")
    module, about = STUDIES[name]
    return _run(Record(name, about, full), module, folder)


def run_all(folder: Path, *, full: bool = False) -> list[Record]:
    """Runs all studies, goes on where one fails, and writes `report.html`, a page of all of them, beside their data.

    Returns:
        The records of all, with what has failed and what was left out.
    """
    records = []
    for i, (name, (module, about)) in enumerate(STUDIES.items(), 1):
        print(f"\n{name} ({i} of {len(STUDIES)}): {about}", flush=True)
        record = Record(name, about, full)
        try:
            _run(record, module, folder)
        except LeftOut as error:
            record.left_out = str(error)
            print(f"{name} is left out: {error}")
        except Exception as error:  # whatever it is: the others go on
            record.failure = str(error) or repr(error)
            print(f"{name} failed: {record.failure}", file=sys.stderr)
        records.append(record)
        write_page(folder / "report.html", records)  # so that an interruption leaves what there is
    print(f"\nsaved {folder / 'report.html'}")
    return records


def _run(record: Record, module: str, folder: Path) -> Record:
    made_folder(folder)
    with recorded(record):
        import_module(f"coupler.studies.{module}").run(record.name, folder)
    return record
