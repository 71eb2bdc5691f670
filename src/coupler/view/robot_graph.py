"""A robot as a picture: the connectivity graph of its bodies, and the tree that its clusters make [001, fig. 4].

Both are trees that grow downwards from the ground. Nodes stand where Reingold and Tilford would put them; loop joints
and couplings are curves, bowed so that they cover little else. The result is SVG, with a tooltip on everything. A robot
too large for legible names has only the tooltips.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

from coupler.model import Robot
from coupler.model.text import freedoms_text
from coupler.view.svg import add, add_labels
from coupler.view.tree_layout import (
    FONT,
    LINE,
    SMALL,
    TreeLayout,
    arranged,
    children_of,
    extent_of,
    lay_out,
    shortened,
    text_width,
)

_GROUND = "#dddddd"
# Paul Tol's light scheme: the colour-blind can tell them apart, and dark text is legible on them.
_COLOURS = ("#77aadd", "#ee8866", "#eedd88", "#44bb99", "#ffaabb", "#aaaa00", "#99ddff", "#bbcc33")
_INK = "#222222"
_STROKES = {
    "tree joint": {"stroke": "#555555", "stroke_width": "1.5"},
    "loop joint": {"stroke": "#aa3311", "stroke_width": "1.5", "stroke_dasharray": "6 4"},
    "coupling": {"stroke": "#223388", "stroke_width": "2.5", "stroke_dasharray": "0.1 5", "stroke_linecap": "round"},
}
_LARGE = 150  # bodies, or loops and couplings, above which names are shown in tooltips only
_NAMES = 7  # at most this many body names are shown in the box of a cluster
_MARGIN = 24.0  # around a panel, px
_BOW = 24.0  # how much further the middle of each curve between two nodes bulges than the one before, px


def robot_picture(robot: Robot) -> str:
    """The connectivity graph and the cluster tree as an SVG document. [001, Fig. 4, 8]"""
    number = {"ground": 0} | {name: i for i, name in enumerate(robot.bodies, 1)}
    child = {joint.name: number[joint.child] for joint in robot.joints}
    clusters = robot.cluster_tree.clusters
    groups: list[list[int]] = [[0] for _ in clusters]
    for k, cluster in enumerate(clusters):
        groups[k] = [number[body] for link in cluster.bodies for body in robot.tree.links[link].bodies]
    return draw(
        robot.name,
        list(number),
        [(number[joint.parent], number[joint.child], joint.name) for joint in robot.joints],
        [(number[loop.predecessor], number[loop.successor], loop.name) for loop in robot.loops],
        [([child[joint] for joint in coupling.joints], coupling.name) for coupling in robot.couplings],
        groups,
        [cluster.parent for cluster in clusters],
        ["", *(freedoms_text(robot, k) for k in range(1, len(clusters)))],
    )


def draw(
    title: str,
    bodies: Sequence[str],
    joints: Sequence[tuple[int, int, str]],
    loops: Sequence[tuple[int, int, str]],
    couplings: Sequence[tuple[Sequence[int], str]],
    clusters: Sequence[Sequence[int]],
    cluster_parents: Sequence[int],
    freedoms: Sequence[str],
) -> str:
    """The connectivity graph of a robot and its cluster tree, as an SVG document.

    Args:
        title: the heading of the picture.
        bodies: names of the bodies; body 0 is the ground.
        joints: parent body, child body and label of each tree joint.
        loops: the two bodies and the label of each loop joint.
        couplings: child bodies of the tree joints that each coupling relates, and its label.
        clusters: the bodies of each cluster; cluster 0 is the ground alone.
        cluster_parents: the parent of each cluster; the first entry is ignored.
        freedoms: the freedoms of each cluster in words, such as "1 of 3 freedoms".
    """
    parents, labels = [0] * len(bodies), [""] * len(bodies)
    for parent, child, label in joints:
        parents[child], labels[child] = parent, label
    cluster_of = {body: k for k, cluster in enumerate(clusters) for body in cluster}
    colours = _colours(cluster_parents)
    large = max(len(bodies), len(loops) + len(couplings)) > _LARGE

    links = [(a, b) for a, b, _ in loops] + [pair for coupled, _ in couplings for pair in _pairs(coupled)]
    children = arranged(parents, [] if large else links, cluster_of)
    graph = lay_out(children, [[name] for name in bodies], labels, large)
    body_panel = Element("g", {"class": "bodies"})
    for cluster, colour in zip(clusters, colours, strict=True):
        _draw_hull(body_panel, graph.boxes[list(cluster)], colour)
    tips = [_tip(label, bodies[above], name) for label, above, name in zip(labels, parents, bodies, strict=True)]
    _draw_edges(body_panel, graph, tips)
    curves = _Curves(body_panel, graph, large)
    for a, b, label in loops:
        curves.draw("loop joint", a, b, label, _tip(label, bodies[a], bodies[b]))
    for coupled, label in couplings:
        tip = _tip(label, *(bodies[i] for i in coupled))
        for i, (a, b) in enumerate(_pairs(sorted(coupled, key=lambda body: graph.x[body]))):
            curves.draw("coupling", a, b, "" if i else label, tip)
    tips = [f"{name} (C{cluster_of[i]})" if i else name for i, name in enumerate(bodies)]
    _draw_nodes(body_panel, graph, [colours[cluster_of[i]] for i in range(len(bodies))], tips)
    body_panel.append(curves.labels)

    children = children_of(cluster_parents)
    for siblings in children:
        siblings.sort(key=lambda k: graph.x[list(clusters[k])].mean())
    texts = [[f"C{k}", *(bodies[i] for i in cluster)] if k else [bodies[0]] for k, cluster in enumerate(clusters)]
    tips = [
        _tip(f"{text[0]} ({free})" if free else text[0], *text[1:]) for text, free in zip(texts, freedoms, strict=True)
    ]
    texts = [text if len(text) <= _NAMES else [*text[:_NAMES], f"and {len(text) - _NAMES} more"] for text in texts]
    tree = lay_out(children, texts, freedoms, large)
    cluster_panel = Element("g", {"class": "clusters"})
    _draw_edges(cluster_panel, tree, tips)
    _draw_nodes(cluster_panel, tree, colours, tips)
    return _page(title, {"Bodies": (body_panel, curves.extent), "Clusters": (cluster_panel, tree.extent)})


def _colours(parents: Sequence[int]) -> list[str]:
    """The colour of each cluster: the palette in turn, but never the colour of its parent."""
    colours, index = [_GROUND], -1
    for parent in parents[1:]:
        index = (index + 1) % len(_COLOURS)
        if _COLOURS[index] == colours[parent]:
            index = (index + 1) % len(_COLOURS)
        colours.append(_COLOURS[index])
    return colours


def _tip(label: str, *names: str) -> str:
    return ": ".join(filter(None, [label, ", ".join(names)]))


def _pairs(bodies: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Each body with the next; a single one with itself."""
    return pairwise(bodies) if len(bodies) > 1 else zip(bodies, bodies, strict=True)


def _draw_hull(parent: Element, boxes: np.ndarray, colour: str) -> None:
    """Draws a soft hull around the nodes of a cluster, with a band from each node to the nearest one before it."""
    if len(boxes) > 1:
        hull = add(parent, "g", class_="hull", opacity=0.35, fill=colour, stroke=colour, stroke_linejoin="round")
        for x0, y0, x1, y1 in boxes:
            add(hull, "rect", x=x0, y=y0, width=x1 - x0, height=y1 - y0, stroke_width=14)
        middles, path = (boxes[:, :2] + boxes[:, 2:]) / 2, ""
        for i, middle in enumerate(middles[1:], start=1):
            nearest = np.hypot(*(middles[:i] - middle).T).argmin()
            path += "M{:.1f} {:.1f}L{:.1f} {:.1f}".format(*middles[nearest], *middle)
        add(hull, "path", d=path, stroke_width=26, stroke_linecap="round")


def _draw_edges(parent: Element, tree: TreeLayout, tips: Sequence[str]) -> None:
    edges, labels = add(parent, "g", fill="none", **_STROKES["tree joint"]), add_labels(parent)
    for above, nodes in enumerate(tree.children):
        for node in nodes:
            swing, top = tree.swing(above, node), tree.boxes[node, 1]
            curve = "M{:.1f} {:.1f}V{:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}V{:.1f}"
            path = curve.format(tree.x[above], tree.boxes[above, 3], swing[0, 1], *swing[1:].ravel(), top)
            add(edges, "path", tip=tips[node], d=path)
            if tree.labels[node]:
                add(labels, "text", tree.labels[node], x=tree.x[node] + 4, y=top - 5)


def _draw_nodes(parent: Element, tree: TreeLayout, colours: Sequence[str], tips: Sequence[str]) -> None:
    for (x0, y0, x1, y1), text, colour, tip in zip(tree.boxes, tree.texts, colours, tips, strict=True):
        node = add(parent, "g", tip=tip, class_="node", text_anchor="middle")
        add(node, "rect", x=x0, y=y0, width=x1 - x0, height=y1 - y0, rx=6, fill=colour, stroke=_INK)
        for i, line in enumerate(text):
            weight = "bold" if i == 0 and len(text) > 1 else "normal"
            add(node, "text", line, x=(x0 + x1) / 2, y=y0 + 16.5 + i * LINE, font_weight=weight)


class _Curves:
    """Draws curves from node to node, each where it covers as little as possible of what is already drawn."""

    def __init__(self, parent: Element, graph: TreeLayout, large: bool) -> None:
        self._lines, self.labels = add(parent, "g", fill="none"), add_labels(Element("g"), text_anchor="middle")
        self._middles = (graph.boxes[:, :2] + graph.boxes[:, 2:]) / 2
        self._used: dict[tuple[int, int], set[int]] = defaultdict(set)  # bows in use between each pair of nodes
        self._taken, self._weights = np.concatenate([graph.boxes, graph.label_boxes]), np.full(2 * len(graph.x), 20.0)
        self._large = large
        self.extent = graph.extent
        for above, nodes in enumerate([] if large else graph.children):
            for node in nodes:
                self._take(_around(_on_curve(graph.swing(above, node)), 3), weight=2)

    def draw(self, kind: str, a: int, b: int, label: str, tip: str) -> None:
        a, b = sorted((a, b))
        spread = np.array([10.0 if a == b else 0.0, 0.0])  # a curve that returns to its node needs two ends
        start, end = self._middles[a] - spread, self._middles[b] + spread
        across = np.array([start[1] - end[1], end[0] - start[0]]) / np.hypot(*(end - start))
        used = self._used[a, b]
        free = [len(used)] if self._large else [i for i in range(len(used) + 12) if i not in used][:12]
        bows = [_BOW * (i // 2 + 1) * (-1) ** i for i in free]
        curves = [np.array([start, (start + end) / 2 + 2 * bow * across, end]) for bow in bows]
        points = [_on_curve(curve) for curve in curves]
        costs = np.abs(bows) / 4
        if not self._large:
            costs += self._crowd(_around(np.concatenate(points), 3), a, b).reshape(len(free), -1).sum(axis=1)
        best = int(costs.argmin())
        used.add(free[best])
        path = "M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}".format(*curves[best].ravel())
        add(self._lines, "path", tip=tip, d=path, class_=kind.split()[0], **_STROKES[kind])
        self._take(_around(points[best], 3), weight=4)
        if label and not self._large:
            self._write(shortened(label), points[best], np.sign(bows[best]) * across, _STROKES[kind]["stroke"])

    def _write(self, label: str, points: np.ndarray, outwards: np.ndarray, colour: str) -> None:
        """Writes a label beside a curve, where there is room and as near to its middle as possible."""
        half = np.array([text_width(label, SMALL) / 2, 6.0])
        aside, off_middle = outwards * (abs(outwards) @ half + 3), abs(np.linspace(-5, 5, len(points)))
        places = np.concatenate([points + aside, points - aside])
        boxes = _around(places, half)
        best = np.argmin(self._crowd(boxes) + np.concatenate([off_middle, off_middle + 1]))
        self._take(boxes[[best]], weight=20)
        add(self.labels, "text", label, x=places[best, 0], y=places[best, 1] + 3.5, fill=colour)

    def _take(self, boxes: np.ndarray, weight: float) -> None:
        self.extent = extent_of(self.extent[None], boxes)
        if not self._large:
            self._taken = np.append(self._taken, boxes, axis=0)
            self._weights = np.append(self._weights, np.full(len(boxes), weight))

    def _crowd(self, boxes: np.ndarray, *ends: int) -> np.ndarray:
        """For each box the weight of what it would cover, ignoring the nodes at the ends of the curve."""
        weights = self._weights.copy()
        weights[list(ends)] = 0.0
        reach = extent_of(boxes)
        near = ((self._taken[:, :2] < reach[2:]) & (self._taken[:, 2:] > reach[:2])).all(axis=1) & (weights > 0)
        x0, y0, x1, y1 = self._taken[near].T
        left, upper, right, lower = boxes.T[:, :, None]
        return ((left < x1) & (right > x0) & (upper < y1) & (lower > y0)) @ weights[near]


def _around(points: np.ndarray, half: np.ndarray | float) -> np.ndarray:
    return np.concatenate([points - half, points + half], axis=1)


def _on_curve(control: np.ndarray) -> np.ndarray:
    """Points on a Bézier curve, by de Casteljau's algorithm."""
    t, layer = np.linspace(0, 1, 21)[:, None], list(control)
    while len(layer) > 1:
        layer = [(1 - t) * a + t * b for a, b in pairwise(layer)]
    return layer[0]


def _page(title: str, panels: dict[str, tuple[Element, np.ndarray]]) -> str:
    """Panels side by side or one below the other, whichever fits a screen better, with a title and a legend."""
    sizes = np.array([extent[2:] - extent[:2] + 2 * _MARGIN for _, extent in panels.values()])
    beside = np.append(sizes[:, 0].sum(), sizes[:, 1].max())
    below = np.append(sizes[:, 0].max(), sizes[:, 1].sum() + _MARGIN)
    screen = np.array([1.6, 1.0])
    stacked = (below / screen).max() < (beside / screen).max()
    width, height = np.ceil(np.maximum(below if stacked else beside, [420, 0]) + np.array([0, 110]))
    page = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {width:.0f} {height:.0f}"})
    page.attrib |= {"width": f"{width:.0f}", "height": f"{height:.0f}"}
    add(page, "title", title)
    add(page, "rect", width="100%", height="100%", fill="white")
    content = add(page, "g", font_family="Helvetica, Arial, sans-serif", font_size=FONT, fill=_INK)
    add(content, "text", title, x=_MARGIN, y=30, font_size=16, font_weight="bold")
    corner = np.array([_MARGIN, 60.0])
    for (name, (panel, extent)), size in zip(panels.items(), sizes, strict=True):
        add(content, "text", name, x=corner[0], y=corner[1], fill="#666666")
        x, y = corner - extent[:2] + [0, _MARGIN]
        panel.set("transform", f"translate({x:.1f} {y:.1f})")
        content.append(panel)
        corner += [0, size[1] + _MARGIN] if stacked else [size[0], 0]
    legend = add(content, "g", class_="legend")
    for i, (name, stroke) in enumerate(_STROKES.items()):
        x, y = _MARGIN + 130 * i, height - 24
        add(legend, "path", d=f"M{x} {y}H{x + 32}", **stroke)
        add(legend, "text", name, x=x + 40, y=y + 4)
    ElementTree.indent(page, " ")
    return ElementTree.tostring(page, encoding="unicode") + "\n"
