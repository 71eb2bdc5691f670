"""Tables from files: YAML and JSON with all of a robot's tables, or a folder of CSV files with one each.

Files are untrusted: what is beyond `limits` is refused, and of a folder only files of known names are read that are
in it.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coupler.io.content import content_of
from coupler.io.limits import CELLS, TABLE_BYTES
from coupler.io.packages import real_path
from coupler.io.tables.expanded import EXPANDED, tables_of_tree
from coupler.io.tables.rows import COLUMNS, Row, checked_row
from coupler.io.yaml import parse_yaml
from coupler.model import ModelError
from coupler.model.wording import clipped, listed

_ABOUT = ("robot", "gravity")  # what a file says besides tables


@dataclass
class Tables:
    """The tables of a robot.

    Attributes:
        file: the file that the tables come from.
        name: the robot's name.
        gravity: 3, m/s²; None if not given.
        rows: the rows of each table.
    """

    file: Path
    name: str
    gravity: Any = None
    rows: dict[str, list[Row]] = field(default_factory=lambda: {table: [] for table in COLUMNS})
    _cells: int = 0

    def add(self, table: str, where: str, cells: dict[str, Any]) -> None:
        """Adds a row."""
        self._cells += len(cells)
        if self._cells > CELLS:
            raise ModelError(f"{where}: the tables have more than {CELLS} cells, the most that are read")
        self.rows[table].append(checked_row(where, table, cells))


def read_tables(file: Path) -> Tables:
    """The tables of a YAML or JSON file, or of all CSV files in the folder of one called bodies.csv."""
    if file.suffix.lower() == ".csv":
        return _from_folder(file)
    content = parse_yaml(file, TABLE_BYTES, 2 * CELLS) if file.suffix.lower() != ".json" else _parsed_json(file)
    if isinstance(content, dict) and "bodies" not in content and EXPANDED in content:
        content = tables_of_tree(file, content)
    if not isinstance(content, dict) or "bodies" not in content:
        raise ModelError(f"{file}: expected the tables of a robot, one of them called 'bodies'; see docs/files.md")
    unknown = [name for name in content if name not in (*COLUMNS, *_ABOUT)]
    if unknown:
        raise ModelError(
            f"{file}: there is no table {clipped(unknown[0])}; there are {listed([*COLUMNS, *_ABOUT], 20)}"
        )
    name = content.get("robot", file.stem)
    if not isinstance(name, str) or not name:
        raise ModelError(f"{file}: 'robot' must be a name, got {clipped(name)}")
    tables = Tables(file, str(name), content.get("gravity"))
    for table in COLUMNS:
        for where, cells in _rows(file, table, content.get(table) or []):
            tables.add(table, where, cells)
    return tables


def _rows(file: Path, table: str, rows: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows of a table: mappings from columns to cells, or lists below a list of headings."""
    if not isinstance(rows, list):
        raise ModelError(f"{file}: {table} must be a list of rows, got {clipped(rows)}")
    head: list[Any] | None = None
    for number, row in enumerate(rows, 1):
        where = f"{file}: {table}, row {number}"
        if isinstance(row, dict):
            yield f"{where}{_label(row.values())}", row
        elif isinstance(row, list) and head is None:
            head = row
            if len(set(map(str, head))) < len(head):
                raise ModelError(f"{where}: a heading appears twice in {clipped(head)}")
        elif isinstance(row, list) and head is not None:
            if len(row) != len(head):  # a cell that is forgotten would shift all that follow it
                raise ModelError(f"{where}{_label(row)}: it has {len(row)} cells below {len(head)} headings")
            yield f"{where}{_label(row)}", dict(zip(map(str, head), row, strict=True))
        else:
            raise ModelError(f"{where}: it must be a list of cells, or a mapping from columns, got {clipped(row)}")


def _label(cells: Any) -> str:
    """The label of a row in messages: its first cell."""
    first = next(iter(cells), None)
    return f" ({clipped(first, 40, quote=False)})" if isinstance(first, str | int | float) and first != "" else ""


def _parsed_json(file: Path) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key, value in pairs:
            if key in mapping:
                raise ValueError(f"the key {clipped(key)} appears twice in an object")
            mapping[key] = value
        return mapping

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not a number")

    try:
        text = content_of(file, TABLE_BYTES).decode("utf-8-sig")
        content = json.loads(text, object_pairs_hook=once, parse_constant=refuse)
    except ModelError:
        raise
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{file}: it is not JSON: {clipped(error, 1000, quote=False)}") from None
    return content


def _from_folder(file: Path) -> Tables:
    """The tables in bodies.csv and in all CSV files of tables beside it."""
    if file.stem.lower() != "bodies":
        raise ModelError(f"{file}: of a robot's tables in CSV, name bodies.csv; the others are read from its folder")
    folder = real_path(file).parent
    tables = Tables(file, folder.name or "robot")
    for table in COLUMNS:
        path = file if table == "bodies" else file.with_name(f"{table}.csv")
        if not os.path.lexists(path):
            continue
        if real_path(path).parent != folder:
            raise ModelError(f"{path}: it is a link that leads out of its folder, and is not read")
        for where, row in _csv_rows(path):
            tables.add(table, where, row)
    return tables


def _csv_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows of a CSV file, with commas, semicolons or tabs. With semicolons, as in much of Europe, numbers may have
    decimal commas.
    """
    try:
        text = content_of(path, TABLE_BYTES).decode("utf-8-sig")
        head_line = text.partition("\n")[0]
        separator = next((mark for mark in (";", ",", "\t") if mark in head_line), ",")
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        head = [name.strip() for name in next(reader, [])]
        if len(set(head)) < len(head):
            raise ModelError(f"{path}: a heading appears twice in {clipped(head)}")
        styles = dict[str, str]()  # a number with a decimal point, and one with a decimal comma
        for row in reader:
            where = f"{path}, line {reader.line_num}"
            if not any(cell.strip() for cell in row):
                continue
            if len(row) > len(head):
                raise ModelError(f"{where}: it has {len(row)} cells below {len(head)} headings")
            cells = [_decimal(cell) if separator == ";" else cell for cell in row]
            for cell in row if separator == ";" else ():
                styles |= {mark: cell for mark in ",." if re.fullmatch(rf"\s*[-+]?\d+\{mark}\d+\s*", cell)}
            if len(styles) > 1:
                raise ModelError(
                    f"{where}: {styles['.'].strip()} has a decimal point, and {styles[','].strip()} a decimal comma: "
                    "write all numbers in the same way, and no marks between thousands"
                )
            yield f"{where}{_label(cells)}", dict(zip(head, cells, strict=False))
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: it is not UTF-8 ({error.reason} at {error.start}): save it as CSV UTF-8") from None
    except csv.Error as error:
        raise ModelError(f"{path}: it is not CSV: {clipped(error, 1000, quote=False)}") from None


def _decimal(cell: str) -> str:
    """A number with a decimal comma, with a point instead; any other cell as it is."""
    dotted = cell.replace(",", ".", 1)
    try:
        float(dotted)
    except ValueError:
        return cell
    return dotted
