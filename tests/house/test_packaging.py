"""Installed packages hold `extract/` and `rules/`.

This holds for the sdist, the wheel and an editable install.
"""

import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest

from eqsat.contributed import DOMAINS
from eqsat.shipped import RULES

pytest.importorskip("build", reason="needs the extra `dev`")

ROOT = Path(__file__).resolve().parents[2]
NOT_SOURCES = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a copy of the checkout, because building writes into it."""
    return shutil.copytree(ROOT, tmp_path_factory.mktemp("packaging") / "checkout", symlinks=True, ignore=NOT_SOURCES)


@pytest.fixture(scope="module")
def built(checkout: Path) -> tuple[Path, Path]:
    """Returns an sdist, and the wheel built from it."""
    subprocess.run([sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist"], cwd=checkout, check=True, capture_output=True)
    (sdist,), (wheel,) = (checkout / "dist").glob("*.tar.gz"), (checkout / "dist").glob("*.whl")
    return sdist, wheel


def expected_files() -> set[str]:
    """Returns every file of the package, by its name inside the package."""
    folders = {"eqsat": "eqsat", "extract": "eqsat/extract", "rules": "eqsat/rules"}
    return {
        f"{inside}/{path.relative_to(ROOT / folder)}"
        for folder, inside in folders.items()
        for path in (ROOT / folder).glob("**/*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def run_python(code: str, path: Path) -> str:
    """Returns the output of the code, with only `path` added to the installed packages.

    It runs in a folder from which the checkout cannot be imported.
    """
    return subprocess.run(
        [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {str(path)!r}); {code}"], cwd=path, check=True, capture_output=True, text=True
    ).stdout


LOCATE = "import eqsat.extract, importlib.resources as r; print(eqsat.extract.__file__); print((r.files('eqsat') / 'rules' / 'README.md').is_file())"


@pytest.mark.slow
def test_sdist_is_complete(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as archive:
        members = [member for member in archive.getmembers() if not member.isdir()]
    assert all(member.isfile() for member in members), "a link in an sdist breaks where links are not supported"
    names = {member.name.split("/", 1)[1] for member in members}
    assert (
        expected_files() | {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "tests/conftest.py", "tests/support/models.py", "docs/report.md"} <= names
    )


@pytest.mark.slow
def test_wheel_holds_the_package_and_nothing_else(built: tuple[Path, Path]) -> None:
    names = {name for name in zipfile.ZipFile(built[1]).namelist() if ".dist-info/" not in name}
    compiled = names - expected_files()
    assert names >= expected_files() and len(compiled) == 1 + len(DOMAINS) + len(list((RULES / "targets").iterdir()))
    assert all(fnmatch(name, "eqsat/compiled/rules-*.pickle") for name in compiled)


@pytest.mark.slow
def test_a_wheel_compiles_no_rules(built: tuple[Path, Path], tmp_path: Path) -> None:
    """A wheel uses its own compiled rules, even where no cache can be written."""
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(tmp_path), str(built[1])]
    subprocess.run(install, check=True, capture_output=True)
    code = "from eqsat.language import library; library.load = None; print(len(library.built_in().groups))"
    assert int(run_python(code, tmp_path)) > 20


@pytest.mark.slow
def test_wheel_imports(built: tuple[Path, Path], tmp_path: Path) -> None:
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(tmp_path), str(built[1])]
    subprocess.run(install, check=True, capture_output=True)
    location, rules = run_python(LOCATE, tmp_path).splitlines()
    assert Path(location) == tmp_path / "eqsat" / "extract" / "__init__.py"
    assert rules == "True"


@pytest.mark.slow
def test_editable_install_is_a_path_entry(checkout: Path, tmp_path: Path) -> None:
    """Type checkers follow a path entry, but no import hook."""
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", str(tmp_path)]
    subprocess.run([*install, "--editable", str(checkout)], check=True, capture_output=True)
    (entry,) = tmp_path.glob("*.pth")
    root = Path(entry.read_text(encoding="utf-8").strip())
    assert root.resolve() == checkout.resolve()
    location, rules = run_python(LOCATE, root).splitlines()
    assert Path(location).resolve() == (checkout / "extract" / "__init__.py").resolve()
    assert rules == "True"


@pytest.mark.slow
def test_a_checkout_without_symbolic_links_works(checkout: Path, tmp_path: Path) -> None:
    """If git cannot create links, it writes files that contain their targets."""
    for link in ("extract", "rules"):
        place = checkout / "eqsat" / link
        if place.is_symlink():
            place.unlink()
        else:
            shutil.rmtree(place)
        place.write_text(f"../{link}", encoding="utf-8")
    code = "import eqsat.extract; from eqsat.language.library import built_in; print(eqsat.extract.__file__, len(built_in().rules) > 100)"
    located, rules = run_python(code, checkout).split()
    assert Path(located).resolve() == (checkout / "extract" / "__init__.py").resolve()
    assert rules == "True"


def test_dependencies_have_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [requirement for extra in project["optional-dependencies"].values() for requirement in extra]
    unbounded = [requirement for requirement in project["dependencies"] + extras if ">=" not in requirement or "<" not in requirement]
    assert not unbounded
