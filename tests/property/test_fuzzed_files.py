"""Damaged files: a loader gives a robot, or a `ModelError` that names the file, and nothing else, and soon.

Small files with something of every feature are mutated: elements, attributes, words, bytes. A mutation is a recipe of
numbers, each taken modulo what there is to choose from, so that what fails becomes a short list.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coupler.model import ModelError, Robot
from effort import examples
from models_folder import ABSENT, FOLDER
from mutations import TOKENS, Recipe, damaged, mutated, outcome, recipes, written
from work import at_most

# Files


def link(name: str, inside: str = "") -> str:
    return f"""
  <link name="{name}">
    <inertial>
      <origin xyz="0.1 0 0.02" rpy="0 0.1 0"/><mass value="1.5"/>
      <inertia ixx="0.02" ixy="0.001" ixz="0" iyy="0.03" iyz="0" izz="0.04"/>
    </inertial>{inside}
  </link>"""


def joint(name: str, kind: str, parent: str, child: str, xyz: str = "0 0 0", inside: str = "", more: str = "") -> str:
    return f"""
  <joint name="{name}" type="{kind}"{more}>
    <parent link="{parent}"/><child link="{child}"/><origin xyz="{xyz}" rpy="0 0 0"/><axis xyz="0 1 0"/>{inside}
  </joint>"""


def robot(*parts: str) -> str:
    return f'<?xml version="1.0"?>\n<robot name="sample">{"".join(parts)}\n</robot>\n'


FOUR_BAR = (
    *(link(name) for name in ("base", "crank", "rod", "rocker")),
    joint("shoulder", "revolute", "base", "crank", more=' independent="true"'),
    joint("elbow", "revolute", "crank", "rod", "0.2 0 0.1"),
    joint("pivot", "revolute", "base", "rocker", "0.6 0 0"),
)

LOOP = """
  <loop name="pin" type="revolute">
    <predecessor link="rod"><origin xyz="0.4 0 0" rpy="0 0 0"/></predecessor>
    <successor link="rocker"><origin xyz="0 0 0.3"/></successor><axis xyz="0 1 0"/>
  </loop>
  <spring name="calf" stiffness="50" free_length="0.2" pretension="1" damping="0.5">
    <predecessor link="base"><origin xyz="0 0 0.1"/></predecessor>
    <successor link="rod"><origin xyz="0.1 0 0"/></successor>
  </spring>"""

LOOPS = """
  <loop name="rod" type="rod"><predecessor link="base"/><successor link="one"/><length value="0.3"/></loop>
  <loop name="held" type="held">
    <predecessor link="base"/><successor link="two"/><hold linear="1 0 0"/><hold angular="0 1 0" linear="0 0 0.1"/>
  </loop>
  <loop name="cross" type="universal">
    <predecessor link="two"/><successor link="three"/><axis xyz="1 0 0"/><axis2 xyz="0 0 1"/>
  </loop>"""

COUPLINGS = """
  <coupling name="gear" type="rolling">
    <predecessor link="one"/><successor link="two"/><ratio value="6"/>
  </coupling>
  <coupling name="sum">
    <independent joint="to_one"/>
    <joint name="to_three" offset="0.1">
      <depends_on joint="to_one" multiplier="2"/><depends_on joint="to_five" multiplier="1"/>
    </joint>
  </coupling>
  <coupling name="cam"><joint name="to_four"><depends_on joint="to_one" polynomial="0 1 0.1"/></joint></coupling>
  <transmission name="drive">
    <type>Simple</type><joint name="to_five"><hardwareInterface>a</hardwareInterface></joint>
    <actuator name="motor"><rotor_inertia value="0.01"/><mechanicalReduction>9</mechanicalReduction></actuator>
  </transmission>"""

GAZEBO = """
  <gazebo reference="rod"><selfCollide>true</selfCollide><material>Red</material></gazebo>
  <gazebo><joint name="pin" type="revolute">
    <parent>rocker</parent><child>rod</child><pose>0.3 0 0 0 0 0</pose>
    <axis>
      <xyz>0 1 0</xyz><limit><lower>-1e16</lower><upper>1e16</upper></limit><dynamics><damping>0.1</damping></dynamics>
      <use_parent_model_frame>1</use_parent_model_frame>
    </axis>
  </joint></gazebo>"""

SHAPES = """
    <visual><geometry><box size="20 20 0.002" as="plane"/></geometry></visual>
    <visual name="a"><origin xyz="1 2 3"/><geometry><box size="1 2 3"/></geometry><material name="red"/></visual>
    <collision same="true" group="2" meets="3" friction="0.5"/>
    <collision><geometry><cylinder radius="0.1" length="2" as="capsule"/></geometry></collision>
    <visual><geometry><sphere radius="2" radii="1 2 1.5"/></geometry></visual>
    <visual><geometry><mesh filename="package://b/c.stl" scale="1 1 2"/></geometry></visual>
    <collision><geometry><mesh filename="../c.stl"/></geometry></collision>"""

KEYFRAME = """
  <gravity xyz="0 1 -9"/>
  <keyframe name="bent"><joint name="turn" position="0.5" velocity="1"/><joint name="cross" position="1 0"/>
  </keyframe>"""

PAIRS = """closed_loop: [[closing_a_1, closing_a_2]]
type: ['3d']
name_mot: ['shoulder']
joint_name: [to_tip]
joint_type: [UJOINT_XY]
"""

SUBMECHANISMS = """submechanisms:
- name: knee
  type: NUMERICAL
  jointnames_active:
  - shoulder
  jointnames_independent: [shoulder]
  loop_constraints:
  - cut_joint: "cut"
    predecessor_body: "rod"
    successor_body: "rocker"
    constraint_axes:
    - {name: x, axis: [0., 0., 0., 1., 0., 0.]}
    - name: "z"
      axis: [0, 0, 0, 0, 0, 1]
- type: TRANSMISSION
  file_path: robot.urdf
"""


def part(of: str, kind: str, more: str = "") -> str:
    return f'<part of="{of}" kind="{kind}" {more}/>'


JOINTS = (
    joint("float", "floating", "link0", "link1", inside='<dynamics damping="1 2 3 4 5 6"/>'),
    joint("slide", "prismatic", "link1", "link2", inside='<limit lower="-1" upper="2" effort="3" velocity="1e30"/>'),
    joint(
        "turn",
        "revolute",
        "link2",
        "link3",
        inside='<dynamics damping="1" friction="0.2" armature="0.1" stiffness="3" rest="0.4"/><meets xyz="0.1 0 0"/>',
        more=' actuated="true" start="0.3"',
    ),
    joint("plane", "planar", "link3", "link4"),
    joint("screw", "helical", "link4", "link5", inside='<pitch value="0.01"/>'),
    joint("cross", "universal", "link5", "link6", inside='<axis2 xyz="0 0 1"/>'),
    joint("tip_fixed", "fixed", "link6", "tip", "0 0 1"),
    joint("heel_fixed", "fixed", "link6", "heel", "0 0 2"),
)

CHAINS = (
    joint("ball_1", "continuous", "base", "ball_1", inside=part("ball", "spherical")),
    joint("ball_2", "continuous", "ball_1", "ball_2", inside=part("ball", "spherical")),
    joint("ball_3", "continuous", "ball_2", "arm", inside=part("ball", "spherical")),
    joint("bolt_1", "continuous", "arm", "bolt_1", inside=part("bolt", "helical", 'pitch="0.1"')),
    joint("bolt_2", "prismatic", "bolt_1", "hand", inside='<mimic joint="bolt_1"/>' + part("bolt", "helical")),
    joint("tube_1", "continuous", "hand", "tube_1", inside=part("tube", "cylindrical", 'lower="-1 -2" upper="1 2"')),
    joint("tube_2", "prismatic", "tube_1", "cup", inside=part("tube", "cylindrical")),
)

URDF: dict[str, str] = {
    "shapes": robot(
        '<material name="red"><color rgba="1 0 0 1"/><texture filename="a.png"/></material>',
        link("ground", SHAPES),
        link("arm", '<collision><geometry><sphere radius="0.2"/></geometry></collision>'),
        joint("turn", "continuous", "ground", "arm"),
    ),
    "joints": robot(
        *(link(f"link{i}") for i in range(7)),
        '<link name="tip" as="frame"/><link name="heel" as="contact"/>',
        *JOINTS,
        KEYFRAME,
    ),
    "chains": robot(
        *(link(name) for name in ("base", "arm", "hand", "cup")),
        *(f'<link name="{name}"/>' for name in ("ball_1", "ball_2", "bolt_1", "tube_1")),
        *CHAINS,
    ),
    "loop": robot(*FOUR_BAR, LOOP),
    "loops": robot(
        *(link(name) for name in ("base", "one", "two", "three")),
        *(joint(f"free_{name}", "floating", "base", name) for name in ("one", "two", "three")),
        LOOPS,
    ),
    "couplings": robot(
        *(link(name) for name in ("base", "one", "two", "three", "four", "five", "six")),
        *(joint(f"to_{name}", "revolute", "base", name) for name in ("one", "two", "three", "four", "five")),
        joint("to_six", "revolute", "five", "six", inside='<mimic joint="to_one" multiplier="-1" offset="0.2"/>'),
        COUPLINGS,
    ),
    "gazebo": robot(*FOUR_BAR, GAZEBO),
    "pairs": robot(
        *FOUR_BAR,
        '<link name="closing_a_1"/><link name="closing_a_2"/>',
        joint("a_1", "fixed", "rod", "closing_a_1", "0.4 0 0"),
        joint("a_2", "fixed", "rocker", "closing_a_2", "0 0 0.3"),
        link("tip"),
        joint("to_tip", "revolute", "rocker", "tip", "0 0 0.3"),
    ),
    "submechanisms": robot(*FOUR_BAR, '<link name="cut"/>', joint("cut", "fixed", "rod", "cut", "0.4 0 0.2")),
}

BESIDE = {"pairs": ("robot.yaml", PAIRS), "submechanisms": ("submechanisms.yml", SUBMECHANISMS)}

REAL = [
    *(f"grbda/{name}" for name in ("four_bar", "six_bar", "planar_leg_linkage", "mini_cheetah_leg")),
    "closed_loop_2bt/closed_loop_expanded",
    "gepetto_5bar_linkage_iso3d/robot",
    "rh5_manus/submechanisms_urdf/submechanisms_reduced",
]


# Tests


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzzed")


def with_others(name: str, data: bytes) -> dict[str, bytes]:
    """A sample's robot with what stands beside it."""
    beside, text = BESIDE.get(name, ("", ""))
    return {"robot.urdf": data} | ({beside: text.encode()} if beside else {})


@pytest.mark.parametrize("name", URDF)
def test_the_samples_themselves_are_robots(folder: Path, name: str) -> None:
    assert isinstance(outcome(*written(folder, with_others(name, URDF[name].encode()))), Robot)


@pytest.mark.parametrize("name", URDF)
@examples(10, 150)
@given(recipe=recipes(1, 4))
def test_changed_elements(folder: Path, name: str, recipe: Recipe) -> None:
    outcome(*written(folder, with_others(name, mutated(URDF[name], recipe))))


@examples(100, 1000)
@given(name=st.sampled_from(list(URDF)), recipe=recipes(1, 3))
def test_damaged_bytes(folder: Path, name: str, recipe: Recipe) -> None:
    outcome(*written(folder, with_others(name, damaged(URDF[name].encode(), recipe))))


@pytest.mark.parametrize("name", BESIDE)
@examples(25, 400)
@given(recipe=recipes(1, 3))
def test_damaged_closure_files(folder: Path, name: str, recipe: Recipe) -> None:
    beside, text = BESIDE[name]
    outcome(*written(folder, {"robot.urdf": URDF[name].encode(), beside: damaged(text.encode(), recipe, TOKENS)}))


@pytest.mark.skipif(bool(ABSENT), reason=ABSENT or "they are there")
@pytest.mark.parametrize("name", REAL)
@examples(6, 40)
@given(recipe=recipes(1, 3))
def test_changed_files_of_others(folder: Path, name: str, recipe: Recipe) -> None:
    path = FOLDER / f"{name}.urdf"
    beside = [path.with_suffix(suffix) for suffix in (".yaml", ".yml")]
    others = {f"robot{file.suffix}": file.read_bytes() for file in beside if file.is_file()}
    outcome(*written(folder, {"robot.urdf": mutated(path.read_text(encoding="utf-8"), recipe)} | others))


# What does harm on purpose, or is no robot's file at all


AT_ONCE = 3_000_000  # calls; the deepest takes 0.9 million

LAUGHS = "".join(f'<!ENTITY l{i} "{10 * f"&l{i - 1};"}">' for i in range(1, 10))
ALIASES = "".join(f"{b}: &{b} [{9 * f'*{a},'}]\n" for a, b in pairwise("abcdefghi"))


def body(inside: str = "") -> str:
    return f'<robot name="sample"><link name="base"/>{inside}</robot>'


def at_once(folder: Path, files: dict[str, bytes]) -> Robot | ModelError:
    with at_most(AT_ONCE):
        return outcome(*written(folder, files))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(
            f'<!DOCTYPE robot [<!ENTITY l0 "ha">{LAUGHS}]>{body("&l9;")}', "entities are refused", id="laughs"
        ),
        pytest.param(
            f'<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/passwd">]>{body("&x;")}',
            "entities are refused",
            id="file",
        ),
        pytest.param(
            f'<!DOCTYPE robot [<!ENTITY % x SYSTEM "file:///etc/passwd"> %x;]>{body()}',
            "entities are refused",
            id="parameter entity",
        ),
        pytest.param("", "not XML", id="empty"),
        pytest.param(" \n", "not XML", id="blank"),
        pytest.param(body() + body(), "not XML", id="two roots"),
        pytest.param("<html/>", "begins with <robot>", id="no robot"),
    ],
)
def test_a_file_that_does_harm_or_is_empty_is_refused_at_once(folder: Path, data: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        raise at_once(folder, {"robot.urdf": data.encode()})  # type: ignore[misc]


def test_a_binary_file_is_refused_at_once(folder: Path) -> None:
    for data in (b"\x7fELF" + bytes(range(256)) * 1000, bytes(1000), b"PK\x03\x04" + bytes(100)):
        assert "not XML" in str(at_once(folder, {"robot.urdf": data}))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "latin-1"])
def test_other_encodings_are_read(folder: Path, encoding: str) -> None:
    declared = encoding.removesuffix("-sig")
    data = f'<?xml version="1.0" encoding="{declared}"?>{URDF["chains"].split("?>")[1].replace("arm", "bras_é")}'
    found = at_once(folder, {"robot.urdf": data.encode(encoding)})
    assert isinstance(found, Robot)
    assert "bras_é" in found.bodies


def test_elements_that_are_nested_deeply_are_read_at_once(folder: Path) -> None:
    found = at_once(folder, {"robot.urdf": body("<a>" * 499 + "</a>" * 499).encode()})
    assert isinstance(found, Robot)
    assert "1 × <a>" in " ".join(found.warnings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(f"a: &a [x]\n{ALIASES}closed_loop: *i\n", "aliases are refused", id="aliases"),
        pytest.param("a: &a {b: c}\nclosed_loop: {<<: *a}\n", "aliases are refused", id="merged"),
        pytest.param("closed_loop: " + 100_000 * "[", "values within each other", id="nested"),
        pytest.param("closed_loop: " + 10_000 * "9", "must be a list", id="long number"),
        pytest.param("closed_loop: !!python/name:os.abort ''", "not YAML", id="a function"),
    ],
)
def test_a_closure_file_that_does_harm_is_refused_at_once(folder: Path, text: str, message: str) -> None:
    found = at_once(folder, {"robot.urdf": body().encode(), "robot.yaml": text.encode()})
    assert isinstance(found, ModelError)
    assert message in str(found)


# What damaged files have brought to light


@pytest.mark.parametrize("scalar", ["!!int ''", "!!float ''", "!!bool x", "!!timestamp x", r'"\UFFFFFFFF"'])
def test_a_word_of_yaml_that_is_not_what_it_says_is_refused(folder: Path, scalar: str) -> None:
    files = {"robot.urdf": body().encode(), "robot.yaml": f"closed_loop: [[base, {scalar}]]\n".encode()}
    assert isinstance(at_once(folder, files), ModelError)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("joints", '<mass value="1.5"/>', '<mass value="1e308"/>'),
        ("joints", 'ixx="0.02"', 'ixx="1e308"'),
        ("joints", 'xyz="0.1 0 0.02"', 'xyz="1e160 1e160 0"'),
        ("joints", '<meets xyz="0.1 0 0"/>', '<meets xyz="1e160 0 0"/>'),
        ("loop", 'xyz="0.2 0 0.1"', 'xyz="1e160 0 1e160"'),
        ("loop", 'xyz="0.4 0 0"', 'xyz="1e308 0 1e308"'),
        ("loops", 'length value="0.3"', 'length value="1e160"'),
        ("loops", 'linear="1 0 0"', 'linear="1e160 1e160 0"'),
        ("couplings", 'ratio value="6"', 'ratio value="1e160"'),
        ("couplings", 'polynomial="0 1 0.1"', 'polynomial="0 1 1e160"'),
        ("couplings", ">9<", ">1e160<"),
        ("gazebo", "0.3 0 0 0 0 0", "1e160 0 0 0 0 0"),
    ],
)
def test_a_number_too_large_to_square_does_no_harm(folder: Path, name: str, old: str, new: str) -> None:
    assert old in URDF[name]
    at_once(folder, with_others(name, URDF[name].replace(old, new).encode()))


@pytest.mark.parametrize("name", ["x" * 5000, "package://a/" + "x/" * 3000])
def test_a_mesh_with_a_name_that_no_disk_holds_is_left_out_and_told(folder: Path, name: str) -> None:
    found = at_once(folder, {"robot.urdf": URDF["shapes"].replace("package://b/c.stl", name).encode()})
    assert isinstance(found, Robot)
    assert "not found" in " ".join(found.warnings)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("file_path: robot.urdf", f"file_path: {'x' * 5000}"),
        ("file_path: robot.urdf", r'file_path: "\0"'),
        ("axis: [0, 0, 0, 0, 0, 1]", f"axis: [0, 0, 0, 0, 0, {'9' * 400}]"),
    ],
)
def test_a_submechanism_that_cannot_be_does_no_harm(folder: Path, old: str, new: str) -> None:
    assert old in SUBMECHANISMS
    text = SUBMECHANISMS.replace(old, new)
    at_once(folder, {"robot.urdf": URDF["submechanisms"].encode(), "submechanisms.yml": text.encode()})


def test_a_reference_that_stands_for_nothing_is_told(folder: Path) -> None:
    """Entities of an external document are never fetched, but neither may they vanish from a name."""
    data = '<!DOCTYPE robot SYSTEM "robot.dtd"><robot name="sample"><link name="base&x;"/></robot>'
    assert isinstance(at_once(folder, {"robot.urdf": data.encode()}), ModelError)


def test_text_in_many_pieces_is_read_at_once(folder: Path) -> None:
    assert isinstance(at_once(folder, {"robot.urdf": body("x&#10;" * 800_000).encode()}), Robot)
