"""Damaged files in SDFormat: a robot, or a `ModelError` that names the file, and nothing else, and soon."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coupler.io.sdf.write import sdf_text
from coupler.model import Robot
from effort import examples
from mutations import TEXT_CHANGES, Recipe, damaged, mutated, outcome, recipes, written
from saved_robots import everything
from sdf_samples import ARMS, BIPED, FOUR_BAR, joint, link, sdf

ET.register_namespace("coupler", "urn:coupler")

HAND = (
    link("palm", "0 0 0.1 0 0.2 0")
    + link("finger", "0 0.1 0.2 0.3 0 0")
    + joint("curl", "revolute", "palm", "finger", "<xyz expressed_in='__model__'>0 0 1</xyz>")
    + '<frame name="tip" attached_to="finger"><pose relative_to="palm">0 0 0.1 0.5 0 0</pose></frame>'
)
NESTED = (
    link("arm", "0.1 0 0 0 0 0.3")
    + f'<model name="hand" placement_frame="palm"><pose relative_to="arm">0.5 0 0 0 0.4 0</pose>{HAND}</model>'
    + '<include merge="true"><uri>other.sdf</uri>'
    + '<pose relative_to="hand::tip" degrees="true">0 0 1 90 0 0</pose></include>'
    + "<include><uri>other.sdf</uri><name>second</name><placement_frame>tip</placement_frame></include>"
    + joint("wrist", "universal", "arm", "hand::palm", "0 1 0;1 0 0")
    + joint("grip", "ball", "hand::tip", "palm")
    + joint("screw", "screw", "arm", "second::finger", "0 0 1", "", "<screw_thread_pitch>0.1</screw_thread_pitch>")
)
MU, BITS = "<friction><ode><mu>1</mu></ode></friction>", "<contact><collide_bitmask>3</collide_bitmask></contact>"
SHAPES = "".join(
    f'<{tag} name="s{i}"><pose>0 0 1 0 0 0</pose><geometry>{form}</geometry>{more}</{tag}>'
    for i, (tag, form, more) in enumerate(
        [
            ("visual", "<box><size>1 2 3</size></box>", "<material><diffuse>1 0 0 1</diffuse></material>"),
            ("collision", "<sphere><radius>1</radius></sphere>", f"<surface>{MU}</surface>"),
            ("collision", "<plane><normal>0 1 1</normal></plane>", f"<surface>{BITS}</surface>"),
            ("collision", "<mesh><uri>model://x/y.stl</uri><scale>1 1 1</scale></mesh>", ""),
            ("visual", "<capsule><radius>1</radius><length>2</length></capsule>", "<transparency>0.5</transparency>"),
        ]
    )
)
WORLD = (
    '<sdf version="1.9"><world name="w"><gravity>0 0 -5</gravity><frame name="f"><pose>1 0 0 0 0 0</pose></frame>'
    f'<model name="floor"><static>true</static>{link("slab", inside=SHAPES)}</model>'
    f'<model name="a"><pose relative_to="f">0 0 1 0 0 0</pose>{link("x", inside=SHAPES)}</model>'
    f'<model name="b"><self_collide>1</self_collide>{link("x")}{link("y")}'
    + joint("j", "revolute", "x", "y", '<xyz>0 1 0</xyz><mimic joint="k"><multiplier>2</multiplier></mimic>')
    + link("z")
    + joint("k", "prismatic", "x", "z", "<xyz>0 0 1</xyz><limit><lower>-1</lower><upper>1</upper></limit>")
    + "</model>"
    + joint("tie", "ball", "floor::slab", "a::x")
    + "</world></sdf>"
)
SAMPLES = {
    "arm of 1.4": ARMS["1.4"],
    "arm of 1.7": ARMS["1.7"],
    "four-bar": FOUR_BAR,
    "biped": BIPED,
    "nested": sdf(NESTED),
    "world": WORLD,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzzed")


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file with all that is ours in it."""
    folder = tmp_path_factory.mktemp("everything")
    return sdf_text(everything(folder / "crank.stl").build(), folder)


def files(data: bytes) -> dict[str, bytes]:
    return {"robot.sdf": data, "other.sdf": sdf(HAND, "1.6", "other").encode()}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_themselves_are_robots(folder: Path, name: str) -> None:
    assert isinstance(outcome(*written(folder, files(SAMPLES[name].encode()))), Robot)


@pytest.mark.parametrize("name", SAMPLES)
@examples(6, 200)
@given(recipe=recipes(1, 4))
def test_changed_elements(folder: Path, name: str, recipe: Recipe) -> None:
    outcome(*written(folder, files(mutated(SAMPLES[name], recipe, TEXT_CHANGES))))


@examples(5, 300)
@given(recipe=recipes(1, 4))
def test_changed_elements_of_ours(folder: Path, ours: str, recipe: Recipe) -> None:
    outcome(*written(folder, files(mutated(ours, recipe, TEXT_CHANGES))))


@examples(8, 300)
@given(recipe=recipes(1, 4))
def test_changed_elements_of_a_file_that_is_included(folder: Path, recipe: Recipe) -> None:
    other = mutated(sdf(HAND, "1.6", "other"), recipe, TEXT_CHANGES)
    outcome(*written(folder, files(sdf(NESTED).encode()) | {"other.sdf": other}))


@examples(25, 1000)
@given(name=st.sampled_from(list(SAMPLES)), recipe=recipes(1, 3))
def test_damaged_bytes(folder: Path, name: str, recipe: Recipe) -> None:
    outcome(*written(folder, files(damaged(SAMPLES[name].encode(), recipe))))
