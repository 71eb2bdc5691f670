"""How precisely a file gives lengths, angles and directions, judged by its digits and by its right angles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np

from coupler.io.limits import NUMBER_TEXT
from coupler.io.xml import Element

PRECISION = "coupler_precision"  # the name under which MJCF keeps it

_LENGTHS = ("xyz", "pos", "anchor", "fromto")  # attributes in m
_DIRECTIONS = (
    "rpy",
    "quat",
    "quat_xyzw",
    "euler",
    "axisangle",
    "xyaxes",
    "zaxis",
    "axis",
)  # in rad, or of unit vectors
_ANGLES = ("rpy",)  # surely in rad
_TEXTS = ("pose", "xyz")  # elements of SDFormat that hold numbers as text
_WORST = 5e-4  # m or rad: numbers with few digits may be exact, so no file is assumed to be less precise than this
_EXACT = 1e-12  # m or rad: a number that is rounded by less has all its digits
_RIGHT = 2e-3  # rad: an angle this near to a right one is meant to be one
_NOISE = 1e-9  # m or rad: smaller numbers are what rounding left of a zero
_NUMBER = re.compile(r"[-+]?(\d*)(?:\.(\d*))?(?:[eE]([-+]?\d{1,4}))?")


def precision_of(root: Element, *included: Element) -> float:
    """By how much the numbers of a robot's file are rounded, m or rad: as the file states, or judged by its digits.

    Args:
        root: the root element of the file.
        included: the root elements of the files that it includes.

    Raises:
        ModelError: if the precision that the file states is not a number.
    """
    numerics = [element for element in root.walk() if element.tag == "numeric" and element.get("name") == PRECISION]
    stated = [(root, name) for name in ("precision", "coupler:precision") if root.has(name)]
    stated += [(element, "data") for element in numerics]
    if stated:
        element, name = stated[0]
        return min(abs(element.number(name, 0.0)), _WORST)
    return _by_digits(element for file in (root, *included) for element in file.walk())


def _by_digits(elements: Iterable[Element]) -> float:
    """Half a unit in the last place of the numbers of a file.

    Numbers with the most significant digits count, of lengths and of directions apart, and the largest of these:
    shorter ones may be exact, and small ones may have as many digits after more zeros. An angle that is a right angle
    but for its digits says more: 1.57075 is rounded by 5e-5. Zero where all numbers are exact.
    """
    found = {"lengths": (0, 0), "directions": (0, 0)}  # significant digits, and the power of ten of the last
    right = 0.0
    for element in elements:
        for kind, words, angles in _given(element):
            for word in words:
                found[kind] = max(found[kind], _digits(word))
                if angles:
                    right = max(right, _off_right(word))
    rounded = [0.5 * 10.0**last for count, last in found.values() if count]
    return max([min(_WORST, value) for value in rounded if value > _EXACT] + [right], default=0.0)


def _given(element: Element) -> Iterator[tuple[str, list[str], bool]]:
    """Numbers of an element, as text, each group with its kind ("lengths" or "directions") and whether it is angles."""
    for name, text in element.attributes.items():
        if name in (*_LENGTHS, *_DIRECTIONS) and len(text) <= NUMBER_TEXT:
            kind = "lengths" if name in _LENGTHS and element.tag != "axis" else "directions"
            yield kind, text.split(), name in _ANGLES
    if element.tag in _TEXTS and len(element.text) <= NUMBER_TEXT:
        words = element.text.split()
        if element.tag == "xyz":
            yield "directions", words, False
        elif element.get("degrees").lower() not in ("1", "true"):  # right angles are exact in degrees
            yield "lengths", words[:3], False
            yield "directions", words[3:], len(words) == 6
        else:
            yield "lengths", words[:3], False


def _digits(word: str) -> tuple[int, int]:
    """A number's count of significant digits, and the power of ten of the last; zeros for whole numbers and noise."""
    number = _NUMBER.fullmatch(word)
    if number is None or not _NOISE < abs(float(word)) < np.inf:
        return 0, 0
    whole, behind, power = number[1], number[2] or "", int(number[3] or 0)
    behind = behind if behind.strip("0") else ""
    last = power - len(behind)
    return (len((whole + behind).lstrip("0")), last) if last < 0 else (0, 0)


def _off_right(word: str) -> float:
    """Deviation, rad, of an angle that is meant to be a multiple of 90 degrees; 0 if it is exact, or not meant so."""
    try:
        angle = float(word)
    except ValueError:
        return 0.0
    if not abs(angle) < 100.0:
        return 0.0
    away = abs(angle - np.round(angle / (np.pi / 2)) * (np.pi / 2))
    return float(away) if _EXACT < away < _RIGHT and abs(angle) > _RIGHT else 0.0
