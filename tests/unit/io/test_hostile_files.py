"""Files of authors who mean harm: each is refused, or read for what it is, within seconds and with our own error.

What loading promises is in docs/threat_model.md. Work is bounded by counts of calls (`work.at_most`), not by a clock.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coupler.io.load import load
from coupler.io.mjcf import compilation
from coupler.io.yaml import parse_yaml
from coupler.model import ModelError, ModelWarning, Robot
from work import at_most

AT_ONCE = 3_000_000  # calls
POSIX = pytest.mark.skipif(os.name != "posix", reason="there are no pipes and devices among files")


def robot(inside: str = "") -> str:
    return f'<robot name="r"><link name="base"/>{inside}</robot>'


def model(inside: str, before: str = "") -> str:
    return f"<mujoco>{before}<worldbody>{inside}</worldbody></mujoco>"


BALL = "<body><joint/><geom size='1'/></body>"


def refused(path: Path | str, match: str, **options: Any) -> None:
    with at_most(AT_ONCE), pytest.raises(ModelError, match=match):
        load(path, **options)


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """A file of some content, in a folder of its own."""
    folder = tmp_path / "folder"
    folder.mkdir()

    def file(text: str | bytes, name: str = "robot.urdf") -> Path:
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
        return folder / name

    return file


File = Callable[..., Path]


# What is no file


@POSIX
@pytest.mark.parametrize("suffix", [".urdf", ".xml", ".sdf", ".xacro"])
def test_a_pipe_is_no_robot(suffix: str, tmp_path: Path) -> None:
    """Nobody writes to it, and nobody waits for that."""
    path = tmp_path / f"pipe{suffix}"
    os.mkfifo(path)
    refused(path, r"pipe\.\w+: it cannot be read: it is a pipe, not a file", xacro=True)


@POSIX
def test_a_device_is_no_robot(tmp_path: Path) -> None:
    for device in ("/dev/zero", "/dev/null"):
        refused(device, "it is a device, not a file")
    (tmp_path / "robot.urdf").symlink_to("/dev/zero")
    refused(tmp_path / "robot.urdf", "it is a device, not a file")


@POSIX
@pytest.mark.parametrize("name", ["robot.yaml", "submechanisms.yml", "robot.srdf"])
def test_a_pipe_beside_a_robot_is_not_waited_for(name: str, file: File) -> None:
    path = file(robot())
    os.mkfifo(path.with_name(name))
    with at_most(AT_ONCE), pytest.warns(ModelWarning, match=f"{name} is not a regular file, and is not read"):
        assert isinstance(load(path), Robot)
    refused(path, "it is a pipe, not a file", closures=path.with_name(name))


@POSIX
def test_a_pipe_that_a_model_includes_is_not_waited_for(file: File) -> None:
    path = file('<mujoco><include file="pipe.xml"/><worldbody/></mujoco>', "robot.xml")
    os.mkfifo(path.with_name("pipe.xml"))
    refused(path, r"robot\.xml, line 1, <include>: .*pipe\.xml: it cannot be read: it is a pipe, not a file")


@POSIX
def test_a_mesh_that_is_a_pipe_is_missing(file: File) -> None:
    inertial = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    body = f'<body>{inertial}<joint/><geom type="mesh" mesh="m"/></body>'
    path = file(model(body, '<asset><mesh name="m" file="pipe.stl"/></asset>'), "robot.xml")
    os.mkfifo(path.with_name("pipe.stl"))
    with pytest.warns(ModelWarning, match="1 shape whose meshes are missing"):
        load(path)


# Too much of it

NAMES = [f"b{i}='' " for i in range(500)]


def test_a_file_may_be_so_large(file: File) -> None:
    refused(file(robot("<!--" + "x" * (17 << 20) + "-->")), "it is larger than 16 MiB, the most that is read")


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (robot("<a>" * 1_000_000), "500 elements within each other"),
        (robot("<a/>" * 1_000_000), "100000 elements"),
        (robot(f"<a {' '.join(NAMES)}/>" * 900), "400000 attributes"),
    ],
    ids=["deep", "many", "attributes"],
)
@pytest.mark.parametrize("kind", ["robot", "mujoco", "sdf"])
def test_a_file_may_have_so_much_in_it(text: str, limit: str, kind: str, file: File) -> None:
    text = text.replace("robot", kind)
    refused(file(text, "robot.xml"), rf"it has more than {limit}, the most that are read")


def test_a_robot_may_have_so_many_links(file: File) -> None:
    refused(
        file(robot("".join(f'<link name="{i}"/>' for i in range(5_000)))), "it has 5001 links; a file may have 5000"
    )


def test_a_robot_may_have_so_many_keyframes(file: File) -> None:
    keys = "".join(f'<keyframe name="{i}"/>' for i in range(1_001))
    refused(file(robot(keys)), "there are 1001 keyframes; a file may have 1000")


def links(count: int) -> str:
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    joint = '<joint name="j{0}" type="revolute"><parent link="{1}"/><child link="l{0}"/><axis xyz="0 1 0"/></joint>'
    chain = "".join(joint.format(i, f"l{i - 1}" if i else "base") for i in range(count))
    return "".join(f'<link name="l{i}">{inertial}</link>' for i in range(count)) + chain


def test_loops_may_join_so_many_joints(file: File) -> None:
    ends = '<predecessor link="base"/><successor link="l{}"/>'
    loops = "".join(f'<loop name="o{i}" type="fixed">{ends.format(i)}</loop>' for i in range(130))
    refused(file(robot(links(130) + loops)), "has 780 equations for 130 joint velocities in one cluster")


@pytest.mark.parametrize(
    "inside",
    [
        f'<joint name="j1"><depends_on joint="j0" polynomial="{"1 " * 201}"/></joint>',
        '<joint name="j0">' + "".join(f'<depends_on joint="j{i}"/>' for i in range(1, 202)) + "</joint>",
    ],
)
def test_a_coupling_may_relate_so_much(inside: str, file: File) -> None:
    refused(file(robot(links(202) + f'<coupling name="c">{inside}</coupling>')), r"it relates 20[12] joints or powers")


def test_an_attribute_may_have_so_many_numbers(file: File) -> None:
    text = f'<link name="a"><inertial><mass value="{"1 " * 1_000_000}"/></inertial></link>'
    with pytest.raises(ModelError, match=r"its value must be a number, got '1 1 .*more characters") as told:
        load(file(f"<robot>{text}</robot>"))
    assert len(str(told.value)) < 1000


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("closed_loop: [" + "[a, b],\n" * 700_000 + "]", "it is larger than 0.25 MiB"),
        ("closed_loop: [" + "[a, b],\n" * 2_000 + "]", "it has more than 5000 values, the most that are read"),
        ("closed_loop: " + "[" * 100_000, "it has more than 50 values within each other"),
        ("closed_loop: " + "{a: " * 50_000, "it has more than 50 values within each other"),
        ("a: &a [x]\nclosed_loop: *a", "aliases are refused"),
        ("closed_loop: !!python/name:os.abort ''", "tags are refused"),
    ],
)
def test_a_closure_file_may_have_so_much_in_it(text: str, told: str, file: File) -> None:
    file(text, "robot.yaml")
    refused(file(robot()), rf"robot\.yaml.*{told}")


@pytest.mark.parametrize("text", [":".join(["59"] * 20_000), "9" * 5_000, "1e99999", "0x" + "f" * 5_000, "1_" * 9_000])
def test_a_number_that_is_no_number_of_ours_is_a_word(text: str, tmp_path: Path) -> None:
    """Python counts such numbers in its own way, and fails to print those of 4300 digits."""
    path = tmp_path / "x.yaml"
    path.write_text(f"closed_loop: [[{text}, b]]")
    content = parse_yaml(path)
    assert isinstance(content["closed_loop"][0][0], str | float) and len(repr(content)) < 200_000
    (tmp_path / "x.urdf").write_text(robot())
    refused(tmp_path / "x.urdf", r"x\.yaml")


# Copies that MuJoCo would make


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            model(f'<replicate count="1000000000" offset="1 0 0">{BALL}</replicate>'),
            "more than 100000 elements, copies",
        ),
        (model('<replicate count="400"><replicate count="400"><site/></replicate></replicate>'), "copies among them"),
        (model(BALL, '<size nkey="2000000000"/>'), "its nkey must not exceed 1e.06"),
        (model(BALL, '<size nuser_body="2000000000"/>'), "its nuser_body must not exceed"),
        (model('<body><composite type="cable" count="1000 1000 1000"/></body>'), "copies among them"),
        (model(BALL * 30_000), "more than 5000 bodies, copies among them"),
    ],
)
def test_a_model_may_have_so_many_copies(text: str, told: str, file: File) -> None:
    pytest.importorskip("mujoco", "4.0", reason="MuJoCo 4 is not installed")
    refused(file(text, "robot.xml"), told)


def test_copies_of_what_is_included_count(file: File) -> None:
    file(f"<mujocoinclude>{'<site/>' * 500}</mujocoinclude>", "sites.xml")
    text = model('<replicate count="300"><include file="sites.xml"/></replicate>')
    refused(file(text, "robot.xml"), "more than 100000 elements, copies")


def balls(count: int) -> str:
    """Meshes of many points on a sphere, whose hulls take long to find."""
    points = np.random.default_rng(0).normal(size=(60_000, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    text = " ".join(f"{x:.5g}" for x in points.ravel())
    assets = "".join(f'<mesh name="m{i}" vertex="{text}"/>' for i in range(count))
    return model('<body><joint/><geom type="mesh" mesh="m0"/></body>', f"<asset>{assets}</asset>")


@pytest.mark.skipif(os.name != "posix", reason="there are no limits")
@pytest.mark.parametrize(
    ("limit", "value", "told"),
    [("seconds", 1, "it takes longer than 1 s"), ("memory", 1 << 20, "MuJoCo")],
)
def test_a_model_that_takes_too_much_is_given_up(
    limit: str, value: int, told: str, file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the next one is read as if nothing had been."""
    pytest.importorskip("mujoco", "4.0", reason="MuJoCo 4 is not installed")
    with monkeypatch.context() as patch:
        patch.setattr(compilation._child, limit, value)
        with pytest.raises(ModelError, match=rf"robot\.xml.*{told}"):
            load(file(balls(10), "robot.xml"))
    assert load(file(model(BALL), "robot.xml")).nv == 1


# Where it leads


@pytest.mark.parametrize("name", ["robot.yaml", "submechanisms.yml"])
def test_a_sidecar_that_is_a_link_elsewhere_is_told_and_not_read(name: str, file: File, tmp_path: Path) -> None:
    path = file(robot())
    (tmp_path / "secret").write_text("closed_loop: [[secret, base]]")
    path.with_name(name).symlink_to(tmp_path / "secret")
    with pytest.warns(ModelWarning, match=rf"{name} is a link to .*secret, outside the robot's folder, and is not"):
        load(path)
    refused(path, "no frame 'secret'", closures=path.with_name(name))  # named by the user, it is read


@pytest.mark.parametrize("text", ["no XML", '<robot name="r"><disable_collisions link1="base"/></robot>'])
def test_an_srdf_that_cannot_be_read_is_refused_and_may_be_renamed(file: File, text: str) -> None:
    path = file(robot())
    file(text, "robot.srdf")
    refused(path, r"robot\.srdf, line 1.* \(mend it, or rename it to load the robot without it\)")


def test_an_srdf_that_is_a_link_elsewhere_is_told_and_not_read(file: File, tmp_path: Path) -> None:
    path = file(robot())
    (tmp_path / "secret").write_text('<robot><disable_collisions link1="a" link2="b"/></robot>')
    path.with_suffix(".srdf").symlink_to(tmp_path / "secret")
    with pytest.warns(ModelWarning, match=r"robot\.srdf is a link to .*secret, outside the robot's folder, and is not"):
        assert load(path).exclusions == ()


def test_a_sidecar_that_is_a_link_within_the_folder_is_read(file: File) -> None:
    path = file(robot())
    file("closed_loop: [[nowhere, base]]", "loops")
    path.with_name("robot.yaml").symlink_to("loops")
    refused(path, "no frame 'nowhere'")


def test_a_transmission_elsewhere_is_told_and_not_read(file: File, tmp_path: Path) -> None:
    (tmp_path / "secret.urdf").write_text("<robot/>")
    file("submechanisms: [{type: TRANSMISSION, file_path: ../secret.urdf}]", "submechanisms.yml")
    with pytest.warns(ModelWarning, match=r"'\.\./secret\.urdf' describes is left out: it is outside the folder"):
        load(file(robot()))


# Names


LONG = "x" * 100_000


@pytest.mark.parametrize("path", [LONG, f"{LONG}/robot.urdf", "a\0b", "robot.urdf\0", "\udcff.urdf"])
def test_a_path_that_no_disk_has_is_not_there(path: str) -> None:
    with pytest.raises(ModelError, match="there is no such file") as told:
        load(path)
    assert len(str(told.value)) < 2000


@pytest.mark.parametrize("path", [LONG, "a\0b", "\udcff"])
def test_closures_and_packages_that_no_disk_has_are_not_there(path: str, file: File) -> None:
    mesh = f'<visual><geometry><mesh filename="package://p/{LONG}.stl"/></geometry></visual>'
    with pytest.raises(ModelError, match="cannot be read"):
        load(file(robot()), closures=path)
    with pytest.warns(ModelWarning, match=r"1 mesh (not found|outside)"):
        load(file(f'<robot><link name="a">{mesh}</link></robot>'), packages={"p": "x"})


def test_names_may_be_long_and_messages_stay_short(file: File) -> None:
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    found = load(file(f'<robot name="{LONG}"><link name="{LONG}">{inertial}</link></robot>'))
    assert list(found.bodies) == [LONG]
    other = "".join(chr(33 + i % 90) for i in range(100_000)).replace("<", "_").replace("&", "_").replace('"', "_")
    joint = f'<joint name="{LONG}" type="revolute"><parent link="{other}"/><child link="{LONG}"/></joint>'
    with at_most(AT_ONCE), pytest.raises(ModelError, match="is not a link of this file") as told:
        load(file(f'<robot name="{LONG}"><link name="{LONG}"/><link name="{other[1:]}"/>{joint}</robot>'))
    assert len(str(told.value)) < 2000


def test_many_shapes_without_names_are_soon_named(file: File) -> None:
    pytest.importorskip("mujoco", "4.0", reason="MuJoCo 4 is not installed")
    path = file(model("<body><joint/>" + "<geom size='1'/>" * 2_000 + "</body>"), "robot.xml")
    assert len({shape.name for shape in load(path).shapes}) == 2_000


def test_several_threads_may_load_at_once(file: File) -> None:
    pytest.importorskip("mujoco", "4.0", reason="MuJoCo 4 is not installed")
    path, found = file(model(BALL), "robot.xml"), []
    threads = [threading.Thread(target=lambda: found.append(load(path).nv)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1, 1, 1, 1]
