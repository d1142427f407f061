"""The HTML document: the data of the page, its styles and its scripts in one file that needs no
network.

A text of the model can not leave its place. The data are JSON in which no character means anything
to HTML. A policy in the document lets the browser run the scripts of this package and no others:
they are named by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from eqsat.page.page_data import page_data
from eqsat.pipeline import Result
from eqsat.settings import Settings

ASSETS = Path(__file__).resolve().parent / "assets"
VENDORED = ASSETS / "vendor"
_SCRIPTS = ("graphs", "layout", "tree", "drawing", "details", "tables", "growth", "main")
_UNSAFE = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


def report_page(result: Result, settings: Settings, lines: Sequence[str]) -> str:
    """Returns the page for the result of a run with these settings. `lines` tell the run in words,
    each after its topic.
    """
    return document({**page_data(result, settings, lines), "libraries": _terms()}, Path(result.report["input"] or "model").name)


def libraries() -> list[dict[str, Any]]:
    """Returns the libraries of the page, as `vendored.toml` lists them."""
    return tomllib.loads((VENDORED / "vendored.toml").read_text(encoding="utf-8"))["library"]


def document(data: Mapping[str, Any], title: str) -> str:
    """Returns the document that shows this data, under this title."""
    style = _text(ASSETS / "page.css")
    scripts = {library["name"]: _vendored(library["file"]) for library in libraries()} | {name: _text(ASSETS / f"{name}.js") for name in _SCRIPTS}
    allowed = " ".join(map(_hash, scripts.values()))
    policy = f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; worker-src blob:; base-uri 'none'; form-action 'none'"
    return Template(_text(ASSETS / "page.html")).substitute(
        title=html.escape(f"{title} · eqsat"),
        policy=policy,
        style=style,
        data=json.dumps(data, separators=(",", ":")).translate(_UNSAFE),
        scripts="\n".join(f'<script id="script-{name}">{code}</script>' for name, code in scripts.items()),
    )


def _terms() -> list[dict[str, str]]:
    return [{**{key: one[key] for key in ("name", "version", "license")}, "text": _text(VENDORED / one["terms"])} for one in libraries()]


def _vendored(name: str) -> str:
    """Returns a library without the address of its source map, which a browser would look for."""
    return re.sub(r"^//# sourceMappingURL=.*$", "", _text(VENDORED / name), flags=re.MULTILINE)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
