"""Pictures of robots: everything is in them, nothing overlaps, and any name will do."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
import pytest

import coupler
from coupler import ModelError
from coupler.model.clusters import find_clusters, joints_of_loop
from coupler.view.robot_graph import draw
from work import at_most

SVG = "{http://www.w3.org/2000/svg}"


@dataclass
class Input:
    """What a picture is drawn from."""

    title: str = "robot"
    bodies: list[str] = field(default_factory=lambda: ["ground"])
    joints: list[tuple[int, int, str]] = field(default_factory=list)
    loops: list[tuple[int, int, str]] = field(default_factory=list)
    couplings: list[tuple[list[int], str]] = field(default_factory=list)
    clusters: list[tuple[int, ...]] = field(default_factory=lambda: [(0,)])
    cluster_parents: list[int] = field(default_factory=lambda: [0])
    freedoms: list[str] = field(default_factory=lambda: [""])

    def draw(self) -> str:
        return draw(**asdict(self))


def robot(
    parents: list[int], loops: list[tuple[int, int]] | None = None, couplings: list[list[int]] | None = None
) -> Input:
    loops, couplings = loops or [], couplings or []
    constraints = [joints_of_loop(parents, a, b) for a, b in loops] + [frozenset(coupled) for coupled in couplings]
    clusters = find_clusters(parents, constraints).clusters
    return Input(
        bodies=["ground", *(f"body {i}" for i in range(1, len(parents)))],
        joints=[(parents[i], i, f"joint {i}") for i in range(1, len(parents))],
        loops=[(a, b, f"loop {i}") for i, (a, b) in enumerate(loops)],
        couplings=[(coupled, f"gear {i}") for i, coupled in enumerate(couplings)],
        clusters=[cluster.bodies for cluster in clusters],
        cluster_parents=[cluster.parent for cluster in clusters],
        freedoms=["", *(f"{k} of 9" for k in range(1, len(clusters)))],
    )


def four_bar() -> Input:
    """Crank 1, coupler 2, rocker 3, tool 4, motor 5."""
    return robot([0, 0, 1, 0, 2, 0], [(2, 3)], [[1, 5]])


def random_robot(seed: int) -> Input:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 60))
    parents = [0, *(int(rng.integers(max(0, i - 8), i)) for i in range(1, count))]
    pairs = [[int(i) for i in rng.choice(range(1, count), 2)] for _ in range(count // 6)]
    made = robot(parents, [(a, b) for a, b in pairs[::2] if a != b], [[a, b] for a, b in pairs[1::2] if a != b])
    made.bodies = [name + "x" * int(rng.integers(0, 30)) for name in made.bodies]
    return made


def panel(picture: str, name: str) -> Element:
    found = ElementTree.fromstring(picture).find(f".//{SVG}g[@class='{name}']")
    assert found is not None
    return found


def nodes(picture: str, name: str) -> list[Element]:
    return panel(picture, name).findall(f".//{SVG}g[@class='node']")


def rect(node: Element) -> Element:
    found = node.find(f"{SVG}rect")
    assert found is not None
    return found


def box(element: Element) -> tuple[float, float, float, float]:
    x, y, width, height = (float(element.attrib[key]) for key in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


def fills(picture: str, name: str) -> list[str]:
    return [rect(node).attrib["fill"] for node in nodes(picture, name)]


def texts(element: Element, tag: str = "text") -> list[str]:
    return [found.text or "" for found in element.iter(f"{SVG}{tag}")]


def check_apart(picture: str) -> None:
    for name in ("bodies", "clusters"):
        boxes = np.array([box(rect(node)) for node in nodes(picture, name)])
        meets = (boxes[:, None, :2] < boxes[:, 2:]) & (boxes[:, None, 2:] > boxes[:, :2])
        assert meets.all(axis=2).sum() == len(boxes)  # each meets itself alone


@pytest.mark.parametrize("made", [four_bar(), *map(random_robot, range(5))], ids=lambda made: f"{len(made.bodies)}")
def test_everything_is_in_the_picture(made: Input) -> None:
    picture = made.draw()
    bodies, clusters = panel(picture, "bodies"), panel(picture, "clusters")
    assert len(nodes(picture, "bodies")) == len(made.bodies)
    assert len(nodes(picture, "clusters")) == len(made.clusters)
    for name in made.bodies:
        assert any(name in tip for tip in texts(bodies, "title"))
        assert any(name in tip for tip in texts(clusters, "title"))
    labels = [label for *_, label in (*made.joints, *made.loops, *made.couplings)]
    assert set(labels) <= set(texts(bodies))
    assert set(made.freedoms) - {""} <= set(texts(clusters))
    assert {f"C{k}" for k in range(1, len(made.clusters))} <= set(texts(clusters))
    assert len(bodies.findall(f".//{SVG}path[@class='loop']")) == len(made.loops)
    assert len(bodies.findall(f".//{SVG}path[@class='coupling']")) == len(made.couplings)
    assert len(bodies.findall(f".//{SVG}g[@class='hull']")) == sum(len(cluster) > 1 for cluster in made.clusters)
    assert {"tree joint", "loop joint", "coupling", made.title} <= set(texts(ElementTree.fromstring(picture)))


@pytest.mark.parametrize("seed", range(25))
def test_no_nodes_overlap_and_all_lie_on_the_page(seed: int) -> None:
    picture = random_robot(seed).draw()
    check_apart(picture)
    page = ElementTree.fromstring(picture)
    _, _, width, height = map(float, page.attrib["viewBox"].split())
    for name in ("bodies", "clusters"):
        place = panel(picture, name).attrib["transform"].removeprefix("translate(").removesuffix(")")
        x, y = map(float, place.split())
        for node in nodes(picture, name):
            left, upper, right, lower = box(rect(node))
            assert left + x >= 0 and right + x <= width
            assert upper + y >= 0 and lower + y <= height


@pytest.mark.parametrize("seed", range(25))
def test_colours_tell_clusters_apart(seed: int) -> None:
    made = random_robot(seed)
    picture = made.draw()
    bodies, clusters = fills(picture, "bodies"), fills(picture, "clusters")
    for k, cluster in enumerate(made.clusters):
        assert {bodies[i] for i in cluster} == {clusters[k]}
        assert k == 0 or clusters[k] != clusters[made.cluster_parents[k]]


def test_parents_are_centred_over_their_children() -> None:
    parents = [0, 0, 0, 1, 1, 1, 2, 6]
    middle = [sum(box(rect(node))[::2]) / 2 for node in nodes(robot(parents).draw(), "bodies")]
    for body in range(len(parents)):
        children = [middle[i] for i in range(1, len(parents)) if parents[i] == body]
        if children:
            assert middle[body] == pytest.approx((min(children) + max(children)) / 2, abs=0.01)


def test_siblings_of_a_cluster_stand_side_by_side() -> None:
    picture = robot([0] * 6, couplings=[[1, 4], [2, 5]]).draw()
    middle = [box(rect(node))[0] for node in nodes(picture, "bodies")]
    order = sorted(range(1, 6), key=lambda body: middle[body])
    assert abs(order.index(1) - order.index(4)) == 1
    assert abs(order.index(2) - order.index(5)) == 1


def test_a_body_stands_on_the_side_to_which_its_loop_leads() -> None:
    picture = robot([0, 0, 0, 1, 1, 1], [(3, 2)]).draw()
    middle = [box(rect(node))[0] for node in nodes(picture, "bodies")]
    assert middle[1] < middle[2]
    assert middle[3] > max(middle[4], middle[5])


def test_parallel_loops_do_not_coincide() -> None:
    picture = robot([0, 0, 0], [(1, 2), (2, 1), (1, 2), (2, 1), (0, 2), (2, 0)]).draw()
    paths = [path.attrib["d"] for path in panel(picture, "bodies").findall(f".//{SVG}path[@class='loop']")]
    assert len(set(paths)) == 6


@pytest.mark.parametrize("coupled", [[2], [1, 2], [1, 2, 3, 4]])
def test_a_coupling_has_one_label(coupled: list[int]) -> None:
    picture = robot([0, 0, 0, 1, 2], couplings=[coupled]).draw()
    assert texts(panel(picture, "bodies")).count("gear 0") == 1
    curves = panel(picture, "bodies").findall(f".//{SVG}path[@class='coupling']")
    assert len(curves) == max(1, len(coupled) - 1)


def test_odd_names_are_escaped() -> None:
    made = robot([0, 0, 1, 0, 0], [(2, 3)], [[1, 4]])
    made.title = "<&>"
    made.bodies[1:] = ["a<b&c>", "\"quoted\" 'name'", "日本語 ß – 🤖", "bell\x07nul\x00\ud800\uffff"]
    made.joints = [(a, b, f"<{label}>") for a, b, label in made.joints]
    picture = made.draw()
    picture.encode()
    shown = texts(ElementTree.fromstring(picture))
    assert {"<&>", *made.bodies[1:4], "bell\ufffdnul\ufffd\ufffd\ufffd", "<joint 1>"} <= set(shown)


def test_long_names_are_shortened_and_given_in_full_as_tooltips() -> None:
    made = robot([0, 0])
    made.bodies[1] = name = "left_" + "very_" * 20 + "long_name"
    picture = made.draw()
    shown = texts(nodes(picture, "bodies")[1])
    assert len(shown) == 1 and len(shown[0]) < 20 and "…" in shown[0]
    assert shown[0].startswith("left_") and shown[0].endswith("_name")
    assert any(name in tip for tip in texts(nodes(picture, "bodies")[1], "title"))


def test_the_same_robot_gives_the_same_picture() -> None:
    assert random_robot(3).draw() == random_robot(3).draw()


@pytest.mark.parametrize("parents", [[0], [0, 0]], ids=["ground", "one body"])
def test_the_smallest_robots(parents: list[int]) -> None:
    picture = robot(parents).draw()
    check_apart(picture)
    assert len(nodes(picture, "bodies")) == len(nodes(picture, "clusters")) == len(parents)


@pytest.mark.parametrize("shape", ["chain", "star", "tangle"])
def test_large_robots_take_little_time(shape: str) -> None:
    count = 1000
    rng = np.random.default_rng(0)
    parents = [max(0, i - 1) if shape == "chain" else 0 for i in range(count + 1)]
    made = robot(parents)
    if shape == "tangle":
        made.loops = [(int(a), int(b), "") for a, b in rng.integers(0, count, (2000, 2))]
        made.clusters, made.cluster_parents, made.freedoms = [(0,), tuple(range(1, count + 1))], [0, 0], ["", ""]
    with at_most(5_000_000):
        picture = made.draw()
    check_apart(picture)
    assert len(nodes(picture, "bodies")) == count + 1
    tips = texts(panel(picture, "bodies"), "title")
    assert any("body 1000" in tip for tip in tips) and any("joint 1000" in tip for tip in tips)


@pytest.mark.parametrize("name", ["rh5_manus", "charmie", "tello"])
def test_labels_of_loops_cover_no_body(name: str, tmp_path: Path) -> None:
    picture = coupler.robots.load(name).draw(tmp_path / "robot.svg").read_text()
    boxes = np.array([box(rect(node)) for node in nodes(picture, "bodies")])
    labels = [text for text in panel(picture, "bodies").iter(f"{SVG}text") if "fill" in text.attrib]
    assert labels
    for label in labels:
        x, y, half = float(label.attrib["x"]), float(label.attrib["y"]), 2.0 * len(label.text or "")  # at least
        covered = (boxes[:, 0] < x + half) & (boxes[:, 2] > x - half) & (boxes[:, 1] < y) & (boxes[:, 3] > y - 6.0)
        assert not covered.any(), label.text


def test_robots_are_drawn_as_svg_and_nothing_else(tmp_path: Path) -> None:
    robot = coupler.robots.load("four_bar")
    with pytest.raises(ModelError, match=r"leg\.png: robots are drawn as SVG; name it 'leg\.svg'"):
        robot.draw(tmp_path / "leg.png")
    with pytest.raises(ModelError, match=r"there is no folder .*none; make it first"):
        robot.draw(tmp_path / "none" / "leg.svg")
    with pytest.raises(ModelError, match="it is a folder"):
        robot.draw(tmp_path)
    for wrong in (3, "", b"leg.svg"):
        with pytest.raises(ModelError, match="the file to write must be given by its path, got"):
            robot.draw(wrong)  # type: ignore[arg-type]
    assert robot.draw(tmp_path / "leg.SVG").read_text().startswith("<svg")
    assert list(tmp_path.iterdir()) == [tmp_path / "leg.SVG"]
