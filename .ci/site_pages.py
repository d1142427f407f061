"""A hook of MkDocs: the site has the pages of docs/, and those documents that stand elsewhere.

In the repository, a link leads from file to file. On the site, a link to a document leads to its
page, and a link to any other file leads to the repository on the web; where its address is not
known, the link becomes plain text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ELSEWHERE = {"README.md": "index.md", "rules/README.md": "rules.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""The documents outside of docs/, and their pages."""

_BRANCH = "main"
_FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(r"\[([^\[\]]*)\]\(([^)\"#\s]+)(?:#[^)\s]*)?\)")
_LINK = re.compile(r'(\]\(|\b(?:src|srcset|href)=")([^)"#\s]+)')


def on_files(files: Any, config: Any) -> Any:
    """Adds the documents outside of docs/ to the pages."""
    from mkdocs.structure.files import File

    for document, page in ELSEWHERE.items():
        files.append(File.generated(config, page, content=for_site((ROOT / document).read_text(encoding="utf-8"), document, config["repo_url"] or "")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Mends the links of a page of docs/. The others are mended before."""
    own = page.file.src_uri
    return markdown if own in ELSEWHERE.values() else for_site(markdown, f"docs/{own}", config["repo_url"] or "")


def for_site(text: str, document: str, repository: str) -> str:
    """Returns a document with links that hold on the site. `document` is its path in the repository,
    and `repository` the address of that, or empty.

    Links to files that do not exist stay, so that the build complains of them.
    """

    def mended(found: re.Match[str]) -> str:
        return found[1] + _target(found[2], document, repository)

    def unlinked(found: re.Match[str]) -> str:
        return found[1] if _target(found[2], document, "").startswith("/") else found[0]

    def prose(part: str) -> str:
        return _LINK.sub(mended, part if repository else _NAMED.sub(unlinked, part))

    # Every second part is a block of code.
    parts = _FENCE.split(text)
    return "".join(part if number % 2 else prose(part) for number, part in enumerate(parts))


def _target(target: str, document: str, repository: str) -> str:
    if ":" in target:
        return target
    path = posixpath.normpath(posixpath.join(posixpath.dirname(document), target))
    if path in ELSEWHERE:
        return ELSEWHERE[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    place = ROOT / path
    return f"{repository}/{'tree' if place.is_dir() else 'blob'}/{_BRANCH}/{path}" if place.exists() else target
