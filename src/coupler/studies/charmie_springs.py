"""Springs that balance CHARMIE best over a cycle of work, as its authors choose them [004, §7].

The paper optimises its static balancing mechanism, and prints neither springs nor cycle. Here the robot squats by
15 cm, bows by half a radian, and comes back, along cycloids. Free lengths stay as they are. Stiffness and pretension of
the springs between bodies 3 and 4, alike on both sides, and of the one between 4 and 5 are chosen such that the root
mean square of what their linear actuator gives is least: SciPy's bounded least squares, since forces are linear in
both. The robot is then built with the springs that were found, and what it needs is compared with what was expected.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coupler.mechanisms import Spring
from coupler.robots.charmie import SPRINGS, charmie
from coupler.sizing import ActuatorSizing, size_actuators
from coupler.studies.cycloid import cycloid
from coupler.studies.report import LeftOut, save_table, verdict, with_pyplot

STATES, DURATION = 401, 8.0  # number, s
SQUAT, BOW = -0.15, -0.5  # m and rad, of joints 4 and 5
LARGEST = (5000.0, 200.0)  # N/m and N, of stiffness and pretension
UNIT = (1000.0, 100.0)  # N/m and N: springs by which forces are found to depend on both
MECHANISMS = {"4d": ("4slb", "4srb"), "5d": ("5s",)}  # springs that help each actuator
EXACT = 1e-9  # relative, of what was expected

Springs = dict[str, Spring | None]


@dataclass(frozen=True)
class Fit:
    """The springs that help one actuator: stiffness in N/m, pretension in N, and its forces with them, n, N."""

    stiffness: float
    pretension: float
    forces: np.ndarray


def run(name: str, folder: Path) -> None:
    """Runs the study; see `coupler.studies.run`."""
    without: Springs = dict.fromkeys(SPRINGS)
    bare = sized(without)
    fits, best = {}, dict(without)
    for actuator, springs in MECHANISMS.items():
        column = bare.names.index(actuator)
        by_unit = [
            sized(without | {spring: _spring(spring, k, T0) for spring in springs}).forces[:, column]
            - bare.forces[:, column]
            for k, T0 in ((UNIT[0], 0.0), (0.0, UNIT[1]))
        ]
        fits[actuator] = fitted(bare.forces[:, column], by_unit)
        best |= {spring: _spring(spring, fits[actuator].stiffness, fits[actuator].pretension) for spring in springs}
        print(f"springs for {actuator} found", flush=True)
    chosen = {"no springs": bare, "as bundled": sized(dict(SPRINGS)), "optimised": sized(best)}
    rows: list[list[Any]] = []
    for actuator in MECHANISMS:
        for way, sizing in chosen.items():
            load = sizing.summary[actuator]
            rows.append([actuator, way, load["RMS force"], load["peak force"], load["peak power"], load["work done"]])
    head = ["actuator", "springs", "RMS force, N", "peak force, N", "peak power, W", "work done, J"]
    save_table(folder / f"{name}.csv", head, rows)
    for actuator, fit in fits.items():
        k, T0, expected = fit.stiffness, fit.pretension, fit.forces
        forces = {way: sizing.forces[:, bare.names.index(actuator)] for way, sizing in chosen.items()}
        missed = float(np.abs(forces["optimised"] - expected).max() / np.abs(forces["no springs"]).max())
        rms = {way: float(np.sqrt((x**2).mean())) for way, x in forces.items()}
        less = rms["no springs"] / rms["optimised"]
        measured = f"k = {k:.0f} N/m, T0 = {T0:.1f} N: RMS {rms['no springs']:.1f} N to {rms['optimised']:.2f} N"
        verdict(f"springs for {actuator}", "optimised, not printed", measured, f"better: {less:.1f} times less")
        agreed = "agrees" if missed < EXACT else "differs"
        verdict(f"{actuator}, robot built with them", "nothing", f"{missed:.0e} from what was expected", agreed)

    def draw(plt: Any) -> None:
        _, axes = plt.subplots(len(MECHANISMS), 1, sharex=True, figsize=(7, 6))
        for axis, actuator in zip(axes, MECHANISMS, strict=True):
            for way, sizing in chosen.items():
                axis.plot(sizing.times, sizing.forces[:, sizing.names.index(actuator)], label=way)
            axis.set_ylabel(f"force of {actuator}, N")
        axes[0].legend()
        axes[-1].set_xlabel("time, s")

    with_pyplot(folder / f"{name}.png", draw)


def sized(springs: Springs) -> ActuatorSizing:
    """The demands of a work cycle on the actuators of CHARMIE with these springs."""
    robot = charmie(springs=springs)
    t = np.linspace(0.0, DURATION, STATES)
    s, ds, dds = cycloid(t, DURATION / 2)
    is_first_half = t < DURATION / 2  # then it goes down, and after that up again
    y, sign = np.where(is_first_half, s, 2.0 - s), np.where(is_first_half, 1.0, -1.0)
    v, a = sign * ds, sign * dds
    amplitude = np.zeros(robot.nv)
    amplitude[robot.v_slice("4")], amplitude[robot.v_slice("5")] = SQUAT, BOW
    q = robot.pack_q({"4": SQUAT * y, "5": BOW * y})
    return size_actuators(robot, t, q, v[:, None] * amplitude, a[:, None] * amplitude)


def fitted(bare: np.ndarray, by_unit: list[np.ndarray]) -> Fit:
    """The springs with which forces of least squares are left.

    Args:
        bare: n, forces without springs, N.
        by_unit: for `UNIT` of stiffness, and of pretension, by how much these forces change, n each.
    """
    try:
        from scipy.optimize import lsq_linear  # type: ignore[import-not-found]
    except ImportError:
        raise LeftOut("this study needs SciPy: pip install 'coupler[optimize]'") from None
    bounds = np.zeros(2), np.array(LARGEST) / UNIT
    solution = lsq_linear(np.stack(by_unit, axis=1), -bare, bounds=bounds, method="bvls", tol=1e-14)
    k, T0 = solution.x * UNIT
    return Fit(float(k), float(T0), bare + np.stack(by_unit, axis=1) @ solution.x)


def _spring(name: str, stiffness: float, pretension: float) -> Spring | None:
    """A spring with the free length of the robot's own; None if both numbers are zero."""
    free = SPRINGS[name].free_length
    return Spring(stiffness, free, pretension) if stiffness or pretension else None
