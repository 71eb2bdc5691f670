"""What the paper leaves for later: operations of each module, and a program for the robot's controller [004, §7].

Operations are counted in the programs that coupler compiles, as they are before machine code is made of them: sums,
products, quotients, roots, sines and cosines, and choices; signs are free. CHARMIE's loops are closed in them by their
closed forms. The same programs are written in C99, which needs no library but libm, compiled where there is a compiler,
and called with states of the paper's motion.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from coupler.algorithms.aba import forward_dynamics_program
from coupler.algorithms.actuation import actuator_jacobian_program, actuator_positions_program
from coupler.algorithms.joint_forces import joint_forces_program
from coupler.algorithms.kinematics import body_poses_program
from coupler.algorithms.rnea import inverse_dynamics_program
from coupler.graph import Program, compile
from coupler.graph.c import render
from coupler.model import Robot
from coupler.robots.charmie import charmie
from coupler.studies.charmie_motion import paper_motion, robot_by_actuators
from coupler.studies.charmie_times import ARMS, arm
from coupler.studies.report import save_table, verdict

MODULES: dict[str, Callable[[Robot], Program]] = {
    "poses of all bodies": body_poses_program,
    "lengths of actuators": actuator_positions_program,
    "actuators by joints, A": actuator_jacobian_program,
    "inverse dynamics": inverse_dynamics_program,
    "forces in all joints": joint_forces_program,
    "forward dynamics": forward_dynamics_program,
}
KINDS = {"add": "sums", "sub": "sums", "mul": "products", "div": "quotients", "sqrt": "roots"}
EXPORTED = {"inverse dynamics": "charmie_inverse_dynamics", "actuators by joints, A": "charmie_actuator_jacobian"}
STATES, CALLS = 51, 20_000
AGREES = 1e-12  # relative to the largest number


def run(name: str, folder: Path) -> None:
    """Runs the study; see `coupler.studies.run`."""
    robots = {f"{joints}-DOF arm": arm(joints)[0] for joints in ARMS} | {"CHARMIE": charmie()}
    kinds = list(dict.fromkeys(KINDS.values()))
    rows: list[list[Any]] = []
    for model, robot in robots.items():
        for module, make in MODULES.items():
            # Closed forms hide what loops transmit: forces in joints are counted with loops closed by Newton's method.
            searched = make is joint_forces_program and bool(robot.loops)
            counts = make(robot.with_closure("numerical") if searched else robot).operations()
            by_kind = [sum(n for op, n in counts.items() if KINDS.get(op) == kind) for kind in kinds]
            total = counts.total()
            cells = [*by_kind, total - sum(by_kind), total]
            rows.append([model, module, *map(str, cells), total / len(robot.bodies)])
        print(f"{model} counted", flush=True)
    save_table(folder / f"{name}.csv", ["model", "module", *kinds, "others", "all", "a body"], rows)
    totals = {(row[0], row[1]): int(row[-2]) for row in rows}
    two, four, six = (totals[f"{joints}-DOF arm", "inverse dynamics"] for joints in ARMS)
    measured = f"{two}, {four}, {six} for 2, 4, 6 joints; {totals['CHARMIE', 'inverse dynamics']} for CHARMIE"
    verdict("operations of inverse dynamics", "future work", measured, "better: counted")
    _controller(folder, robots["CHARMIE"])


def _controller(folder: Path, robot: Robot) -> None:
    """Writes the C files, and compares what they compute with coupler."""
    programs = {function: MODULES[module](robot) for module, function in EXPORTED.items()}
    for function, program in programs.items():
        header, source = render(program, name=function).save(folder)
        print(f"saved {header} and {source}: {len(source.read_text().splitlines())} lines")
    compiler = next((computed for computed in map(shutil.which, ("cc", "gcc", "clang")) if computed), None)
    if compiler is None:
        verdict(
            "a program for the controller",
            "future work",
            "written in C99",
            "better: written, but no compiler is here to try it with",
        )
        return
    q, v, a = _states(robot)
    worst = 0.0
    with tempfile.TemporaryDirectory() as built:
        for function, program in programs.items():
            library = Path(built) / f"{function}.so"
            files = [str(folder / f"{function}.c"), "-o", str(library), "-lm"]
            subprocess.run([compiler, "-O2", "-std=c99", "-shared", "-fPIC", *files], check=True)
            given = (q, v, a) if "dynamics" in function else (q,)
            expected = compile(program)(*given)
            computed, seconds = _called(ctypes.CDLL(str(library))[function], program, given, expected)
            worst = max(worst, float(np.abs(computed - expected).max() / np.abs(expected).max()))
            how = f"from Python by ctypes, compiled by {Path(compiler).name} -O2"
            print(f"{function}: {1e6 * seconds:.2f} µs a call, {how}")
    measured = f"C99 on this machine, {worst:.0e} of the largest number from coupler"
    verdict("a program for the controller", "future work", measured, "better: written" if worst < AGREES else "differs")


def _states(robot: Robot) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The paper's motion by joints."""
    led, motion = robot_by_actuators(), paper_motion(STATES)
    positions, joints = led.joint_positions(motion.q), robot.independent_joints
    q = robot.pack_q({joint: positions[joint] for joint in joints})
    rows = [led.tree.velocities(led.tree.number[joint])[0] for joint in joints]
    G, g = led.explicit_constraint(motion.q, motion.v)
    v = (G[:, rows] @ motion.v[..., None])[..., 0]
    return q, v, (G[:, rows] @ motion.a[..., None])[..., 0] + g[:, rows]


def _called(
    function: Any, program: Program, given: tuple[np.ndarray, ...], like: np.ndarray
) -> tuple[np.ndarray, float]:
    """The results of a C function for all states, and the time of a call, s."""
    pointer = ctypes.POINTER(ctypes.c_double)
    function.restype = None
    work, result = np.zeros(sum(buffer.size for buffer in program.scratch)), np.zeros(like.reshape(len(like), -1).shape)

    def at(x: np.ndarray) -> Any:
        return x.ctypes.data_as(pointer)

    rows = [[np.ascontiguousarray(x[k]) for x in given] for k in range(len(like))]
    for output, row in zip(result, rows, strict=True):
        function(*map(at, row), at(output), at(work))
    arguments = (*map(at, rows[0]), at(result[0]), at(work))
    start = time.perf_counter()
    for _ in range(CALLS):
        function(*arguments)
    return result.reshape(like.shape), (time.perf_counter() - start) / CALLS
