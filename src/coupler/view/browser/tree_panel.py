"""The cluster tree beside the robot: the part under the cursor is highlighted and described."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from coupler.grouping import grouped
from coupler.model import Robot
from coupler.model.wording import counted
from coupler.view.browser.robot_scene import RobotScene, rgb
from coupler.view.figure.colours import body_colours

if TYPE_CHECKING:
    from viser import ViserServer

# What a browser does over a row of the tree: it writes the row's name into the text field above, as a user would, and
# takes it away again; a row that is clicked stays. So the server hears of it, which rows of HTML alone cannot tell it.
_WRITE = """
let place = this, field = null;
while (place && !(field = place.querySelector('input.mantine-TextInput-input'))) place = place.parentElement;
if (field && field.value !== text) {
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(field, text);
  field.dispatchEvent(new Event('input', {bubbles: true}));
}"""
_ROW = "const row = event.target.closest('[data-name]');"
_HANDLERS = {
    "onmouseover": f"{_ROW} const text = row ? row.dataset.name : this.dataset.kept || '';{_WRITE}",
    "onmouseleave": f"const text = this.dataset.kept || '';{_WRITE}",
    "onclick": f"{_ROW} if (row) this.dataset.kept = this.dataset.kept === row.dataset.name ? '' : row.dataset.name;",
}
_STYLE = "<style>[data-name] { cursor: default } [data-name]:hover { background: #fff4e6 }</style>"


class TreePanel:
    """The cluster tree: the cluster under the cursor, or whose body is clicked, is highlighted in the scene.

    Attributes:
        field: the text field with the name of what is highlighted.
        about: the description of what is highlighted.
    """

    def __init__(self, server: ViserServer, scene: RobotScene) -> None:
        """Adds the tree to the current tab."""
        self._scene, self._chosen = scene, 0
        self._colouring = scene.figure.default_colouring()
        choices = [choice for choice in ("file", "cluster", "body") if choice != "file" or self._colouring == "file"]
        colours = server.gui.add_dropdown("Colour by", tuple(choices), initial_value=self._colouring)
        colours.on_update(lambda event: self._recolour(event.target.value))
        glass = server.gui.add_checkbox("See through", False, hint="to see forces and loops within bodies")
        glass.on_update(lambda event: scene.see_through(bool(event.target.value)))
        self.field = server.gui.add_text(
            "Highlight", "", hint="type a name, point at a row below, or click a body; click it again for nothing"
        )
        self.field.on_update(lambda event: self._highlight(str(event.target.value)))
        self.about = server.gui.add_html(_said(""))
        self._tree = server.gui.add_html(self._drawn())
        scene.on_click(self.clicked)

    def clicked(self, body: str) -> None:
        """Highlights the cluster of a body, and describes the body; a second click undoes it."""
        self.field.value = "" if self.field.value == body else body
        self._tree.content = self._drawn()

    def _highlight(self, text: str) -> None:
        robot = self._scene.figure.robot
        body, self._chosen = named(robot, text)
        self._scene.highlight(cluster_bodies(robot, self._chosen) if self._chosen else ())
        missing = f"nothing is called {text!r}" if text else ""
        self.about.content = _about(robot, body) if body else _said(escape(missing))

    def _recolour(self, colouring: Any) -> None:
        self._colouring = colouring
        self._scene.colour(colouring)
        self._tree.content = self._drawn()

    def _drawn(self) -> str:
        return tree_html(self._scene.figure.robot, self._colouring, self._chosen)


def named(robot: Robot, text: str) -> tuple[str, int]:
    """The first body of that name, or else with the text in its name, and its cluster; "" and 0 for none."""
    for fits in (lambda body: body == text, lambda body: bool(text) and text.lower() in body.lower()):
        for body in filter(fits, robot.bodies):
            return body, robot.cluster_tree.cluster_of.get(robot.tree.place[body][0], 0)
    return "", 0


def cluster_bodies(robot: Robot, cluster: int) -> list[str]:
    """The names of all bodies of a cluster, those welded to others included."""
    return [body for link in robot.cluster_tree.clusters[cluster].bodies for body in robot.tree.links[link].bodies]


def tree_html(robot: Robot, colouring: Any, chosen: int = 0) -> str:
    """The cluster tree as HTML, with a swatch of colour for each body."""
    colours, clusters = body_colours(robot, colouring), robot.cluster_tree.clusters
    children = grouped(range(1, len(clusters)), lambda k: clusters[k].parent)
    rows, waiting = [], [(k, 0) for k in reversed(children.get(0, []))]
    while waiting:
        k, depth = waiting.pop()
        waiting += [(child, depth + 1) for child in reversed(children.get(k, []))]
        links = [robot.tree.links[i] for i in clusters[k].bodies]
        swatches = "".join(_swatch(colours[link.name]) for link in links)
        names = ", ".join(escape(link.name) for link in links)
        style = f"padding:1px 4px 1px {min(depth, 12) * 10 + 4}px;border-radius:4px"
        style += ";background:#ffe8cc;font-weight:600" if k == chosen else ""
        name = escape(links[0].name, quote=True)
        rows.append(f'<div data-name="{name}" style="{style}">{swatches} {k}: {names}</div>')
    handlers = " ".join(f'{event}="{escape(script, quote=True)}"' for event, script in _HANDLERS.items())
    style = "padding:6px 10px;font-size:0.78em;line-height:1.5;overflow-wrap:anywhere"
    return f'{_STYLE}<div {handlers} style="{style}">ground{"".join(rows)}</div>'


def _swatch(colour: Any) -> str:
    red, green, blue = rgb(colour)
    style = "display:inline-block;width:0.75em;height:0.75em;border-radius:2px;margin-right:2px"
    return f'<span style="{style};background:rgb({red},{green},{blue})"></span>'


def _about(robot: Robot, body: str) -> str:
    mass, joint = robot.bodies[body].mass, next((joint for joint in robot.joints if joint.child == body), None)
    carried = f"{joint.kind.kind} joint {joint.name!r} on {joint.parent!r}" if joint else ""
    welded = [name for name in robot.tree.links[robot.tree.place[body][0]].bodies if name != body]
    more = f"welded to {counted(len(welded), 'other body', 'other bodies')}" if welded else ""
    lines = [f"<b>{escape(body)}</b>", f"{mass:.4g} kg", escape(carried), more]
    return _said("<br>".join(line for line in lines if line))


def _said(html: str) -> str:
    """Text in a box of constant height, so that the rows below stay under the cursor."""
    return f'<div style="padding:4px 14px;font-size:0.8em;height:6.4em;overflow:auto">{html}</div>'
