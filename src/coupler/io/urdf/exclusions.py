"""Links that do not touch each other, as a URDF or the SRDF beside it says."""

from __future__ import annotations

from coupler.io.urdf.beside import beside
from coupler.io.urdf.description import Description
from coupler.io.xml import Element, parse_file
from coupler.model import ModelError
from coupler.model.tree import GROUND
from coupler.model.wording import counted

_TAG = "disable_collisions"


def read_exclusions(d: Description) -> None:
    """Adds pairs of links that do not touch, from the file itself and from an SRDF of the same name beside it."""
    _add(d, d.root.all(_TAG))
    path = beside(d, f"{d.root.file.stem}.srdf", "copy it there if it says which links do not touch")
    if path is not None:
        before = len(d.exclusions)
        try:
            root = parse_file(path)
            _add(d, root.all(_TAG))
        except ModelError as error:
            raise ModelError(f"{error} (mend it, or rename it to load the robot without it)") from None
        defaults = len(root.all("disable_default_collisions", "enable_collisions"))
        if defaults:
            d.warnings.append(
                f"{path.name}: {counted(defaults, 'rule')} by <disable_default_collisions> or <enable_collisions> left "
                f"out; <{_TAG}> names a pair"
            )
        d.remarks.append(f"{counted(len(d.exclusions) - before, 'pair')} of links do not touch, by {path.name}")


def _add(d: Description, elements: list[Element]) -> None:
    unknown = 0
    for element in elements:
        links = [d.renamed.get(link, link) for link in (element.require("link1"), element.require("link2"))]
        element.get("reason")
        if all(link == GROUND or (link in d.links and d.links[link].role == "body") for link in links):
            d.exclusions.append((links[0], links[1]))
        else:
            unknown += 1
    if unknown:
        d.warnings.append(f"{counted(unknown, f'<{_TAG}>')} with unknown links left out")
