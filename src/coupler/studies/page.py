"""One page of all studies: verdicts, tables and pictures, in a file that needs no other."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from coupler.studies.report import VERDICTS, Record, Verdict

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: #222 }
h1, h2, h3 { line-height: 1.2 } h3 { margin-top: 2.5rem }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto }
td, th { border: 1px solid #ddd; padding: 0.2rem 0.6rem; text-align: right }
td:first-child, th:first-child { text-align: left }
th { background: #f5f5f5 }
.agrees { background: #e6f4ea } .better { background: #e3effc }
.differs { background: #fdeeda } .failed { background: #fbe3e3 } .left { background: #f5f5f5 }
.summary td:last-child { text-align: left; min-width: 20rem } td:first-child, td:nth-child(5) { white-space: nowrap }
.verdicts td:first-child { white-space: normal } .verdicts th, .verdicts td { text-align: left; vertical-align: top }
img { max-width: 100%; border: 1px solid #eee } summary { cursor: pointer; color: #555 }
"""
_IMAGES = {".png": "png", ".gif": "gif"}


def write_page(path: Path, records: Sequence[Record]) -> None:
    """Writes the page.

    Args:
        records: the records of all studies, grouped by paper.
    """
    parts = ["<h1>The papers, run again</h1>", _summary(records)]
    for paper, studies in groupby(records, lambda record: record.name.split("-")[0]):
        parts.append(f"<h2>Paper {escape(paper)}</h2>")
        parts += [_study(record) for record in studies]
    body = "\n".join(parts)
    head = f'<meta charset="utf-8"><title>coupler: studies</title><style>{_STYLE}</style>'
    path.write_text(f"<!DOCTYPE html><html lang=en><head>{head}</head><body>{body}</body></html>\n", encoding="utf-8")


def _summary(records: Sequence[Record]) -> str:
    """A table of all studies with counts of their verdicts."""
    rows = []
    for record in records:
        counts = {kind: sum(_kind(verdict) == kind for verdict in record.verdicts) for kind in VERDICTS}
        cells = "".join(f'<td class="{kind if count else ""}">{count or ""}</td>' for kind, count in counts.items())
        name = f'<a href="#{escape(record.name)}">{escape(record.name)}</a>'
        took, remark = f"<td>{record.seconds:.0f} s</td>", _remark("td", record)
        rows.append(f"<tr><td>{name}</td>{cells}{took}{remark}</tr>")
    head = "".join(f"<th>{title}</th>" for title in ("study", *VERDICTS, "took", ""))
    return f'<table class="summary"><tr>{head}</tr>{"".join(rows)}</table>'


def _remark(tag: str, record: Record) -> str:
    """Why a study failed or was left out."""
    if record.failure:
        return f'<{tag} class="failed">failed: {escape(record.failure)}</{tag}>'
    return f'<{tag} class="left">left out: {escape(record.left_out)}</{tag}>' if record.left_out else f"<{tag}></{tag}>"


def _study(record: Record) -> str:
    parts = [f'<h3 id="{escape(record.name)}">{escape(record.name)}: {escape(record.about)}</h3>']
    if record.failure or record.left_out:
        parts.append(_remark("p", record))
    if record.verdicts:
        rows = "".join(_verdict_row(verdict) for verdict in record.verdicts)
        head = "<tr><th>what</th><th>paper</th><th>here</th><th>verdict</th></tr>"
        parts.append(f'<table class="verdicts">{head}{rows}</table>')
    parts += [f"<p>{escape(text)}</p>" for text in record.notes]
    parts += [_picture(path) for path in record.pictures if path.suffix in _IMAGES and path.exists()]
    parts += [f"<details><summary>numbers</summary>{_table(texts)}</details>" for texts in record.tables]
    return "\n".join(parts)


def _verdict_row(verdict: Verdict) -> str:
    cells = "".join(f"<td>{escape(text)}</td>" for text in (verdict.what, verdict.paper, verdict.ours, verdict.outcome))
    return f'<tr class="{_kind(verdict)}">{cells}</tr>'


def _kind(verdict: Verdict) -> str:
    """The word that its outcome begins with."""
    return next((kind for kind in VERDICTS if verdict.outcome.startswith(kind)), "")


def _picture(path: Path) -> str:
    data = f"data:image/{_IMAGES[path.suffix]};base64,{b64encode(path.read_bytes()).decode()}"
    return f'<p><img alt="{escape(path.stem)}" src="{data}"></p>'


def _table(texts: list[list[str]]) -> str:
    head, *rows = (
        "".join(f"<{tag}>{escape(text)}</{tag}>" for text in row)
        for tag, row in zip(["th", *["td"] * (len(texts) - 1)], texts, strict=True)
    )
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in (head, *rows))}</table>"
