"""Files in SDFormat as Drake reads them: versions, frames, nested and included models, and what is written."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coupler import robots
from coupler.io.load import load
from coupler.io.save import save
from coupler.model import ModelError, ModelWarning
from drake_peer import drake_gap, drake_reads
from saved_robots import everything
from sdf_samples import ARMS, FOUR_BAR, KINDS, STEWART, joint, link, sdf

EXACT = 1e-12  # relative to the largest entry
UNKNOWN_TO_DRAKE = ("revolute2", "piston")  # joints


@pytest.fixture(autouse=True)
def drake() -> Any:
    return pytest.importorskip("pydrake.multibody.plant", reason="Drake is not installed (pip install drake)")


def compared(text: str, folder: Path, **packages: Path) -> float:
    path = folder / "robot.sdf"
    path.write_text(text)
    return drake_gap(load(path, packages=packages), path, packages)


@pytest.mark.parametrize("version", ARMS)
def test_an_arm_of_every_version(version: str, tmp_path: Path) -> None:
    assert compared(ARMS[version], tmp_path) < EXACT


TWO = link("a", "0 0 0 0.1 0 0") + link("b", "0.3 0 0 0 0.2 0")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in UNKNOWN_TO_DRAKE])
@pytest.mark.parametrize("root", ["floating", "hinge"])
def test_every_kind_of_joint(kind: str, root: str, tmp_path: Path) -> None:
    ground = joint("g", "revolute", "world", "a", "0 1 0") if root == "hinge" else ""
    assert compared(sdf(TWO + KINDS[kind] + ground), tmp_path) < EXACT


@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic", "fixed"])  # Drake takes no others
def test_joints_from_child_to_parent(kind: str, tmp_path: Path) -> None:
    """The world is connected to the child, so that the tree goes the other way."""
    ground = joint("g", "revolute", "world", "b", "0 1 0")
    assert compared(sdf(TWO + KINDS[kind] + ground), tmp_path) < EXACT


def test_a_screw_that_says_nothing_of_its_pitch(tmp_path: Path) -> None:
    assert compared(sdf(TWO + joint("j", "screw", "a", "b", "0 0 1")), tmp_path) < EXACT


def test_links_that_say_nothing_of_their_masses(tmp_path: Path) -> None:
    inside = '<link name="a"/><link name="b"><inertial><mass>2</mass></inertial></link>'
    assert compared(sdf(inside + joint("j", "revolute", "a", "b", "0 1 0", "0 0 1 0 0 0")), tmp_path) < EXACT


FRAMES = (
    '<pose relative_to="">0.1 0.2 0.3 0.4 0 0</pose>'
    + link("a", "[relative_to='f']0.1 0 0 0.1 0.2 0")
    + '<frame name="f"><pose>1 0 0 0 0 0.5</pose></frame>'
    + '<frame name="g" attached_to="a"><pose relative_to="f" degrees="true">0 0 0.2 30 -60 90</pose></frame>'
    + '<frame name="h" attached_to="g"><pose rotation_format="quat_xyzw">0 1 0  0.1 0.5 0.5 0.7</pose></frame>'
    + link("b", "[relative_to='j']0 0.1 0 0 0.3 0")
    + joint("j", "revolute", "g", "b", "<xyz expressed_in='h'>0 0.6 0.8</xyz>", "[relative_to='h']0.2 0 0 0 0 0.2")
    + '<frame name="k" attached_to="b"/>'
    + link("c", "[relative_to='k']0 0 0.4 0 0 0")
    + joint("l", "prismatic", "k", "c", "1 0 0")
    + joint("w", "fixed", "world", "h")
)


@pytest.mark.parametrize("more", [{}, {"canonical_link": "b"}, {"placement_frame": "h"}, {"placement_frame": "k"}])
def test_frames_that_hang_on_each_other(more: dict[str, str], tmp_path: Path) -> None:
    assert compared(sdf(FRAMES, **more), tmp_path) < EXACT
    if "canonical_link" not in more:  # which is not Drake's root
        assert compared(sdf(FRAMES.replace(joint("w", "fixed", "world", "h"), ""), **more), tmp_path) < EXACT


HAND = (
    link("palm", "0 0 0.1 0 0.2 0")
    + link("finger", "0 0.1 0.2 0.3 0 0")
    + joint("curl", "revolute", "palm", "finger", "<xyz expressed_in='__model__'>0 0 1</xyz>")
    + '<frame name="tip" attached_to="finger"><pose>0 0 0.1 0.5 0 0</pose></frame>'
)
NESTED = (
    link("arm", "0.1 0 0 0 0 0.3")
    + '<model name="hand" placement_frame="palm"><pose relative_to="arm">0.5 0 0 0 0.4 0</pose>'
    + HAND
    + "</model>"
    + joint("wrist", "revolute", "arm", "hand::palm", "0 1 0")
    + link("nail", "[relative_to='hand::tip']0 0 0.02 0 0 0", mass=0.1)
    + joint("grown", "fixed", "hand::tip", "nail")
)


@pytest.mark.parametrize("version", ["1.8", "1.9", "1.11"])
def test_nested_models(version: str, tmp_path: Path) -> None:
    assert compared(sdf(NESTED, version), tmp_path) < EXACT


INCLUDING = (
    link("arm", "0.1 0 0 0 0 0.3")
    + "<include{}><uri>{}</uri><name>left</name><placement_frame>tip</placement_frame>"
    + '<pose relative_to="arm">0.5 0 0 0 0.4 0</pose></include>'
    + joint("wrist", "revolute", "arm", "{}", "0 1 0")
)


@pytest.mark.parametrize(("merge", "palm"), [("", "left::palm"), (' merge="true"', "palm")])
def test_included_models(merge: str, palm: str, tmp_path: Path) -> None:
    hands, arms = tmp_path / "somewhere", tmp_path / "arms"
    hands.mkdir()
    arms.mkdir()
    (hands / "hand.sdf").write_text(sdf(HAND, "1.7", "hand"))
    text = sdf(INCLUDING.format(merge, "package://hands/hand.sdf", palm))
    assert compared(text, arms, hands=hands) < EXACT


@pytest.mark.parametrize("name", robots.names())
def test_drake_reads_what_is_written(name: str, tmp_path: Path) -> None:
    """And where there are no loops, it moves in the same way; Drake has what follows others as joints of their own."""
    robot = robots.load(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # of inertias that no real body has
        try:
            path = save(robot, tmp_path / "robot.sdf")
        except ModelError:  # for a function that no file holds
            robot = robot.spanning_tree()
            path = save(robot, tmp_path / "robot.sdf")
    if robot.loops:
        assert drake_reads(path).num_joints() == len(robot.joints) + len(robot.loops)
    else:
        assert drake_gap(robot.spanning_tree(), path) < (EXACT if name != "jvrc1" else 1e-4)


@pytest.mark.parametrize("text", [FOUR_BAR, STEWART])
def test_drake_reads_our_loops(text: str, tmp_path: Path) -> None:
    path = tmp_path / "robot.sdf"
    path.write_text(text)
    robot = load(path)
    assert drake_reads(path).num_joints() == len(robot.joints) + len(robot.loops)


def test_drake_passes_over_all_that_is_ours(tmp_path: Path) -> None:
    (tmp_path / "crank.stl").write_text("")
    robot = everything(tmp_path / "crank.stl").build()
    plant = drake_reads(save(robot, tmp_path / "robot.sdf"))
    assert all(plant.HasBodyNamed(body) for body in robot.body_names)


def test_random_positions_of_the_peer_are_those_of_the_robot(tmp_path: Path) -> None:
    """A wrong position is seen, so that the other tests see something."""
    path = tmp_path / "robot.sdf"
    path.write_text(ARMS["1.7"])
    robot = load(path)
    path.write_text(ARMS["1.7"].replace("0.2 0.4 0.8", "0.2 0.4 0.9"))
    assert drake_gap(robot, path) > 1e-3
    assert np.isfinite(drake_gap(robot, path))
