"""Where the nodes of a drawn tree stand: tidy, with room for their texts."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

FONT, SMALL, LINE = 12.0, 10.0, 15.0  # size of names, size of labels, height of a line, px
_LETTERS = 18  # at most this many letters of a name are shown
_GAP, _LEVEL_GAP = 22.0, 52.0  # between neighbours, between levels, px


def children_of(parents: Sequence[int]) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in parents]
    for node in range(1, len(parents)):
        children[parents[node]].append(node)
    return children


def _levels(children: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """The nodes, level by level."""
    level = [0]
    while level:
        yield level
        level = [child for node in level for child in children[node]]


def arranged(parents: Sequence[int], links: Iterable[tuple[int, int]], cluster_of: dict[int, int]) -> list[list[int]]:
    """Children from left to right: those of a cluster together, each on the side to which its links lead."""
    forks: dict[int, list[tuple[list[int], list[int]]]] = defaultdict(list)
    for a, b in links:
        one, other = _path_to(parents, a), _path_to(parents, b)
        shared = sum(i == j for i, j in zip(one, other, strict=False))
        forks[one[shared - 1]].append((one[shared:], other[shared:]))
    children, pull = children_of(parents), Counter[int]()  # pull: links that lead to the right, less those to the left
    for node in (node for level in _levels(children) for node in level):
        common = Counter[int]()
        for child in children[node]:
            common[cluster_of[child]] += pull[child]
        keys = {child: (common[cluster_of[child]], cluster_of[child], pull[child], child) for child in children[node]}
        children[node].sort(key=keys.__getitem__)
        for one, other in forks[node]:
            if one and other:
                side = 1 if keys[one[0]] < keys[other[0]] else -1
                pull.update(dict.fromkeys(one[1:], side) | dict.fromkeys(other[1:], -side))
    return children


def _path_to(parents: Sequence[int], body: int) -> list[int]:
    """The bodies from the ground to a body."""
    path = [body]
    while path[-1]:
        path.append(parents[path[-1]])
    return path[::-1]


@dataclass(frozen=True)
class TreeLayout:
    """Where the nodes of a tree stand, px; y grows downwards.

    Attributes:
        children: the children of each node; node 0 is the root.
        texts: the lines in each node.
        labels: the texts beside the edge to each node.
        x: the middle of each node.
        boxes, label_boxes: left, upper, right and lower side of each.
        floors: for each node, the lowest y of the nodes on its level.
    """

    children: Sequence[Sequence[int]]
    texts: Sequence[Sequence[str]]
    labels: Sequence[str]
    x: np.ndarray
    boxes: np.ndarray
    label_boxes: np.ndarray
    floors: np.ndarray

    @property
    def extent(self) -> np.ndarray:
        return extent_of(self.boxes, self.label_boxes)

    def swing(self, parent: int, child: int) -> np.ndarray:
        """Control points, 4 × 2, of an edge from level to level; all have the same form, so that none cross."""
        (x0, x1), floor, top = self.x[[parent, child]], self.floors[parent], self.boxes[child, 1]
        return np.array([[x0, floor], [x0, floor + 20], [x1, top - 36], [x1, top - 16]])


def lay_out(
    children: Sequence[Sequence[int]], texts: Sequence[Sequence[str]], labels: Sequence[str], large: bool
) -> TreeLayout:
    """Lays out a tree; if it is `large`, without texts and labels."""
    texts = [[] if large else [shortened(line) for line in text] for text in texts]
    labels = ["" if large else shortened(label) for label in labels]
    half = np.array([max([text_width(line, FONT) for line in text], default=2) / 2 + 8 for text in texts])
    height = np.array([LINE * len(text) + 10 for text in texts])
    beside = np.array([5 + text_width(label, SMALL) if label else 0 for label in labels])
    reach, mirrored = np.maximum(half, beside), [siblings[::-1] for siblings in children]
    x = (_tidy(children, half, reach) - _tidy(mirrored, reach, half)) / 2  # so that neither side is favoured
    top, floors = np.zeros(len(x)), np.zeros(len(x))
    y = 0.0
    for level in _levels(children):
        top[level], floors[level] = y, y + height[level].max()
        y = floors[level[0]] + _LEVEL_GAP
    boxes = np.stack([x - half, top, x + half, top + height], axis=1)
    label_boxes = np.stack([x, top - 16 * (beside > 0), x + beside, top - 3 * (beside > 0)], axis=1)
    return TreeLayout(children, texts, labels, x, boxes, label_boxes, floors)


def _tidy(children: Sequence[Sequence[int]], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Horizontal positions after Reingold and Tilford: subtrees close up, parents are centred over their children.

    Args:
        children: the children of each node, from left to right.
        left, right: how far each node reaches to either side of its middle.
    """
    order = [node for level in _levels(children) for node in level]
    x = np.zeros(len(children))  # at first relative to the parent
    outlines: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # left and right side of each subtree, level by level
    for node in reversed(order):
        low = high = np.empty(0)
        for child in children[node]:
            child_low, child_high = outlines.pop(child)
            shared = min(len(high), len(child_low))
            x[child] = (high[:shared] - child_low[:shared]).max() + _GAP if shared else 0.0
            low = np.append(low, x[child] + child_low[len(low) :])
            high = np.append(x[child] + child_high, high[len(child_high) :])
        middle = x[children[node]][[0, -1]].mean() if children[node] else 0.0
        x[children[node]] -= middle
        outlines[node] = np.append(-left[node], low - middle), np.append(right[node], high - middle)
    for node in order:
        x[children[node]] += x[node]
    return x


def shortened(text: str) -> str:
    """The text; the middle of a long one is replaced by an ellipsis."""
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS // 2]}…{text[1 - _LETTERS // 2 :]}"


def text_width(text: str, size: float) -> float:
    """The approximate width of a text, px."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    broad = sum(c in "mw@%" or c.isupper() for c in text)
    return size * (0.6 * len(text) + 0.45 * wide + 0.2 * broad)


def extent_of(*boxes: np.ndarray) -> np.ndarray:
    """The box around all boxes: left, upper, right and lower side."""
    sides = np.concatenate(boxes)
    return np.append(sides[:, :2].min(0), sides[:, 2:].max(0))
