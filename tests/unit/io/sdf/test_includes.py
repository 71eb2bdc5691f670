"""Models within models, in the file or in others: names, places, and where a file may lead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import coupler
from coupler.io.load import load
from coupler.model import Mesh, ModelError, ModelWarning, Robot
from saved_robots import dynamics_gap
from sdf_samples import joint, link, sdf
from work import at_most

Read = Callable[..., Robot]
EXACT = 1e-12
HAND = (
    link("palm", "0 0 0.1 0 0.2 0")
    + link("finger", "0 0.1 0.2 0.3 0 0")
    + joint("curl", "revolute", "palm", "finger", "<xyz expressed_in='__model__'>0 0 1</xyz>")
    + '<frame name="tip" attached_to="finger"><pose>0 0 0.1 0.5 0 0</pose></frame>'
)
ARM = link("arm", "0.1 0 0 0 0 0.3") + joint("stand", "fixed", "world", "arm")
PLACED = '<pose relative_to="arm">0.5 0 0 0 0.4 0</pose>'


def nested(name: str = "hand") -> str:
    """By hand: the hand's links in the frame of the whole model, by a frame where the hand's would be."""
    return (
        ARM
        + f'<frame name="h" attached_to="arm">{PLACED}</frame>'
        + link(f"{name}__palm", "[relative_to='h']0 0 0.1 0 0.2 0")
        + link(f"{name}__finger", "[relative_to='h']0 0.1 0.2 0.3 0 0")
        + joint(f"{name}__curl", "revolute", f"{name}__palm", f"{name}__finger", "<xyz expressed_in='h'>0 0 1</xyz>")
        + joint("wrist", "revolute", "arm", f"{name}__palm", "0 1 0")
    )


def include(uri: str, more: str = PLACED, **attributes: str) -> str:
    given = "".join(f' {word}="{value}"' for word, value in attributes.items())
    return f"<include{given}><uri>{uri}</uri>{more}</include>"


def wrist(palm: str = "hand::palm") -> str:
    return joint("wrist", "revolute", "arm", palm, "0 1 0")


def assert_same(found: Robot, read: Read, separator: str = "::") -> None:
    """Apart from names: nested ones have a prefix."""
    wanted = read(sdf(nested()), "flat.sdf")
    names = {name.replace("__", separator) if separator else name.split("__")[-1] for name in wanted.body_names}
    assert set(found.body_names) == names and found.warnings == ()
    given = {"wrist": 0.3, ("hand" + separator + "curl") if separator else "curl": -0.4}
    q, p = found.pack_q(given), wanted.pack_q({"wrist": 0.3, "hand__curl": -0.4})
    order = [found.joint_names.index(name) for name in given]
    ours, theirs = (coupler.mass_matrix(one, x) for one, x in ((found, q), (wanted, p)))
    if order != sorted(order):
        ours = ours[::-1, ::-1]
    curl_first = wanted.joint_names.index("hand__curl") < wanted.joint_names.index("wrist")
    theirs = theirs[::-1, ::-1] if curl_first else theirs
    np.testing.assert_allclose(ours, theirs, atol=EXACT)


def test_a_model_in_a_model(read: Read) -> None:
    robot = read(sdf(ARM + f'<model name="hand">{PLACED}{HAND}</model>' + wrist()))
    assert robot.body_names == ["arm", "hand::palm", "hand::finger"]
    assert robot.joint_names == ["stand", "hand::curl", "wrist"] and robot.frame_names == ["hand::tip"]
    assert_same(robot, read)


@pytest.mark.parametrize("uri", ["hand.sdf", "file://hand.sdf", "models/hand", "models/hand/hand.sdf", "model://hand"])
def test_a_model_of_another_file(uri: str, read: Read, tmp_path: Path) -> None:
    folder = tmp_path / "models" / "hand"
    folder.mkdir(parents=True)
    config = (
        '<model><sdf version="1.5">old.sdf</sdf><sdf version="1.7">hand.sdf</sdf><sdf version="9.9">x</sdf></model>'
    )
    (folder / "model.config").write_text(config)
    for place in (folder, tmp_path):
        (place / "hand.sdf").write_text(sdf(HAND, "1.7", "hand"))
    packages = {"hand": folder} if uri.startswith("model") else {}
    robot = read(sdf(ARM + include(uri) + wrist()), packages=packages)
    assert_same(robot, read)


def test_a_folder_beside_the_file_is_a_model(read: Read, tmp_path: Path) -> None:
    (tmp_path / "hand").mkdir()
    (tmp_path / "hand" / "model.sdf").write_text(sdf(HAND, "1.7", "hand"))
    assert_same(read(sdf(ARM + include("model://hand") + wrist())), read)


def test_a_model_that_is_merged_keeps_its_names(read: Read, tmp_path: Path) -> None:
    (tmp_path / "hand.sdf").write_text(sdf(HAND, "1.7", "hand"))
    robot = read(sdf(ARM + include("hand.sdf", merge="true") + wrist("palm")))
    assert robot.body_names == ["arm", "palm", "finger"] and robot.frame_names == ["tip"]
    assert_same(robot, read, "")


def test_a_model_may_be_included_twice(read: Read, tmp_path: Path) -> None:
    (tmp_path / "hand.sdf").write_text(sdf(HAND, "1.7", "hand"))
    both = "".join(include("hand.sdf", f"<name>{side}</name>{PLACED}") for side in ("left", "right"))
    robot = read(sdf(ARM + both + wrist("left::palm")))
    assert robot.body_names == [
        "arm",
        *(f"{side}::{part}" for side in ("left", "right") for part in ("palm", "finger")),
    ]
    assert robot.nv == 1 + 1 + 7 and robot.warnings == ()
    with pytest.raises(ModelError, match="there is a model 'hand' in model 'robot' already; give one of them another"):
        read(sdf(ARM + include("hand.sdf") * 2))


def test_an_include_says_where_and_whether_a_model_moves(read: Read, tmp_path: Path) -> None:
    (tmp_path / "hand.sdf").write_text(sdf("<pose>9 9 9 0 0 0</pose>" + HAND, "1.7", "hand"))
    still = include("hand.sdf", "<static>true</static><name>still</name>")
    free = include("hand.sdf", "<pose>1 0 0 0 0 0</pose><placement_frame>palm</placement_frame>")
    robot = read(f'<sdf version="1.11"><world name="w">{still}{free}</world></sdf>')
    assert robot.body_names == ["palm", "finger"] and robot.nv == 7
    np.testing.assert_allclose(coupler.frame_pose(robot, robot.neutral(), "palm"), np.eye(4) + _shift(1), atol=1e-15)


def _shift(x: float) -> np.ndarray:
    shift = np.zeros((4, 4))
    shift[0, 3] = x
    return shift


def test_a_file_of_1_4_included_in_one_of_1_11_keeps_its_version(read: Read, tmp_path: Path) -> None:
    """Axes of 1.4 are in the model's frame."""
    (tmp_path / "hand.sdf").write_text(sdf(HAND.replace(" expressed_in='__model__'", ""), "1.4", "hand"))
    assert_same(read(sdf(ARM + include("hand.sdf") + wrist())), read)


def test_meshes_are_beside_the_file_that_names_them(read: Read, tmp_path: Path) -> None:
    folder = tmp_path / "hand"
    folder.mkdir()
    for place in (folder, tmp_path):
        (place / "m.stl").write_text("")
    uris = ("m.stl", "../m.stl", "model://hand/m.stl")
    shapes = "".join(
        f'<visual name="{i}"><geometry><mesh><uri>{uri}</uri></mesh></geometry></visual>' for i, uri in enumerate(uris)
    )
    (folder / "model.sdf").write_text(sdf(link("palm", inside=shapes), "1.7", "hand"))
    robot = read(sdf(ARM + include("model://hand") + joint("grown", "fixed", "arm", "hand::palm")))
    paths = [shape.geometry.path for shape in robot.shapes if isinstance(shape.geometry, Mesh)]
    assert paths == [folder / "m.stl", tmp_path / "m.stl", folder / "m.stl"] and robot.warnings == ()


def test_what_an_included_file_has_besides_is_told(read: Read, tmp_path: Path) -> None:
    (tmp_path / "hand.sdf").write_text(sdf(HAND + "<plugin/>", "1.7", "hand").replace("</sdf>", "<actor/></sdf>"))
    with pytest.warns(ModelWarning, match="1 × <actor>, 1 × <plugin>"):
        read(sdf(ARM + include("hand.sdf") + wrist()))


@pytest.mark.parametrize("uri", ["model://sun", "https://fuel.gazebosim.org/1.0/OpenRobotics/models/Sun", "sun.sdf"])
def test_a_world_does_without_models_that_are_not_there(uri: str, read: Read, tmp_path: Path) -> None:
    (tmp_path / "sun.sdf").write_text('<sdf version="1.6"><light name="sun"/></sdf>')
    text = f'<sdf version="1.6"><world name="w">{include(uri, "")}<model name="arm">{ARM}</model></world></sdf>'
    with pytest.warns(ModelWarning, match=f"included models not found, and left out: '{uri}'; name"):
        assert read(text).body_names == ["arm"]
    with pytest.raises(ModelError, match=f"there is no <model> in it; '{uri}' is not there"):
        read(f'<sdf version="1.6"><world name="w">{include(uri, "")}</world></sdf>')


# Where a file may lead


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("https://fuel.gazebosim.org/1.0/hand", "is not downloaded: put the model into the file's folder"),
        ("../secret.sdf", "outside the file's folder; name its folder in packages="),
        ("/etc/passwd", "outside the file's folder"),
        ("file:///etc/passwd", "outside the file's folder"),
        ("link.sdf", "outside the file's folder"),
        ("linked", "outside the file's folder"),
        ("model://far", "there is no file .*; name the folder of 'far' in packages="),
        ("model://../secret.sdf", "outside the file's folder"),
        ("model://..", "outside the file's folder"),
        ("package://", "there is no file"),
        ("", "it names no file"),
        ("nothing.sdf", "there is no file"),
        ("other.urdf", "is not SDFormat, which begins with <sdf>"),
        ("two.sdf", "must hold one model to be included; it holds 'x', 'y'"),
        ("broken.sdf", "it is not XML"),
        ("x" * 5000, "File name too long|there is no file"),
    ],
)
def test_what_is_not_included(uri: str, told: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "secret.sdf").write_text(sdf(HAND, name="secret"))
    (tmp_path / "model.sdf").write_text(sdf(HAND, name="secret"))
    (folder / "link.sdf").symlink_to(tmp_path / "secret.sdf")
    (folder / "linked").symlink_to(tmp_path)
    (folder / "other.urdf").write_text("<robot/>")
    (folder / "two.sdf").write_text('<sdf version="1.6"><model name="x"/><model name="y"/></sdf>')
    (folder / "broken.sdf").write_text("<sdf")
    (folder / "robot.sdf").write_text(sdf(ARM + include(uri)))
    with at_most(1_000_000), pytest.raises(ModelError, match=rf"robot\.sdf, line .*({told})"):
        load(folder / "robot.sdf")


def test_a_config_that_leads_elsewhere_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "hand").mkdir(parents=True)
    (tmp_path / "model.config").write_text('<model><sdf version="1.7">hand.sdf</sdf></model>')
    (folder / "hand" / "model.config").symlink_to(tmp_path / "model.config")
    (folder / "hand" / "hand.sdf").write_text(sdf(HAND, name="hand"))
    (folder / "robot.sdf").write_text(sdf(ARM + include("model://hand")))
    with pytest.raises(ModelError, match=r"there is no file .*model\.sdf"):
        load(folder / "robot.sdf")


def test_a_file_that_includes_itself(read: Read) -> None:
    with at_most(3_000_000), pytest.raises(ModelError, match=r"<include>: the model '\w+' includes itself"):
        read(sdf(ARM + include("robot.sdf")))


def test_files_that_double_each_other(read: Read, tmp_path: Path) -> None:
    """Twenty files, each with two of the next: a million models, were they read."""
    for i in range(20):
        twice = "".join(include(f"m{i + 1}.sdf", f"<name>{side}</name>") for side in "ab")
        (tmp_path / f"m{i}.sdf").write_text(sdf(twice if i < 19 else link("x")))
    with at_most(10_000_000), pytest.raises(ModelError, match=r"more than (5000 models|100000 elements)"):
        read(sdf(include("m0.sdf")))


def test_models_nested_too_deeply(read: Read) -> None:
    deep = "".join(f'<model name="m{i}">' for i in range(60)) + link("a") + "</model>" * 60
    with pytest.raises(ModelError, match="it is within 50 other models, the most that are read"):
        read(sdf(deep))
    fine = "".join(f'<model name="m{i}" placement_frame="a">' for i in range(40)) + link("a") + "</model>" * 40
    with pytest.raises(ModelError, match="there is no frame 'a' in model 'm0'"):
        read(sdf(fine))
    path = "::".join(f"m{i}" for i in range(40))
    deep = "".join(f'<model name="m{i}">' for i in range(40)) + link("a") + "</model>" * 40
    robot = read(sdf(deep))
    assert robot.body_names == [f"{path}::a"] and dynamics_gap(robot, robot) == 0.0


@pytest.mark.parametrize("tag", ["link", "frame"])
def test_a_file_may_have_so_many_parts(tag: str, read: Read) -> None:
    parts = "".join(f'<{tag} name="{i}"/>' for i in range(5_001))
    with (
        at_most(3_000_000),
        pytest.raises(ModelError, match=f"there are more than 5000 {tag}s, the most that are read"),
    ):
        read(sdf(link("a") + parts))
