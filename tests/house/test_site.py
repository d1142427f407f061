"""The documentation site: it has every page, its links hold, and CI builds it strictly."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

yaml: Any = pytest.importorskip("yaml", reason="needs the extra `dev`")

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [*sorted((ROOT / "docs").glob("*.md")), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "rules/README.md"))]
REPOSITORY = "https://example.org/eqsat"


def hook() -> Any:
    """Returns the module that MkDocs loads as a hook."""
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / ".ci" / "site_pages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SITE = hook()


def configuration() -> dict[str, Any]:
    """Returns mkdocs.yml. Its values from the environment are their defaults."""

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!ENV", lambda loader, node: loader.construct_sequence(node)[-1])
    return yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader)


def pages(nav: list[dict[str, Any]]) -> Iterator[str]:
    for entry in nav:
        (target,) = entry.values()
        if isinstance(target, str):
            yield target
        else:
            yield from pages(target)


# --- the pages ---


def test_the_navigation_has_each_page_once() -> None:
    """A new page of docs/ needs a place in `nav` of mkdocs.yml."""
    expected = [path.name for path in (ROOT / "docs").glob("*.md")] + list(SITE.ELSEWHERE.values())
    assert sorted(pages(configuration()["nav"])) == sorted(expected)
    assert all((ROOT / document).is_file() for document in SITE.ELSEWHERE)
    assert all((ROOT / path.split(" ")[0]).is_file() for path in configuration()["hooks"])


@pytest.mark.parametrize(
    ("document", "text", "expected"),
    [
        ("README.md", "[a](docs/report.md#x) [b](rules/README.md#laws)", "[a](report.md#x) [b](rules.md#laws)"),
        ("README.md", '<img src="docs/a.svg"> ![b](docs/b.png)', '<img src="a.svg"> ![b](b.png)'),
        ("rules/README.md", "[a](algebra.rules) [b](../docs/tutorial.md)", f"[a]({REPOSITORY}/blob/main/rules/algebra.rules) [b](tutorial.md)"),
        ("docs/saturation.md", "[a](../rules/README.md) [b](../tests/checker/wrong)", f"[a](rules.md) [b]({REPOSITORY}/tree/main/tests/checker/wrong)"),
        ("docs/report.md", "[a](#here) [b](page.md) [c](https://onnx.ai)", "[a](#here) [b](page.md) [c](https://onnx.ai)"),
        ("docs/report.md", "[a](../nowhere.md)", "[a](../nowhere.md)"),
        ("README.md", "```sh\n[a](docs/report.md)\n```\n[a](docs/report.md)", "```sh\n[a](docs/report.md)\n```\n[a](report.md)"),
    ],
)
def test_links_are_mended_for_the_site(document: str, text: str, expected: str) -> None:
    assert SITE.for_site(text, document, REPOSITORY) == expected


@pytest.mark.parametrize(
    ("document", "text", "expected"),
    [
        ("rules/README.md", "[`a`](algebra.rules) [b](../docs/tutorial.md#x) [c](https://onnx.ai)", "`a` [b](tutorial.md#x) [c](https://onnx.ai)"),
        ("docs/saturation.md", "[a](../tests/checker/wrong), [b](../nowhere.md)", "a, [b](../nowhere.md)"),
    ],
)
def test_links_to_files_are_plain_text_where_the_repository_is_not_known(document: str, text: str, expected: str) -> None:
    assert SITE.for_site(text, document, "") == expected


def test_the_configuration_names_no_owner() -> None:
    assert configuration()["repo_url"] == ""


@pytest.mark.slow
def test_the_site_builds_strictly(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="needs the extra `docs`")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "REPOSITORY_URL": REPOSITORY}, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    index = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert f"{REPOSITORY}/blob/main/LICENSE" in index
    for name in re.findall(r'(?:src|srcset)="([^"/]+\.svg)"', index):
        assert (tmp_path / "site" / name).is_file()


# --- links in the repository ---


def without_code(path: Path) -> str:
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(path: Path) -> set[str]:
    """Returns the anchors that GitHub makes of a document's headings."""
    headings = re.findall(r"^#+ +(.*)$", without_code(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", [pytest.param(path, id=str(path.relative_to(ROOT))) for path in DOCUMENTS])
def test_links_lead_to_files_and_headings(path: Path) -> None:
    wrong: list[str] = []
    for target, anchor in re.findall(r'(?:\]\(|\b(?:src|srcset|href)=")([^)"#\s]*)(?:#([^)"\s]*))?', without_code(path)):
        if "://" in target or target.startswith("mailto:"):
            continue
        file = path.parent / target if target else path
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            wrong.append(f"{target}#{anchor}" if anchor else target)
    assert not wrong


# --- continuous integration ---


def test_ci_builds_the_site_strictly_and_publishes_main() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "site.yml").read_text(encoding="utf-8"))
    assert set(workflow[True]) == {"push", "pull_request"}, "YAML reads `on` as a truth value"
    steps = workflow["jobs"]["build"]["steps"]
    assert all(("uses" in step) != ("run" in step) for step in steps)
    (build,) = (step for step in steps if step.get("name") == "Build")
    assert "mkdocs build --strict" in build["run"] and "REPOSITORY_URL" in build["env"]
    (upload,) = (step for step in steps if "upload-pages-artifact" in step.get("uses", ""))
    assert f"--site-dir {upload['with']['path']}" in build["run"]
    publish = workflow["jobs"]["publish"]
    assert publish["needs"] == "build" and publish["if"] == "github.event_name == 'push'"


def test_ci_installs_the_extra_of_the_site() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "site.yml").read_text(encoding="utf-8"))
    (install,) = (step["run"] for step in workflow["jobs"]["build"]["steps"] if step.get("name") == "Install")
    (code,) = re.findall(r'^python -c "(.*)" >docs\.txt$', install, re.MULTILINE)
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert printed.split() == extras["docs"] and "-r docs.txt" in install
