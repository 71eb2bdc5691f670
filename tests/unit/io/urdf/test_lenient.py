"""What files get wrong without harm: it is mended, and told in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coupler.io.load import load
from coupler.model import ModelError, ModelWarning, Robot

Read = Callable[..., Robot]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(text: str, match: str = "", sidecar: str = "", name: str = "arm.yaml", **options: Any) -> Robot:
        (tmp_path / "arm.urdf").write_text(f'<robot name="arm">{text}</robot>')
        if sidecar:
            (tmp_path / name).write_text(sidecar)
        if not match:
            return load(tmp_path / "arm.urdf", **options)
        with pytest.warns(ModelWarning, match=match) as told:
            found = load(tmp_path / "arm.urdf", **options)
        assert len(told) == 1
        return found

    return read


def link(name: str, mass: float = 1.0, moments: str = 'ixx="0.1" iyy="0.1" izz="0.1"') -> str:
    return f'<link name="{name}"><inertial><mass value="{mass}"/><inertia {moments}/></inertial></link>'


def joint(name: str, kind: str, parent: str, child: str) -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}<origin xyz="0.5 0 0"/><axis xyz="0 1 0"/></joint>'


ARM = link("base") + link("arm") + joint("elbow", "revolute", "base", "arm")


def test_a_moment_that_is_negative_by_rounding_is_zero(read: Read) -> None:
    found = read(ARM + link("tip", 0.0, 'ixx="-2e-35" iyy="0" izz="1e-35"') + joint("weld", "fixed", "arm", "tip"))
    assert np.linalg.eigvalsh(found.bodies["tip"].inertia)[0] >= 0.0


def test_a_little_negative_moment_of_a_link_that_is_welded_to_a_sound_one_is_zero_and_told(read: Read) -> None:
    text = ARM + link("tip", 0.01, 'ixx="-1e-6" iyy="2e-6" izz="2e-6"') + joint("weld", "fixed", "arm", "tip")
    found = read(text, "negative principal moments of 'tip' are taken as 0: they are small beside")
    np.testing.assert_allclose(np.linalg.eigvalsh(found.bodies["tip"].inertia), [0.0, 2e-6, 2e-6], atol=1e-20)
    with pytest.raises(ModelError, match="none can be negative"):
        read(text.replace('"fixed"', '"revolute"'))
    with pytest.raises(ModelError, match="none can be negative"):
        read(text.replace("-1e-6", "-1e-3"))


def test_a_link_called_ground_is_renamed_unless_it_is_the_root(read: Read) -> None:
    text = link("base") + link("ground") + joint("j", "revolute", "base", "ground")
    loop = '<spring name="s" stiffness="1"><predecessor link="base"/><successor link="ground"/></spring>'
    found = read(text + loop, "link 'ground' is renamed 'ground_link'")
    assert list(found.bodies) == ["base", "ground_link"] and found.elements[0].second == "ground_link"
    closing = '<gazebo><joint name="g" type="ball"><parent>base</parent><child>ground</child></joint></gazebo>'
    assert read(text + closing, "link 'ground' is renamed 'ground_link'").loops[0].successor == "ground_link"
    root = link("ground") + link("arm") + joint("j", "revolute", "ground", "arm")
    assert read(root, "mass of 'ground' is ignored").nv == 1
    floating = read(root, "link 'ground' is renamed 'ground_link'", floating=True)
    assert floating.nv == 7 and "ground_link" in floating.bodies


def test_a_world_that_is_not_declared_is_added(read: Read) -> None:
    found = read(ARM + joint("fix", "fixed", "world", "base"), "link 'world' is added: joints hang on it")
    assert found.nv == 1 and "world" in found.bodies


def test_joints_with_no_mass_behind_them_are_refused_or_locked(read: Read) -> None:
    text = ARM + '<link name="wheel"/><link name="rim"/>'
    text += joint("spin", "continuous", "arm", "wheel") + joint("roll", "revolute", "wheel", "rim")
    with pytest.raises(
        ModelError, match=r"nothing resists a motion of joint .*armature; or load it with massless='lock'"
    ):
        read(text)
    found = read(text, "2 joints locked, which move nothing but links without mass: 'spin', 'roll'", massless="lock")
    assert found.nv == 1
    with pytest.raises(ModelError, match="massless must be 'refuse' or 'lock', got 'keep'"):
        read(text, massless="keep")


def test_a_massless_link_that_something_holds_is_not_locked(read: Read) -> None:
    geared = joint("gear", "revolute", "arm", "wheel").replace(
        "</joint>", '<mimic joint="elbow" multiplier="3"/></joint>'
    )
    found = read(ARM + '<link name="wheel"/>' + geared, massless="lock")
    assert found.nv == 1 and set(found.joint_positions(found.neutral())) == {"elbow", "gear"}


def test_a_closure_file_that_names_absent_joints_is_read_without_them(read: Read) -> None:
    sidecar = "closed_loop: []\nname_mot: [elbow, knee]\njoint_name: [ankle]\njoint_type: [SPHERICAL]\n"
    absent = r"arm\.yaml names joints that arm\.urdf does not have, which are left out: 'knee', 'ankle'$"
    found = read(ARM, absent, sidecar)
    assert [joint.actuated for joint in found.joints if joint.name == "elbow"] == [True]


def test_a_closure_file_may_fix_a_joint(read: Read) -> None:
    assert read(ARM, "", "closed_loop: []\njoint_name: [elbow]\njoint_type: [FIXED]\n").nv == 0


def test_a_closure_file_of_another_name_is_told(read: Read) -> None:
    found = read(ARM, r"'loops\.yaml' beside it describes loops, but is not used", "closed_loop: []", "loops.yaml")
    assert found.nv == 1
    read(ARM, closures=False)


def test_a_floating_base_beside_a_joint_of_its_name_is_told(read: Read) -> None:
    found = read(ARM.replace("elbow", "floating_base"), "floats by the joint 'floating_base_'", floating=True)
    assert found.nv == 7


def test_tonnes_in_a_robot_of_kilograms_are_told(read: Read) -> None:
    read(
        ARM + link("load", 2000.0) + joint("k", "revolute", "arm", "load"),
        r"'load \(2000 kg\)' beside bodies of some 1 kg",
    )
    read(link("base", 3000.0) + link("boom", 2000.0) + joint("k", "revolute", "base", "boom"))


def test_a_home_that_is_singular_is_told_with_how_far_neutral_is(read: Read) -> None:
    """A rod on the elbow's axis holds the hand wherever it turns; a stretched arm just reaches, and cannot move."""
    links = "".join(link(name) for name in ("base", "a", "b"))
    joints = joint("one", "revolute", "base", "a") + joint("two", "revolute", "a", "b")
    loop = '<loop name="rod" type="rod"><predecessor link="base"><origin xyz="{} 0 0"/></predecessor>'
    loop += '<successor link="b"><origin xyz="0.5 0 0"/></successor><length value="0.5"/></loop>'
    found = read(links + joints + loop.format(1.0), r"neutral is elsewhere, joint '(one|two)' by \S+ rad$")
    assert max(abs(position) for position in found.joint_positions(found.neutral()).values()) > 1e-3
    with pytest.raises(ModelError, match="'rod' of joints 'one', 'two' is singular wherever it was found closed"):
        read(links + joints + loop.format(2.0))
