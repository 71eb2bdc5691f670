"""XML: elements that know their line and what of them was read; and files that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coupler.io.limits import DEPTH
from coupler.io.load import load
from coupler.io.xml import Element, parse, parse_file
from coupler.model import ModelError

FILE = Path("robot.urdf")


def element(text: str) -> Element:
    return parse(text.encode(), FILE)


# Elements


def test_elements_know_their_file_and_line() -> None:
    root = element('<robot>\n  <link\n    name="a"/>\n\n  <joint/></robot>')
    link, joint = root.all()
    assert [(e.tag, e.file, e.line) for e in (root, link, joint)] == [
        ("robot", FILE, 1),
        ("link", FILE, 2),
        ("joint", FILE, 5),
    ]
    assert str(link) == "robot.urdf, line 2, <link name='a'>"
    assert str(joint) == "robot.urdf, line 5, <joint>"


def test_a_comment_and_a_declaration_count_as_lines() -> None:
    root = element('<?xml version="1.0"?>\n<!-- of two\nlines -->\n<robot/>')
    assert root.line == 4


def test_errors_name_the_element() -> None:
    joint = element("<robot>\n<joint name='hip'/></robot>").all()[0]
    with pytest.raises(ModelError, match=r"^robot\.urdf, line 2, <joint name='hip'>: it is bent$"), joint.blamed():
        raise ModelError("it is bent")


def test_children_come_in_the_files_order_and_by_tag() -> None:
    root = element("<r><a/><b/><a i='2'/><c><d/></c></r>")
    assert [child.tag for child in root.all()] == ["a", "b", "a", "c"]
    assert [child.tag for child in root.all("c", "b")] == ["b", "c"]
    assert [child.tag for child in root.walk()] == ["a", "b", "a", "c", "d"]


def test_one_child_is_found_none_is_none_and_two_are_too_many() -> None:
    root = element("<r>\n<a/>\n<b/>\n<a/></r>")
    found = root.find("b")
    assert found is not None and found.line == 3
    assert root.find("c") is None
    with pytest.raises(ModelError, match=r"line 4, <a>: there is more than one <a> in 'r'; the first is in line 2"):
        root.find("a")
    with pytest.raises(ModelError, match=r"line 1, <r>: there is no <c> in it"):
        root.need("c")


def test_text_is_read_without_blanks_and_children() -> None:
    assert element("<r>\n one <a>two</a>three\n</r>").word() == "one three"
    np.testing.assert_array_equal(element("<pose> 1 2\n3 </pose>").values(3), (1, 2, 3))


def test_text_that_is_no_numbers_is_refused() -> None:
    with pytest.raises(ModelError, match=r"<pose>: what it holds must be 3 numbers, got '1 2'"):
        element("<pose>1 2</pose>").values(3)


# Attributes


def test_a_missing_or_empty_attribute_is_named() -> None:
    for text in ("<link/>", "<link name=''/>", "<link name='  '/>"):
        with pytest.raises(ModelError, match=r"<link.*>: it needs the attribute 'name'"):
            element(text).require("name")


def test_names_lose_their_blanks() -> None:
    assert element("<link name=' hip '/>").require("name") == "hip"


@pytest.mark.parametrize("text", ["1 2 3", " 1\t2\n3 ", "1,2,3", "1e0 +2. 0.3e1"])
def test_numbers_are_split_at_blanks_and_commas(text: str) -> None:
    np.testing.assert_array_equal(element(f"<a xyz='{text}'/>").numbers("xyz", 3), (1, 2, 3))


@pytest.mark.parametrize("text", ["1 2", "1 2 3 4", "1 2 x", "1_0 2 3", "0x1 2 3", "1;2;3", "1 2 3,5 4"])
def test_what_is_not_so_many_numbers_is_refused(text: str) -> None:
    with pytest.raises(ModelError, match=rf"^robot\.urdf, line 2, <a>: its xyz must be 3 numbers, got '{text}'$"):
        element(f"\n<a xyz='{text}'/>").numbers("xyz", 3)


def test_an_expression_of_xacro_is_told_as_such() -> None:
    with pytest.raises(ModelError, match=r"its value must be a number, got '\$\{m\}'; .* xacro=True"):
        element("<mass value='${m}'/>").number("value")


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "Infinity", "1e400"])
def test_numbers_are_finite_unless_they_need_not_be(text: str) -> None:
    a = element(f"<a mass='{text}'/>")
    with pytest.raises(ModelError, match=rf"its mass must be a finite number, got '{text}'"):
        a.number("mass")
    if text == "nan":
        with pytest.raises(ModelError, match="its mass must be a number"):
            a.number("mass", finite=False)
    else:
        assert np.isinf(a.number("mass", finite=False))


def test_a_number_may_have_a_default_and_is_required_without_one() -> None:
    a = element("<a/>")
    assert a.number("mass", 2.5) == 2.5
    np.testing.assert_array_equal(a.numbers("xyz", 3, [1.0, 2.0, 3.0]), (1, 2, 3))
    with pytest.raises(ModelError, match="it needs the attribute 'mass'"):
        a.number("mass")


def test_any_number_of_numbers_is_at_least_one() -> None:
    assert len(element("<a x='1 2 3 4'/>").numbers("x", None)) == 4
    with pytest.raises(ModelError, match="its x must be numbers, got ','"):
        element("<a x=','/>").numbers("x", None)


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("True", True), ("1", True), ("false", False), ("0", False)]
)
def test_flags_are_true_or_false(text: str, value: bool) -> None:
    assert element(f"<a ideal='{text}'/>").flag("ideal") is value
    assert element("<a/>").flag("ideal", value) is value


@pytest.mark.parametrize("text", ["yes", "", "2"])
def test_other_flags_are_refused(text: str) -> None:
    with pytest.raises(ModelError, match=rf"<a>: its ideal must be true or false, got '{text}'"):
        element(f"<a ideal='{text}'/>").flag("ideal")


# What is left over


def test_what_nobody_asked_for_is_counted() -> None:
    root = element("<r a='1' b='2'><x c='3'><y/><y/></x><z><w/></z><z/></r>")
    root.get("a")
    root.all("x")
    assert root.unread() == {"b= of <r>": 1, "c= of <x>": 1, "<y>": 2, "<z>": 2}


def test_asking_for_a_default_reads_an_attribute_and_looking_whether_it_is_there_does_not() -> None:
    a = element("<a x='1' y='2' z='true'/>")
    a.has("x")
    a.number("y", 0.0)
    a.flag("z")
    assert a.unread() == {"x= of <a>": 1}


def test_what_is_ignored_is_not_counted() -> None:
    root = element("<r a='1'><x c='3'><y d='4'/></x></r>")
    root.ignore()
    assert not root.unread()


# Files


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", 1),
        (b"solid part\n", 1),
        (b"<robot>\n<link>\n</robot>", 3),
        (b"<robot/>\n<robot/>", 2),
        (b"<robot>\n&mass;</robot>", 2),
        (b"\0\0\0", 1),
        (b"<robot a='1'\n a='2'/>", 2),
    ],
)
def test_what_is_no_xml_is_refused_with_its_line(data: bytes, line: int, tmp_path: Path) -> None:
    path = tmp_path / "robot.urdf"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=rf"robot\.urdf, line {line}: it is not XML: "):
        load(path)


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(ModelError, match=r"robot\.urdf.*: it is not XML: .*encoding"):
        parse(b'<?xml version="1.0" encoding="klingon"?><robot/>', FILE)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_names_in_other_scripts_are_kept(encoding: str) -> None:
    assert parse('<robot name="Žofie"/>'.encode(encoding), FILE).get("name") == "Žofie"


@pytest.mark.parametrize(
    "declaration",
    [
        '<!ENTITY a "aaaa">',
        '<!ENTITY a SYSTEM "file:///etc/hostname">',
        '<!ENTITY % a "aaaa">',
        '<!ENTITY a "lol"><!ENTITY b "&a;&a;">',
    ],
)
def test_entities_are_refused(declaration: str) -> None:
    text = f"<!DOCTYPE robot [\n{declaration}]>\n<robot name='x'/>"
    with pytest.raises(ModelError, match=r"robot\.urdf, line 2: it declares the entity 'a'; entities are refused"):
        parse(text.encode(), FILE)


def test_an_entity_of_a_definition_elsewhere_does_not_vanish() -> None:
    """Nothing is fetched; what the definition would say must not be taken for nothing."""
    text = '<!DOCTYPE robot SYSTEM "robot.dtd"><robot name="a&mass;b"/>'
    with pytest.raises(ModelError, match=r"robot\.urdf, line 1.*(entity|entities|DOCTYPE)"):
        parse(text.encode(), FILE)


def test_the_five_entities_of_xml_are_read() -> None:
    assert element("<r name='&lt;&amp;&gt;&quot;&apos;'/>").get("name") == "<&>\"'"


def test_deep_files_are_walked() -> None:
    depth = DEPTH
    root = element("<a>" * depth + "</a>" * depth)
    assert sum(1 for _ in root.walk()) == depth - 1
    assert root.unread() == {"<a>": 1}


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("<a>" * 1_000_000, "500 elements within each other"),
        ("<r>" + "<a/>" * 1_000_000 + "</r>", "100000 elements"),
    ],
)
def test_what_is_nested_too_deeply_or_has_too_much_in_it_is_refused(text: str, limit: str) -> None:
    with pytest.raises(ModelError, match=rf"line 1: it has more than {limit}, the most that are read"):
        element(text)


def test_a_file_that_vanished_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"gone\.urdf: it cannot be read: No such file"):
        parse_file(tmp_path / "gone.urdf")


# Loading


def test_another_root_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scene.dae"
    path.write_text("<COLLADA version='1.6'/>")
    with pytest.raises(ModelError, match=r"scene\.dae, line 1, <COLLADA>: a robot's file begins with <robot>.*<sdf>"):
        load(path)


def test_a_missing_file_and_a_folder_are_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"gone\.urdf: there is no such file$"):
        load(tmp_path / "gone.urdf")
    with pytest.raises(ModelError, match="it is a folder; name the robot's file in it"):
        load(str(tmp_path))


def test_the_name_of_a_bundled_robot_is_no_file_but_there_is_a_hint() -> None:
    with pytest.raises(ModelError, match=r"coupler\.robots\.load\('four_bar'\)"):
        load("four_bar")


@pytest.mark.parametrize("path", [None, 3, b"robot.urdf"])
def test_what_is_no_path_is_refused(path: Any) -> None:
    with pytest.raises(ModelError, match="a robot is loaded from the path of a file, got"):
        load(path)
