"""Other people's robots in URDF: their freedoms, and their dynamics against reference numbers and against Pinocchio.

Pinocchio reads the same file, as an open tree. Where its frames must meet, and which joints go together, is read here
once more from what stands in the file or beside it; of coupler's own reading there is nothing in it.
"""

from __future__ import annotations

import re
import shutil
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import coupler
import golden
from coupler.io import load
from coupler.model import ModelWarning, Robot
from effort import every
from models_folder import ABSENT, FOLDER, files, loaded
from peers import Equations, batch_of, gap

if ABSENT:
    pytest.skip(ABSENT, allow_module_level=True)

# Relative to the largest entry. Reached: 6e-15 for the reference numbers; against Pinocchio, 4e-15 for H and c (3e-14
# for Reachy Mini) and 6e-14 for accelerations, but for Reachy Mini's, whose light rods make H nearly singular: 3e-10.
EXACT = 5e-13
GRAVITY = (1.0, 2.0, -9.0)  # tilted, so that it does work on planar mechanisms

# Freedoms: of joints, less what loops and couplings take.
FREEDOMS = {
    "closed_loop_2bt/closed_loop_expanded": 1,  # a four-bar
    "gepetto_5bar_linkage_iso3d/robot": 2,
    "gepetto_battobot_6d/robot": 12,  # 18 turns, 6 universal joints and 6 balls less 6 welds of 6 rows
    "grbda/double_pendulum": 2,
    "grbda/four_bar": 1,
    "grbda/jvrc1_humanoid": 38,  # 6 of the base and 32 joints, 25 of them with a geared rotor
    "grbda/jvrc1_humanoid_approximate": 38,  # without rotors
    "grbda/mini_cheetah": 18,  # 6 of the base and 3 a leg, each with a geared rotor
    "grbda/mini_cheetah_approximate": 18,
    "grbda/mini_cheetah_base": 6,
    "grbda/mini_cheetah_fl_leg": 3,
    "grbda/mini_cheetah_fr_leg": 3,
    "grbda/mini_cheetah_hl_leg": 3,
    "grbda/mini_cheetah_hr_leg": 3,
    "grbda/mini_cheetah_leg": 3,
    "grbda/mit_humanoid": 24,  # 6 of the base, 4 an arm and 5 a leg; knees and ankles by belts
    "grbda/mit_humanoid_approximate": 24,
    "grbda/mit_humanoid_leg": 5,
    "grbda/planar_leg_linkage": 2,  # a hip and a four-bar
    "grbda/revolute_rotor_chain": 3,
    "grbda/six_bar": 3,  # five turns in a plane less 2 rows
    "grbda/tello_humanoid": 42,  # 6 of the base, 18 joints and 18 rotors: the file has no differentials
    "grbda/tello_humanoid_approximate": 24,  # without rotors
    "grbda/tello_legs": 20,  # 10 joints and 10 rotors, on the ground
    "reachy_mini/urdf/robot_no_collision": 15,  # 30 turns less 5 balls: 7 motors, 2 antennas, and rods that spin
    "rh5_manus/full_urdf/RH5v2": 31,  # 61 less 6 rows of the torso, 2 an elbow, 10 a wrist; the head's file is missing
    "rh5_manus/submechanisms_urdf/ALElbow": 3,  # alone, without the file of its loops
    "rh5_manus/submechanisms_urdf/ARElbow": 3,
    "rh5_manus/submechanisms_urdf/Body": 8,
    "rh5_manus/submechanisms_urdf/Head": 3,  # 6 turns, 3 of which depend on the others by a transmission
    "rh5_manus/submechanisms_urdf/left_wrist_mechanism": 16,
    "rh5_manus/submechanisms_urdf/right_wrist_mechanism": 16,
    "rh5_manus/submechanisms_urdf/submechanisms_reduced": 13,  # 23 less 6 rows of the torso and 2 an elbow
}


def freedoms_of(name: str) -> int:
    """From the table, or for a family of chains from its size."""
    chains = re.fullmatch(r"grbda_benchmark_chains/parallel_chains/(?:Ex|Im)plicit/depth(\d+)/loop_size\d+.urdf", name)
    if chains:  # two chains with a gear between them, or with a rod that costs two rows more than it brings
        return 2 * int(chains[1]) - 1
    tree = re.fullmatch(r"grbda_benchmark_chains/\w+/(four_bar|revolute_rotor(?:_pair)?)_branch_(\d)_(\d).urdf", name)
    if tree:  # a floating base with branches of mechanisms in series, of one freedom or, as pairs, of two
        return 6 + int(tree[2]) * int(tree[3]) * (2 if "pair" in tree[1] else 1)
    return FREEDOMS[name.removesuffix(".urdf")]


@pytest.mark.parametrize("name", every(3, files(".urdf")))
def test_a_file_gives_a_robot_with_its_freedoms(name: str) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        robot = load(FOLDER / name)
    assert robot.nv == freedoms_of(name)
    assert len(told) == bool(robot.warnings)
    for one in told:  # all in one warning, and each in it
        assert all(text[:1000] in str(one.message) for text in robot.warnings)
    robot.check(robot.neutral())


def test_the_full_rh5_has_the_papers_20_freedoms_with_its_head_and_without_idle_ones() -> None:
    """61 joints; 30 rows of loops and 3 of the head's transmission, whose file is in another folder; 8 idle freedoms.

    A cross in each of a wrist's two rods turns alone, and with it held the rod spins.
    """
    folder = FOLDER / "rh5_manus"
    with pytest.warns(ModelWarning, match="123 meshes"):
        robot = load(folder / "full_urdf/RH5v2.urdf", packages={"parts": folder / "submechanisms_urdf"}, lock_idle=True)
    assert (robot.tree.nv, robot.nv, robot.idle) == (61, 20, ())
    assert not any("transmission" in told for told in robot.warnings)
    wrist = {"ALWristPitch", "ALWristYaw", "ARWristPitch", "ARWristYaw"}
    assert wrist | {"HeadPitch", "HeadRoll", "HeadYaw"} <= {*robot.independent_joints}
    assert {name for name in robot.independent_joints if "Wrist" in name} == wrist | {"ALWristRoll", "ARWristRoll"}


@pytest.mark.parametrize("name", ["four_bar", "planar_leg_linkage"])
def test_a_singular_home_pose_is_told_and_neutral_is_elsewhere(name: str) -> None:
    with pytest.warns(ModelWarning, match="singular"):
        robot = load(FOLDER / "grbda" / f"{name}.urdf")
    q = robot.neutral()
    assert max(robot.loop_errors(q).values()) < 1e-10  # m
    robot.check(q)


def test_a_xacro_file_is_what_it_expands_to(tmp_path: Path) -> None:
    pytest.importorskip("xacrodoc", reason="xacrodoc is not installed (pip install xacrodoc)")
    folder = tmp_path / "closed_loop" / "urdf"
    folder.mkdir(parents=True)
    for path in (FOLDER / "closed_loop_2bt").glob("*.xacro"):
        shutil.copy(path, folder)
    robot = load(
        folder / "closed_loop.urdf.xacro",
        arguments={"is_gravity": "true"},
        packages={"closed_loop": folder.parent},
        xacro=True,
    )
    expanded = loaded("closed_loop_2bt/closed_loop_expanded.urdf")
    batch = batch_of(expanded)
    assert robot.joint_names == expanded.joint_names
    for function, given in ((coupler.forward_dynamics, batch.tau), (coupler.inverse_dynamics, batch.a)):
        found = function(robot, batch.q, batch.v, given)
        np.testing.assert_array_equal(found, function(expanded, batch.q, batch.v, given))


# Reference numbers


def sources() -> dict[str, str]:
    """The robots' files by the names of their reference files."""
    found = {}
    for name in golden.names():
        source = golden.load(name)["model"]["source"].removeprefix("URDF+ ")
        path = re.sub(r"^Benchmarking/urdfs", "grbda_benchmark_chains", re.sub(r"^robot-models", "grbda", source))
        if (FOLDER / path).is_file():
            found[name] = path
    return found


class Counterpart:
    """The robot of a file beside the one that a reference file describes, with which it shares its bodies."""

    def __init__(self, name: str) -> None:
        self.model = golden.load(name)["model"]
        self.robot = loaded(sources()[name]).with_gravity(self.model["gravity"][3:])
        carriers = {joint.child: joint.name for joint in self.robot.joints}
        self.joints = {body["joint"]["name"]: carriers[body["name"]] for body in self.model["bodies"]}

    def q(self, positions: dict[str, Any]) -> np.ndarray:
        """From the positions of the reference's joints."""
        return self.robot.pack_q({self.joints[joint]: position for joint, position in positions.items()})

    def entries(self, joints: list[str]) -> np.ndarray:
        """Where the reference's independent joints are in v."""
        own = (self.robot.v_slice(self.joints[joint]) for joint in joints)
        return np.concatenate([np.arange(self.robot.nv)[entries] for entries in own])

    def forces(self, f_ext: Any) -> np.ndarray:
        """What acts on the bodies; nothing on a root that is fixed to the ground."""
        given = {body["name"]: f for body, f in zip(self.model["bodies"], f_ext, strict=True)}
        return np.array([given.get(body, np.zeros(6)) for body in self.robot.bodies])


@pytest.mark.parametrize("name", [name for name in sources() if not name.endswith(".model.json")])
def test_dynamics_are_those_of_the_reference_states(name: str) -> None:
    """H, C, and forward and inverse dynamics without and with forces on bodies."""
    twin = Counterpart(name)
    robot, order = (
        twin.robot,
        twin.entries(
            [joint for cluster in twin.model["clusters"] for joint in golden.independent(twin.model, cluster)]
        ),
    )
    for state in golden.load(name)["states"]:
        spans = {joint: np.array(state["q_span"][span]) for joint, span in golden.spans(twin.model, "num_positions")}
        q, v, tau, a = (
            twin.q({joint: x[0] if len(x) == 1 else x for joint, x in spans.items()}),
            *np.zeros((3, robot.nv)),
        )
        v[order], tau[order], a[order] = state["yd"], state["tau"], state["ydd_in"]
        loads = twin.forces(state["fext"])
        assert gap(coupler.mass_matrix(robot, q)[np.ix_(order, order)], state["H"]) < EXACT
        assert gap(coupler.bias_force(robot, q, v)[order], state["C"]) < EXACT
        for function, given, words in (
            (coupler.forward_dynamics, tau, ("ydd_caba", "ydd_caba_fext")),
            (coupler.inverse_dynamics, a, ("tau_crnea", "tau_crnea_fext")),
        ):
            assert gap(function(robot, q, v, given)[order], state[words[0]]) < EXACT
            assert gap(function(robot, q, v, given, loads)[order], state[words[1]]) < EXACT


@pytest.mark.parametrize("name", [name for name in sources() if name.endswith(".model.json")])
def test_dynamics_are_those_of_the_reference_robot(name: str) -> None:
    """Which is built from its parts."""
    twin, reference = Counterpart(name), golden.robot(name)
    robot, order, batch = twin.robot, twin.entries(reference.independent_joints), batch_of(reference)
    q, v = twin.q(reference.joint_positions(batch.q)), np.zeros((len(batch), robot.nv))
    v[:, order] = batch.v
    for found, expected in zip(
        (coupler.mass_matrix(robot, q)[:, order][:, :, order], coupler.bias_force(robot, q, v)[:, order]),
        (coupler.mass_matrix(reference, batch.q), coupler.bias_force(reference, batch.q, batch.v)),
        strict=True,
    ):
        assert all(gap(*states) < EXACT for states in zip(found, expected, strict=True))


# Pinocchio


CHAINS = "grbda_benchmark_chains"
ENDS = ("predecessor", "successor")
PEERS = [
    *(f"grbda/{name}" for name in ("four_bar", "planar_leg_linkage", "six_bar")),
    *(f"grbda/{name}" for name in ("mini_cheetah", "mit_humanoid", "jvrc1_humanoid", "revolute_rotor_chain")),
    f"{CHAINS}/parallel_chains/Explicit/depth10/loop_size8",
    f"{CHAINS}/parallel_chains/Implicit/depth10/loop_size9",
    f"{CHAINS}/variable_four_bar_urdf/four_bar_branch_4_5",
    f"{CHAINS}/variable_revolute_pair_urdf/revolute_rotor_pair_branch_2_2",
    f"{CHAINS}/variable_revolute_urdf/revolute_rotor_branch_2_2",
    "closed_loop_2bt/closed_loop_expanded",
    "gepetto_5bar_linkage_iso3d/robot",
    "gepetto_battobot_6d/robot",
    "reachy_mini/urdf/robot_no_collision",
    "rh5_manus/full_urdf/RH5v2",
    "rh5_manus/submechanisms_urdf/submechanisms_reduced",
    # trees, and one whose transmission Pinocchio does not read
    "grbda/double_pendulum",
    "grbda/tello_humanoid",
    "grbda/jvrc1_humanoid_approximate",
    "rh5_manus/submechanisms_urdf/left_wrist_mechanism",
    "rh5_manus/submechanisms_urdf/Head",
]


class OpenTree:
    """A file as Pinocchio reads it, and what must meet in it; velocities w in Pinocchio's order.

    Quaternions are x, y, z, w there, velocities linear first, and a joint that turns without end is a cosine and a
    sine. Joints that a file beside it makes balls or universal joints are exchanged.
    """

    def __init__(self, pin: Any, path: Path) -> None:
        self.pin, self.model, self.root = pin, pin.buildModelFromUrdf(str(path)), ET.parse(path).getroot()
        beside = (path.with_suffix(".yaml"), path.with_suffix(".yml"), path.with_name("submechanisms.yml"))
        self.beside = next((yaml.safe_load(found.read_text()) for found in beside if found.is_file()), {})
        if "joint_name" in self.beside:
            self.model = self._exchanged(dict(zip(self.beside["joint_name"], self.beside["joint_type"], strict=True)))
        self.data = self.model.createData()
        self.joints = {name: self.model.joints[i] for i, name in enumerate(self.model.names) if i}

    def _exchanged(self, kinds: dict[str, str]) -> Any:
        pin, read, model = self.pin, self.model, self.pin.Model()
        turns = {"X": pin.JointModelRX, "Y": pin.JointModelRY, "Z": pin.JointModelRZ}
        for i in range(1, read.njoints):
            name, joint = read.names[i], read.joints[i]
            if kinds.get(name) == "SPHERICAL":
                joint = pin.JointModelSpherical()
            elif name in kinds:
                joint = pin.JointModelComposite()
                for letter in kinds[name].removeprefix("UJOINT_"):
                    joint.addJoint(turns[letter]())
            model.addJoint(read.parents[i], joint, read.jointPlacements[i], name)
            model.appendBodyToJoint(i, read.inertias[i], pin.SE3.Identity())
        for frame in read.frames[1:]:
            model.addFrame(pin.Frame(frame.name, frame.parentJoint, frame.placement, frame.type))
        return model

    def positions(self, robot: Robot, q: np.ndarray) -> np.ndarray:
        known, p = robot.joint_positions(q), self.pin.neutral(self.model)
        for name, joint in self.joints.items():
            own = np.atleast_1d(known[name])
            if joint.nq > joint.nv:
                own = [np.cos(own[0]), np.sin(own[0])] if joint.nv == 1 else [*own[:-4], *own[-3:], own[-4]]
            p[joint.idx_q : joint.idx_q + joint.nq] = own
        return p

    def order(self, robot: Robot) -> np.ndarray:
        """Where w is in the spanning velocities of a robot."""
        found = [robot.tree.velocities(robot.tree.number[name]) for name in self.joints]
        return np.concatenate([own[[3, 4, 5, 0, 1, 2]] if len(own) == 6 else own for own in found])

    def equations(self, p: np.ndarray, w: np.ndarray) -> Equations:
        H = np.triu(self.pin.crba(self.model, self.data, p))  # one triangle is filled
        return Equations(H + np.triu(H, 1).T, self.pin.nonLinearEffects(self.model, self.data, p, w))

    # What must meet, by the file

    def couplings(self) -> Iterator[dict[str, float]]:
        """Joints by their factors in a sum that is zero."""
        for element in self.root.iterfind("coupling"):
            one, two = (self._support(element, end) for end in ENDS)
            yield dict.fromkeys(one - two, float(_said(element, "ratio", "value"))) | dict.fromkeys(two - one, -1.0)
        for own in self.root.iterfind("transmission/joint[depends_on]"):
            terms = {_said(term, ".", "joint"): float(_said(term, ".", "multiplier")) for term in own}
            yield {_said(own, ".", "name"): -1.0} | terms

    def _support(self, element: ET.Element, end: str) -> set[str]:
        """The joints from the ground to a link."""
        frame = self.model.frames[self.model.getFrameId(_said(element, end, "link"))]
        return {self.model.names[i] for i in self.model.supports[frame.parentJoint] if i}

    def loops(self) -> Iterator[tuple[str, Any, str, Any, np.ndarray]]:
        """Two frames, each as a link and a place on it, and the axes of the first along which they are held."""
        own = self.pin.SE3.Identity()
        for element in self.root.iterfind("loop"):
            first, second = (_said(element, end, "link") for end in ENDS)
            at, meets = (self._origin(element, end) for end in ENDS)
            yield first, at, second, meets, _hinge(_said(element, "axis", "xyz"))
        for element in self.root.iterfind("gazebo/joint"):
            child, parent = (element.findtext(end, "") for end in ("child", "parent"))
            yield child, own, parent, self._at_zero(child, parent), _hinge(element.findtext("axis/xyz", ""))
        for (first, second), kind in zip(self.beside.get("closed_loop", ()), self.beside.get("type", ()), strict=True):
            yield first, own, second, own, np.eye(6)[{"3d": 3, "6d": 0}[kind] :]
        for name in (frame.name for frame in self.model.frames):
            if re.fullmatch("closing_.*_1", name):
                yield name, own, f"{name[:-2]}_2", own, np.eye(6)[3:]
        for loop in (
            loop for part in self.beside.get("submechanisms", ()) for loop in part.get("loop_constraints", ())
        ):
            first, second = loop["predecessor_body"], loop["successor_body"]
            at, meets = (self._at_zero(loop["cut_joint"], body) for body in (first, second))
            yield first, at, second, meets, np.array([row["axis"] for row in loop["constraint_axes"]])

    def _origin(self, element: ET.Element, end: str) -> Any:
        xyz, rpy = (_said(element, f"{end}/origin", word, "0 0 0") for word in ("xyz", "rpy"))
        return self.pin.SE3(self.pin.rpy.rpyToMatrix(_numbers(rpy)), _numbers(xyz))

    def _at_zero(self, frame: str, link: str) -> Any:
        """Where a frame is on a link when all joints are at zero."""
        self.pin.framesForwardKinematics(self.model, self.data, self.pin.neutral(self.model))
        there, here = (self.data.oMf[self.model.getFrameId(name)] for name in (frame, link))
        return here.inverse() * there

    def rows(self, robot: Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How far loops and couplings are from closed, and the Jacobian of that for w."""
        pin, known, gaps, rows = self.pin, robot.joint_positions(q), [0.0], [np.zeros(self.model.nv)]
        for row in self.couplings():
            gaps.append(sum(factor * float(known[joint]) for joint, factor in row.items()))
            rows.append(np.zeros(self.model.nv))
            rows[-1][[self.joints[joint].idx_v for joint in row]] = list(row.values())
        loops = list(self.loops())
        pin.computeJointJacobians(self.model, self.data, self.positions(robot, q))
        for first, at, second, meets, axes in loops:
            (one, J1), (two, J2) = self._moving(first, at), self._moving(second, meets)
            R, way = one.rotation.T, two.translation - one.translation
            J = np.vstack([R @ (J2 - J1)[3:], R @ ((J2 - J1)[:3] + pin.skew(way) @ J1[3:])])  # the first frame turns
            gaps += (axes @ [*pin.log3(R @ two.rotation), *R @ way]).tolist()
            rows += list(axes @ J)
        return np.array(gaps), np.array(rows)

    def _moving(self, link: str, at: Any) -> tuple[Any, np.ndarray]:
        """The pose of a frame in the world, and its Jacobian there, linear first."""
        frame, world = self.model.frames[self.model.getFrameId(link)], self.pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        place, joint = frame.placement * at, frame.parentJoint
        J = self.pin.getFrameJacobian(self.model, self.data, joint, place, world)
        return self.data.oMi[joint] * place, J


def _said(element: ET.Element, path: str, attribute: str, default: str = "") -> str:
    found = element.find(path)
    return default if found is None else found.get(attribute, default)


def _numbers(text: str) -> np.ndarray:
    return np.array(text.split(), float)


def _hinge(axis: str) -> np.ndarray:
    """Held along all axes but for turns about one."""
    across = np.linalg.svd(_numbers(axis)[None])[2][1:]
    return np.vstack([np.hstack([across, np.zeros((2, 3))]), np.eye(6)[3:]])


@pytest.fixture(scope="module", params=PEERS)
def pair(request: pytest.FixtureRequest) -> tuple[Robot, OpenTree]:
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is not installed (pip install pin)")
    name = f"{request.param}.urdf"
    tree = OpenTree(pin, FOLDER / name)
    tree.model.gravity.linear = np.array(GRAVITY)
    return loaded(name).with_gravity(GRAVITY), tree


def test_dynamics_are_the_projection_of_pinocchios_open_tree(pair: tuple[Robot, OpenTree]) -> None:
    """H, c and accelerations in 3 random closed states."""
    robot, tree = pair
    batch, order = batch_of(robot), tree.order(robot)
    H, c = coupler.mass_matrix(robot, batch.q), coupler.bias_force(robot, batch.q, batch.v)
    a = coupler.forward_dynamics(robot, batch.q, batch.v, batch.tau)
    for i, (q, v) in enumerate(zip(batch.q, batch.v, strict=True)):
        G, g = (part[order] for part in robot.explicit_constraint(q, v))
        expected = tree.equations(tree.positions(robot, q), G @ v).projected(G, g)
        assert gap(H[i], expected.H) < EXACT
        assert gap(c[i], expected.c) < EXACT
        # Where H is nearly singular, by links that weigh next to nothing, accelerations are as uncertain as H is times
        # its condition; that they satisfy the equations is certain everywhere.
        left, size = expected.H @ a[i] + expected.c - batch.tau[i], np.abs(expected.H) @ np.abs(a[i])
        assert np.abs(left).max() < EXACT * (size + np.abs(expected.c) + np.abs(batch.tau[i])).max()
        rounding = 10.0 * np.finfo(float).eps * np.linalg.cond(expected.H)
        assert gap(a[i], expected.accelerations(batch.tau[i])) < max(EXACT, rounding)


def test_closed_states_keep_what_the_file_holds_together_and_leave_no_freedom_out(pair: tuple[Robot, OpenTree]) -> None:
    robot, tree = pair
    batch, order = batch_of(robot), tree.order(robot)
    for q, v in zip(batch.q, batch.v, strict=True):
        error, K = tree.rows(robot, q)
        G, _ = robot.explicit_constraint(q, v)
        assert np.abs(error).max() < 1e-12  # m or rad
        assert np.abs(K @ G[order]).max() < 1e-12 * max(1.0, np.abs(G).max())
        assert tree.model.nv - np.linalg.matrix_rank(K, tol=1e-7) == robot.nv
