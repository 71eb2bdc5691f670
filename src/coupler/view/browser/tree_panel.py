"""The cluster tree beside the robot, and what is known of the body that is clicked."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from coupler.model import Robot
from coupler.model.wording import counted
from coupler.view.browser.scene import RobotScene, rgb
from coupler.view.figure.colours import body_colours

if TYPE_CHECKING:
    from viser import ViserServer

__all__ = ["TreePanel", "cluster_bodies", "tree_html"]

_NOTHING = "nothing"


class TreePanel:
    """The cluster tree: a cluster that is chosen, or whose body is clicked, is highlighted in the scene."""

    def __init__(self, server: ViserServer, scene: RobotScene) -> None:
        """Adds it to the current tab."""
        self._scene, robot = scene, scene.figure.robot
        self._colouring = scene.figure.default_colouring()
        choices = [choice for choice in ("file", "cluster", "body") if choice != "file" or self._colouring == "file"]
        colours = server.gui.add_dropdown("Colour by", tuple(choices), initial_value=self._colouring)
        colours.on_update(lambda event: self._recolour(event.target.value))
        self._names = {_name(robot, k): k for k in range(1, len(robot.cluster_tree.clusters))}
        self.choice = server.gui.add_dropdown(
            "Highlight", (_NOTHING, *self._names), hint="or click a body; click it again for nothing"
        )
        self.choice.on_update(lambda event: self._highlight(str(event.target.value)))
        self._chosen = 0
        self.about = server.gui.add_html("")
        self._tree = server.gui.add_html(self._drawn())
        scene.on_click(self.clicked)

    def clicked(self, body: str) -> None:
        """Highlights the cluster of a body, and tells of the body; a second click undoes it."""
        robot = self._scene.figure.robot
        cluster = robot.cluster_tree.cluster_of.get(robot.tree.place[body][0], 0)
        again = cluster == self._chosen
        self.choice.value = _NOTHING if again or not cluster else _name(robot, cluster)
        self.about.content = "" if again else _about(robot, body)

    def _highlight(self, name: str) -> None:
        robot, self._chosen = self._scene.figure.robot, self._names.get(name, 0)
        self._scene.highlight(cluster_bodies(robot, self._chosen) if self._chosen else ())
        self._tree.content = self._drawn()

    def _recolour(self, colouring: Any) -> None:
        self._colouring = colouring
        self._scene.colour(colouring)
        self._tree.content = self._drawn()

    def _drawn(self) -> str:
        return tree_html(self._scene.figure.robot, self._colouring, self._chosen)


def cluster_bodies(robot: Robot, cluster: int) -> list[str]:
    """The names of all bodies of a cluster, those welded to others included."""
    return [body for link in robot.cluster_tree.clusters[cluster].bodies for body in robot.tree.links[link].bodies]


def tree_html(robot: Robot, colouring: Any, chosen: int = 0) -> str:
    """The cluster tree as HTML, with a swatch of colour for each body."""
    colours, clusters = body_colours(robot, colouring), robot.cluster_tree.clusters
    children: dict[int, list[int]] = {}
    for k in range(1, len(clusters)):
        children.setdefault(clusters[k].parent, []).append(k)
    rows, waiting = [], [(k, 0) for k in reversed(children.get(0, []))]
    while waiting:
        k, depth = waiting.pop()
        waiting += [(child, depth + 1) for child in reversed(children.get(k, []))]
        links = [robot.tree.links[i] for i in clusters[k].bodies]
        swatches = "".join(_swatch(colours[link.name]) for link in links)
        names = ", ".join(escape(link.name) for link in links)
        style = f"padding:1px 4px 1px {min(depth, 12) * 10 + 4}px;border-radius:4px"
        style += ";background:#ffe8cc;font-weight:600" if k == chosen else ""
        rows.append(f'<div data-cluster="{k}" style="{style}">{swatches} {k}: {names}</div>')
    return f'<div style="padding:6px 10px;font-size:0.78em;line-height:1.5">ground{"".join(rows)}</div>'


def _swatch(colour: Any) -> str:
    red, green, blue = rgb(colour)
    style = "display:inline-block;width:0.75em;height:0.75em;border-radius:2px;margin-right:2px"
    return f'<span style="{style};background:rgb({red},{green},{blue})"></span>'


def _name(robot: Robot, cluster: int) -> str:
    links = [robot.tree.links[i].name for i in robot.cluster_tree.clusters[cluster].bodies]
    return f"{cluster}: {links[0]}" + (f" and {len(links) - 1} more" if len(links) > 1 else "")


def _about(robot: Robot, body: str) -> str:
    own, joint = robot.bodies[body], next((joint for joint in robot.joints if joint.child == body), None)
    carried = f"{joint.kind.kind} joint {joint.name!r} on {joint.parent!r}" if joint else ""
    welded = [name for name in robot.tree.links[robot.tree.place[body][0]].bodies if name != body]
    more = f"welded to {counted(len(welded), 'other body', 'other bodies')}" if welded else ""
    lines = [f"<b>{escape(body)}</b>", f"{own.mass:.4g} kg", escape(carried), more]
    return f'<div style="padding:4px 14px;font-size:0.8em">{"<br>".join(line for line in lines if line)}</div>'
