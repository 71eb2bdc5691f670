"""Damaged files in MJCF: as in test_fuzzed_files.py, and MuJoCo leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coupler.model import Robot
from effort import examples
from models_folder import ABSENT, FOLDER
from mutations import Recipe, damaged, mutated, outcome, recipes, written

pytest.importorskip("mujoco", "4.0", reason="MuJoCo 4 is not installed (pip install 'mujoco>=4')")

BODIES = """<mujoco model="sample"><compiler angle="radian"/><option gravity="0 0 -9.8" timestep="0.002"/>
  <default>
    <joint damping="0.1" armature="0.01"/>
    <default class="stiff"><joint stiffness="5" springref="0.1"/></default>
  </default>
  <worldbody>
    <geom type="plane" size="1 1 0.1"/><site name="origin" pos="0 0 0.1"/>
    <body name="base" pos="0 0 1"><freejoint name="root"/>
      <inertial pos="0.01 0 0" mass="3" diaginertia="0.1 0.2 0.25"/>
      <geom name="hull" type="box" size="0.1 0.2 0.1" contype="1" conaffinity="2" friction="0.8 0 0"/>
      <body name="arm" pos="0.2 0 0" euler="0 0.3 0">
        <joint name="yaw" axis="0 0 1" range="-1 1" ref="0.2"/>
        <joint name="pitch" class="stiff" axis="0 1 0" pos="0 0 0.1"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" density="900"/><site name="tip" pos="0.3 0 0"/>
        <body name="hand" pos="0.3 0 0"><joint name="wrist" type="ball"/><geom type="sphere" size="0.04"/></body>
      </body>
    </body>
  </worldbody>
  <tendon><spatial name="coil" stiffness="10"><site site="origin"/><site site="tip"/></spatial></tendon>
  <actuator><motor joint="yaw" gear="2"/></actuator>
  <keyframe><key name="home" qpos="0 0 1 1 0 0 0 0.2 0.1 1 0 0 0"/></keyframe>
</mujoco>"""

EQUALITIES = """<mujoco model="loops"><worldbody>
    <body name="crank"><joint name="shaft" axis="0 1 0"/><geom type="capsule" size="0.02" fromto="0 0 0 0.2 0 0"/>
      <body name="rod" pos="0.2 0 0"><joint name="pin" axis="0 1 0"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0.4 0 0.2"/><site name="end" pos="0.4 0 0.2"/></body></body>
    <body name="rocker" pos="0.6 0 0"><joint name="pivot" axis="0 1 0"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.2"/><site name="top" pos="0 0 0.2"/></body>
    <body name="wheel" pos="0 1 0"><joint name="a" axis="0 1 0"/><geom type="sphere" size="0.1"/></body>
    <body name="rotor" pos="0 2 0"><joint name="b" axis="0 1 0"/><geom type="sphere" size="0.05"/></body>
    <body name="slab" pos="0 3 0"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>
  </worldbody>
  <equality><connect name="loop" site1="end" site2="top"/><joint joint1="b" joint2="a" polycoef="0 6 0 0 0"/></equality>
  <equality><weld body1="slab" body2="wheel"/></equality></mujoco>"""

SAMPLES = {"bodies": BODIES, "equalities": EQUALITIES}
REAL = ["cassie_menagerie/cassie_nomesh", "ufactory_xarm7/hand_nomesh", "mujoco_testdata/multiple_constraints"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which everything happens, and in which MuJoCo would write of its errors."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def undisturbed(folder: Path, data: bytes) -> object:
    found = outcome(*written(folder, {"robot.xml": data}))
    assert [path.name for path in folder.iterdir()] == ["robot.xml"]
    return found


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_themselves_are_robots(here: Path, name: str) -> None:
    assert isinstance(undisturbed(here, SAMPLES[name].encode()), Robot)


@pytest.mark.sampled
@pytest.mark.parametrize("name", SAMPLES)
def test_changed_elements(here: Path, name: str) -> None:
    @examples(30, 600)
    @given(recipe=recipes(1, 4))
    def check(recipe: Recipe) -> None:
        undisturbed(here, mutated(SAMPLES[name], recipe))

    check()


@pytest.mark.sampled
def test_damaged_bytes(here: Path) -> None:
    @examples(60, 600)
    @given(name=st.sampled_from(list(SAMPLES)), recipe=recipes(1, 3))
    def check(name: str, recipe: Recipe) -> None:
        undisturbed(here, damaged(SAMPLES[name].encode(), recipe))

    check()


@pytest.mark.sampled
@pytest.mark.skipif(bool(ABSENT), reason=ABSENT or "they are there")
@pytest.mark.parametrize("name", REAL)
def test_changed_files_of_others(here: Path, name: str) -> None:
    text = (FOLDER / f"{name}.xml").read_text(encoding="utf-8")

    @examples(8, 60)
    @given(recipe=recipes(1, 3))
    def check(recipe: Recipe) -> None:
        undisturbed(here, mutated(text, recipe))

    check()
