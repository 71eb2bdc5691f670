"""How long robots take from a file to their first acceleration.

    python benchmarks/files.py [FILE...]

Loads files of others, those in the folder `models` beside the checkout or in the one that COUPLER_MODELS names, if no
file is given. Each measurement is a process of its own, with a cache folder that is empty ("cold") or was filled by the
one before ("cached"). The import of coupler is not counted. MJCF is read where MuJoCo is installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import coupler
from coupler.io import load
from coupler.model import ModelError, ModelWarning

MODELS = Path(os.environ.get("COUPLER_MODELS", Path(__file__).resolve().parents[2] / "shared" / "models"))
URDF = (
    "closed_loop_2bt/closed_loop_expanded.urdf",
    "gepetto_5bar_linkage_iso3d/robot.urdf",
    "gepetto_battobot_6d/robot.urdf",
    "grbda/four_bar.urdf",
    "grbda/six_bar.urdf",
    "grbda/planar_leg_linkage.urdf",
    "grbda/mini_cheetah.urdf",
    "grbda/mit_humanoid.urdf",
    "grbda/jvrc1_humanoid.urdf",
    "grbda/tello_humanoid.urdf",
    "grbda_benchmark_chains/parallel_chains/Explicit/depth40/loop_size40.urdf",
    "grbda_benchmark_chains/parallel_chains/Implicit/depth40/loop_size41.urdf",
    "grbda_benchmark_chains/variable_four_bar_urdf/four_bar_branch_4_5.urdf",
    "grbda_benchmark_chains/variable_revolute_pair_urdf/revolute_rotor_pair_branch_4_5.urdf",
    "reachy_mini/urdf/robot_no_collision.urdf",
    "rh5_manus/submechanisms_urdf/submechanisms_reduced.urdf",
    "rh5_manus/full_urdf/RH5v2.urdf",
)
MJCF = (
    "cassie_menagerie/cassie_nomesh.xml",
    "mujoco_testdata/slider_crank.xml",
    "reachy_mini/mjcf/reachy_mini_nomesh.xml",
    "ufactory_xarm7/xarm7_nomesh.xml",
)
WIDTH = 62


def main(given: list[str]) -> None:
    files = [Path(name) for name in given] or [
        MODELS / name for name in (*URDF, *(MJCF if find_spec("mujoco") else ()))
    ]
    missing = [file for file in files if not file.is_file()]
    if missing and not given:
        print(f"skipped: there is no {missing[0]}; set COUPLER_MODELS to the folder of the models, or name files")
        return
    if missing:
        sys.exit(f"{missing[0]}: there is no such file")
    print(f"{'':{WIDTH}} {'':>8} {'load':>15} {'first dynamics':>17}")
    print(f"{'':{WIDTH}} {'freedoms':>8} {'cold':>7} {'cached':>7} {'cold':>9} {'cached':>7}")
    for file in files:
        with tempfile.TemporaryDirectory() as cache:
            cold, cached = (fresh(file, cache) for _ in range(2))
        name = file.relative_to(MODELS).as_posix() if file.is_relative_to(MODELS) else str(file)
        if isinstance(cold, str) or isinstance(cached, str):
            print(f"{name[-WIDTH:]:{WIDTH}} {cold}")
            continue
        times = (
            f"{cold['load']:>5.2f} s {cached['load']:>5.2f} s {cold['dynamics']:>7.2f} s {cached['dynamics']:>5.2f} s"
        )
        print(f"{name[-WIDTH:]:{WIDTH}} {cold['freedoms']:>8.0f} {times}", flush=True)


def fresh(file: Path, cache: str) -> dict[str, float] | str:
    """The times that another process measures, or why it could not."""
    command = [sys.executable, __file__, "measure", str(file)]
    done = subprocess.run(command, env=os.environ | {"COUPLER_CACHE": cache}, capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def measure(file: Path) -> dict[str, float]:
    """Seconds to load a robot, and to its first forward dynamics after that."""
    start = time.perf_counter()
    robot = load(file)
    loaded = time.perf_counter()
    coupler.forward_dynamics(robot, robot.neutral(), np.zeros(robot.nv), np.zeros(robot.nv))
    return {"freedoms": robot.nv, "load": loaded - start, "dynamics": time.perf_counter() - loaded}


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        warnings.simplefilter("ignore", ModelWarning)
        try:
            print(json.dumps(measure(Path(sys.argv[2]))))
        except ModelError as error:
            sys.exit(str(error))
    else:
        main(sys.argv[1:])
