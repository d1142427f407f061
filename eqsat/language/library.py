"""The library: rule files come in, the project's own and the caller's; the rules that a run is to use go out.

Promised: all errors of all files at once; a name that no rule or group has is an error.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eqsat.errors import InputError
from eqsat.language.cache import cached
from eqsat.language.compile import Compiled, compile_rule
from eqsat.language.errors import Problem, RuleErrors, nearest
from eqsat.language.parse import SIZE_LIMIT, decode, read
from eqsat.language.resolve import Resolved, duplicates, resolve
from eqsat.language.syntax import RuleFile

BUILT_IN = Path(__file__).resolve().parents[1] / "rules"

Source = str | Path  # a file, or (a string of more than one line) the text of one


@dataclass(frozen=True)
class Group:
    """One rule file: its name is that of the file without its ending."""

    file: RuleFile
    rules: tuple[Resolved, ...]

    @property
    def name(self) -> str:
        """What the group is called."""
        return self.file.name


@dataclass(frozen=True)
class Library:
    """Rules in groups, in the order of the files."""

    groups: tuple[Group, ...]
    made: dict[str, tuple[Compiled, ...]] = field(default_factory=dict[str, "tuple[Compiled, ...]"], compare=False, repr=False)
    """By rule, its directions once they were compiled; shared by all that is selected of one library."""

    @property
    def rules(self) -> tuple[Resolved, ...]:
        """All rules."""
        return tuple(rule for group in self.groups for rule in group.rules)

    def select(self, only: Sequence[str], skip: Sequence[str]) -> Library:
        """The rules and groups that `only` names (all, where it names none) but for those that `skip` names."""
        known = {group.name for group in self.groups} | {resolved.rule.name for resolved in self.rules}
        for name in (*only, *skip):
            if name not in known:
                raise InputError(f"there is no rule and no group '{name}'{nearest(name, known)}")

        def kept(group: Group, resolved: Resolved) -> bool:
            names = {group.name, resolved.rule.name}
            return (not only or bool(names & set(only))) and not names & set(skip)

        groups = (Group(group.file, tuple(rule for rule in group.rules if kept(group, rule))) for group in self.groups)
        return Library(tuple(group for group in groups if group.rules), self.made)

    def rule(self, name: str) -> Resolved:
        """The rule of that name."""
        for resolved in self.rules:
            if resolved.rule.name == name:
                return resolved
        raise InputError(f"there is no rule '{name}'{nearest(name, (resolved.rule.name for resolved in self.rules))}")

    @property
    def group_of(self) -> dict[str, str]:
        """By rule, the name of its group."""
        return {resolved.rule.name: group.name for group in self.groups for resolved in group.rules}

    @functools.cached_property
    def compiled(self) -> tuple[Compiled, ...]:
        """Every direction of every rule."""
        for resolved in self.rules:
            if resolved.rule.name not in self.made:
                self.made[resolved.rule.name] = compile_rule(resolved)
        return tuple(direction for resolved in self.rules for direction in self.made[resolved.rule.name])


def load(sources: Iterable[Source], base: Library | None = None) -> Library:
    """The rules of `base` and of files, or of texts; `RuleErrors` with all that is wrong in them."""
    waiting = list(sources)
    if base is not None and not waiting:
        return base
    problems: list[Problem] = []
    groups = [] if base is None else list(base.groups)
    for source in waiting:
        try:
            file, found = read(*_text(source))
            rules = resolve(file, found)
        except RuleErrors as error:
            problems += error.problems
            continue
        groups.append(Group(file, tuple(rules)))
    problems += duplicates(group.file for group in groups)
    if problems:
        raise RuleErrors(problems)
    return Library(tuple(groups), {} if base is None else dict(base.made))


def built_in() -> Library:
    """The project's own rules. Reading them is remembered between runs, by all that decides what it gives."""
    files = built_in_files()
    return cached("rules", [Path(__file__).parent, *files], lambda: load(files))


def built_in_files() -> list[Path]:
    """The project's own rule files."""
    return sorted(BUILT_IN.glob("*.rules"))


def rule_files(paths: Iterable[Path]) -> list[Path]:
    """The rule files that paths mean, each once: a folder means those in it."""
    found: dict[Path, Path] = {}
    for path in paths:
        inside = sorted(path.rglob("*.rules")) if path.is_dir() else [path]
        if not inside:
            raise InputError(f"{path}: no rule file (*.rules) lies there")
        for file in inside:
            found.setdefault(file.resolve(), file)
    return list(found.values())


def read_text(path: Path) -> str:
    """The text of a rule file; `InputError` where there is none. No more is read than a rule file may have."""
    try:
        with path.open("rb") as file:
            return decode(file.read(SIZE_LIMIT + 1), str(path))
    except OSError as error:
        raise InputError(f"{path}: can not read it: {error.strerror}") from None


def _text(source: Source) -> tuple[str, str]:
    """The text of a source, and the name by which messages call it."""
    if isinstance(source, str) and "\n" in source:
        return source, "rules"
    return read_text(Path(source)), str(source)
