"""The view of a result in a notebook: a table by operator, and both graphs as drawings.

The input is two messages and the report of a run, the output text of HTML, without scripts.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import onnx

from eqsat.model.model import count_operators
from eqsat.picture.drawing import drawing, identities

_MOST_ROWS = 40
_VERDICTS = {"equal": "verified equal", "skipped": "not verified, as asked"}


def verdict(report: Mapping[str, Any]) -> str:
    """Returns what is known of a result, in a few words."""
    status: str = report["verify"]["status"]
    return _VERDICTS.get(status, status)


def view(original: onnx.ModelProto, result: onnx.ModelProto, report: Mapping[str, Any]) -> str:
    """Returns the view of a result. Nodes that only one of the graphs has are drawn in another
    color.
    """
    nodes = report["nodes"]
    pictures = "".join(
        f'<figure style="margin:0;flex:1 1 20em;min-width:0;max-height:40em;overflow:auto"><figcaption>{title}</figcaption>'
        f"{drawing(model, identities(other), title)}</figure>"
        for title, model, other in (("before", original, result), ("after", result, original))
    )
    return (
        f"<div><p><b>eqsat</b>: {nodes['before']} &rarr; {nodes['after']} nodes, {escape(verdict(report))}</p>{_table(original, result, report)}"
        "<p>Both graphs; nodes that only one of them has are orange.</p>"
        f'<div style="display:flex;flex-wrap:wrap;gap:2em;align-items:flex-start">{pictures}</div></div>'
    )


def _table(original: onnx.ModelProto, result: onnx.ModelProto, report: Mapping[str, Any]) -> str:
    """Returns the table of operators, the most frequent first, and of the figures of the models."""
    before, after = count_operators(original), count_operators(result)
    names = sorted(before | after, key=lambda name: (-max(before[name], after[name]), name))
    rows = [(escape(name[:80]), str(before[name]), str(after[name])) for name in names[:_MOST_ROWS]]
    if rest := names[_MOST_ROWS:]:
        rows.append((f"{len(rest)} others", str(sum(before[name] for name in rest)), str(sum(after[name] for name in rest))))
    rows.append(("<b>all nodes</b>", str(before.total()), str(after.total())))
    old, new = report["cost"]["before"], report["cost"]["after"]
    rows.append(("kernel launches", f"{old['launches']:,}", f"{new['launches']:,}"))
    if old["seconds"] is not None:
        rows.append(("predicted time", f"{old['seconds'] * 1e3:.3g} ms", f"{new['seconds'] * 1e3:.3g} ms"))
    rows.append(("bytes of the file", f"{report['bytes']['before']:,}", f"{report['bytes']['after']:,}"))
    right = 'style="text-align:right"'
    body = "".join(f'<tr><td style="text-align:left">{name}</td><td {right}>{a}</td><td {right}>{b}</td></tr>' for name, a, b in rows)
    return f'<table><thead><tr><th style="text-align:left">operator</th><th>before</th><th>after</th></tr></thead><tbody>{body}</tbody></table>'
