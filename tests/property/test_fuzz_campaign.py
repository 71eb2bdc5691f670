"""A million damaged files, for every reader of files: what it gives is a result or our error, and it ends.

The files are those of other people's robots, where they are, and of the bundled ones. `make test` takes one mutation in
a thousand. A mutation is made from a number, which a failure tells, so that it can be made again.
"""

from __future__ import annotations

import io
import json
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from coupler import robots
from coupler.children.answers import HEAD, decode, encode
from coupler.contact.collision.mesh_files import mesh_vertices
from coupler.io.load import Options, _read, load
from coupler.io.yaml import parse_yaml
from coupler.model import ModelError, ModelWarning
from coupler.simulate import Log
from coupler.simulate.archive import load_arrays
from coupler.simulate.logs.columns import Heading
from coupler.simulate.logs.records import CRC, FRAME, NAME, VERSION, end_record, head_record, rows_record
from coupler.simulate.logs.records import HEAD as HEAD_OF_LOG
from effort import LONG, samples
from mesh_samples import BLOCK, TRIANGLES, ascii_stl, binary_stl, obj
from models_folder import ABSENT, FOLDER
from mutations import CHANGES, SNIPPETS, TEXT_CHANGES, TOKENS, VALUES, Change, Recipe, damaged, mutated
from sdf_samples import ARMS, BIPED, FOUR_BAR
from transmission_samples import driven_arm

HANG = 60  # s: longer than any file may take on a machine that is busy with other things
LARGEST = 60_000  # bytes of a file that is damaged; the larger it is, the slower, and the less often it is taken

# How many mutations of the long run each reader has: a million in all.
SHARES = {
    "urdf to a description": 300_000,
    "urdf to a robot": 40_000,
    "sdf to a description": 70_000,
    "sdf to a robot": 10_000,
    "closures": 120_000,
    "srdf": 20_000,
    "tables": 60_000,
    "mjcf": 20_000,
    "meshes": 120_000,
    "saved states": 80_000,
    "logs": 60_000,
    "answers": 100_000,
}


def test_there_are_a_million() -> None:
    assert sum(SHARES.values()) == 1_000_000


@contextmanager
def no_hang() -> Iterator[None]:
    """Ends what hangs, if the system can."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"it took more than {HANG} s")

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, HANG)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@cache
def texts(suffix: str) -> list[bytes]:
    """Files of robots: those of others, and the bundled ones as they are saved."""
    found = [] if ABSENT else [path.read_bytes() for path in sorted(FOLDER.rglob(f"*{suffix}"))]
    return [data for data in found if len(data) <= LARGEST]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[bytes]]:
    folder, found = tmp_path_factory.mktemp("saved"), {suffix: list[bytes]() for suffix in (".urdf", ".xml", ".sdf")}
    bundled = [robots.load(name) for name in ("four_bar", "slider_crank", "mit_humanoid_leg", "tello")]
    for robot in (*bundled, driven_arm()):
        for suffix, files in found.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ModelWarning)
                try:
                    files.append(robot.save(folder / f"{robot.name}{suffix}").read_bytes())
                except ModelError:  # MJCF cannot hold all of them
                    continue
    return found


def recipe(rng: np.random.Generator) -> Recipe:
    return [(int(a), (int(b), int(c), int(d))) for a, b, c, d in rng.integers(0, 10_000, (rng.integers(1, 5), 4))]


def of_xml(rng: np.random.Generator, files: Sequence[bytes], changes: Sequence[Change] = CHANGES) -> bytes:
    likely = 1.0 / np.array([len(data) for data in files])
    data = files[int(rng.choice(len(files), p=likely / likely.sum()))]
    if rng.random() < 0.6:
        return mutated(data.decode("utf-8"), recipe(rng), changes)
    return damaged(data, recipe(rng), [*SNIPPETS, *VALUES])


def campaign(name: str, folder: Path, make: Callable[[np.random.Generator], bytes], suffix: str, read: Any) -> None:
    """Reads as many damaged files as it should. In the long run, some of them are still whole, and some are not."""
    path, outcomes = folder / f"robot{suffix}", {True: 0, False: 0}
    for number in range(samples(SHARES[name] // 1000, SHARES[name])):
        data = make(np.random.default_rng([number, len(name)]))
        path.write_bytes(data)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ModelWarning)
            try:
                with no_hang():
                    read(path)
                outcomes[True] += 1
            except ModelError as error:
                outcomes[False] += 1
                length = len(str(error))
            except BaseException as error:
                raise AssertionError(f"{name} {number}: {type(error).__name__}: {error}") from error
            else:
                length = 0
        assert length < 20_000, f"{name} {number}: its message is too long"
    assert not LONG or min(outcomes.values()) > 0, outcomes


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("urdf to a description", lambda path: _read(path, Options())),
        ("urdf to a robot", load),
    ],
)
def test_urdf(name: str, read: Any, tmp_path: Path, saved: dict[str, list[bytes]]) -> None:
    files = [*texts(".urdf"), *saved[".urdf"]]
    campaign(name, tmp_path, lambda rng: of_xml(rng, files), ".urdf", read)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("name", "read"), [("sdf to a description", lambda path: _read(path, Options())), ("sdf to a robot", load)]
)
def test_sdf(name: str, read: Any, tmp_path: Path, saved: dict[str, list[bytes]]) -> None:
    files = [*saved[".sdf"], *(text.encode() for text in (*ARMS.values(), FOUR_BAR, BIPED))]
    campaign(name, tmp_path, lambda rng: of_xml(rng, files, TEXT_CHANGES), ".sdf", read)


@pytest.mark.sampled
def test_mjcf(tmp_path: Path, saved: dict[str, list[bytes]]) -> None:
    pytest.importorskip("mujoco", "4.0", reason="MuJoCo 4 is not installed (pip install 'mujoco>=4')")
    files = [data for data in (*texts(".xml"), *saved[".xml"]) if b"<mujoco" in data]
    campaign("mjcf", tmp_path, lambda rng: of_xml(rng, files), ".xml", load)


PAIRS = b"closed_loop: [[a_1, a_2]]\ntype: ['3d']\nname_mot: [shoulder]\njoint_name: [tip]\njoint_type: [UJOINT_XY]\n"


@pytest.mark.sampled
def test_closures(tmp_path: Path) -> None:
    files = [PAIRS, *(data for suffix in (".yml", ".yaml") for data in texts(suffix) if len(data) < 5_000)]

    def make(rng: np.random.Generator) -> bytes:
        return damaged(files[int(rng.integers(len(files)))], recipe(rng), TOKENS)

    campaign("closures", tmp_path, make, ".yaml", parse_yaml)


@pytest.mark.sampled
def test_exclusions(tmp_path: Path) -> None:
    links = "".join(f'<link name="{name}"/>' for name in "abc")
    joints = "".join(
        f'<joint name="{name}" type="fixed"><parent link="a"/><child link="{name}"/></joint>' for name in "bc"
    )
    (tmp_path / "robot.urdf").write_text(f"<robot>{links}{joints}</robot>")
    pairs = '<disable_collisions link1="a" link2="b" reason="Adjacent"/><disable_collisions link1="b" link2="c"/>'
    files = [f'<robot name="robot"><group name="all"><link name="a"/></group>{pairs}</robot>'.encode()]
    campaign("srdf", tmp_path, lambda rng: of_xml(rng, files), ".srdf", lambda path: load(path.with_suffix(".urdf")))


TABLES = {
    "robot": "lid",
    "bodies": [
        ["body", "mass", "x (mm)", "Ixx", "Iyy", "Izz"],
        ["lid", 4, 300, 0.02, 0.12, 0.14],
        ["rod", 1, 50, 1, 1, 1],
    ],
    "points": [["body", "point", "x", "y", "z"], ["lid", "pin", 0.4, 0, 0], ["ground", "eye", 0.1, 0, -0.2]],
    "joints": [
        ["body", "type", "axis", "parent", "lower (deg)"],
        ["lid", "R", "y", "ground", -90],
        ["rod", "S", "", "lid", ""],
    ],
    "struts": [["strut", "from", "to", "axis"], ["piston", "ground.eye", "lid.pin", "y"]],
}


@pytest.mark.sampled
def test_tables(tmp_path: Path) -> None:
    pieces = [*TOKENS, *VALUES, ",", ";", '"bodies"', '"joints"', "ground", "mm", "deg", "R", "P", "free"]
    csv = "\n".join(",".join(map(str, row)) for row in TABLES["bodies"])
    files = [json.dumps(TABLES).encode(), json.dumps(TABLES, indent=1).encode(), csv.encode()]

    def make(rng: np.random.Generator) -> bytes:
        return damaged(files[int(rng.integers(len(files)))], recipe(rng), pieces)

    def read(path: Path) -> None:
        data = path.read_bytes()
        suffix = ".csv" if data[:4] == b"body" else (".json", ".yaml")[len(data) % 2]
        load(path.rename(path.with_name(f"bodies{suffix}")))

    campaign("tables", tmp_path, make, ".table", read)


@pytest.mark.sampled
def test_meshes(tmp_path: Path) -> None:
    path = tmp_path / "mesh"
    files = [ascii_stl(path, TRIANGLES).read_bytes(), binary_stl(path, TRIANGLES).read_bytes()]
    files.append(obj(path, BLOCK).read_bytes())

    def make(rng: np.random.Generator) -> bytes:
        return damaged(files[int(rng.integers(3))], recipe(rng), [*VALUES, *SNIPPETS])

    def read(path: Path) -> None:
        mesh_vertices(path.rename(path.with_suffix(".stl" if b"# corners" not in path.read_bytes() else ".obj")))

    campaign("meshes", tmp_path, make, ".mesh", read)


@pytest.mark.sampled
def test_logs(tmp_path: Path) -> None:
    """Damaged anywhere, which checksums tell; or in the heading, under a checksum that fits."""
    columns = {"times": np.arange(4.0), "q": np.zeros((4, 2)), "gaps": np.ones((4, 1))}
    heading = Heading(
        "arm", 1e-3, ("a on b",), ("j", "k"), {name: (a.dtype, a.shape[1:]) for name, a in columns.items()}
    )
    head, rows = head_record(heading), rows_record(columns) + rows_record(columns) + end_record("")
    frame = len(NAME + VERSION)
    text = head[frame + FRAME.size : -CRC.size]

    def make(rng: np.random.Generator) -> bytes:
        tokens = ["[]", "{}", '"<f8"', '"|O"', "-1", "1e9", "99999999999", "null", "NaN", "\0", "[[[["]
        if rng.random() < 0.3:
            return damaged(head + rows, recipe(rng), tokens)
        told = damaged(text, recipe(rng), tokens)
        start = FRAME.pack(HEAD_OF_LOG, 0, len(told) + CRC.size, 0)[: -CRC.size]
        return head[:frame] + start + CRC.pack(crc32(start)) + told + CRC.pack(crc32(told)) + rows

    def read(path: Path) -> None:
        log = Log.load(path)
        for name in log.columns:
            getattr(log, name)

    campaign("logs", tmp_path, make, ".clog", read)


@pytest.mark.sampled
def test_saved_states(tmp_path: Path) -> None:
    file = io.BytesIO()
    np.savez(file, q=np.zeros((4, 3)), names=np.array(["a", "b"]), steps=np.arange(4))
    whole = file.getvalue()

    def make(rng: np.random.Generator) -> bytes:
        return damaged(whole, recipe(rng), ["\0", "PK", "'descr': '|O'", "'shape': (9999999999,)", "\u00ff"])

    campaign("saved states", tmp_path, make, ".npz", lambda path: load_arrays(path, ["q", "names", "steps"]))


@pytest.mark.sampled
def test_answers_of_children(tmp_path: Path) -> None:
    whole = encode({"names": ["a", "b"], "sizes": {"n": 2}}, {"a": np.zeros((2, 3)), "b": np.arange(4)})[HEAD:]

    def read(path: Path) -> None:
        try:
            decode(path.read_bytes())
        except ValueError as error:
            raise ModelError(str(error)) from None

    tokens = ["[]", "{}", '"<f8"', '"|O"', "-1", "1e9", "99999999999", "null", "\0", "[[[["]
    campaign("answers", tmp_path, lambda rng: damaged(whole, recipe(rng), tokens), ".bin", read)
