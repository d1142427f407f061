"""The library: the rules that a run uses, from the project's own rule files and the caller's.

Loading reports all errors of all files at once. A name that no rule or group has is an error. What
reads the text of rules is imported with the first text: the stored rules of the project need none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from eqsat.contributed import DOMAINS
from eqsat.errors import InputError
from eqsat.frozen import frozen
from eqsat.language.cache import cached, ship
from eqsat.language.compile import Compiled, Direction, compile_rule
from eqsat.language.problems import Problem, RuleErrors, nearest
from eqsat.language.query import Needs
from eqsat.language.resolved import Resolved
from eqsat.language.syntax import Label, Rule, RuleFile
from eqsat.shipped import RULES, SELDOM

Source = str | Path  # a file, or (a string of more than one line) its text


class Entry:
    """A rule of the library, or a member of a family. The data for selection and listing is at
    hand; the rest is read on demand.
    """

    def __init__(self, listed: Listed, read: Callable[[], tuple[Resolved, tuple[Compiled, ...] | None]]) -> None:
        self.listed = listed
        self._read = read

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """Its own name and the name of its family."""
        return frozenset((self.listed.name, self.listed.family))

    @functools.cached_property
    def _parts(self) -> tuple[Resolved, tuple[Compiled, ...] | None]:
        return self._read()

    @property
    def resolved(self) -> Resolved:
        """The resolved rule."""
        return self._parts[0]

    @functools.cached_property
    def compiled(self) -> tuple[Compiled, ...]:
        """Its compiled directions."""
        return self._parts[1] or compile_rule(self.resolved)

    @functools.cached_property
    def directions(self) -> tuple[Direction, ...]:
        """Its directions, as a run lists them."""
        needs = self.listed.needs
        return self.compiled if needs is None else tuple(_Listed(self, number) for number in range(len(needs)))


@frozen
class Listed:
    """The entry of a rule in an index: for each direction, the needs of a match, if known already."""

    name: str
    family: str
    label: Label
    needs: tuple[Needs, ...] | None = None


@frozen
class _Listed:
    """A direction of a rule that may not have been read yet."""

    entry: Entry
    number: int

    @property
    def name(self) -> str:
        return self.entry.listed.name

    @property
    def needs(self) -> Needs:
        assert self.entry.listed.needs is not None
        return self.entry.listed.needs[self.number]

    @property
    def compiled(self) -> Compiled:
        return self.entry.compiled[self.number]


class Group:
    """One rule file; its name is the file name without the ending."""

    def __init__(self, name: str, entries: tuple[Entry, ...], read: Callable[[], RuleFile]) -> None:
        self.name = name
        self.entries = entries
        self._read = read

    @functools.cached_property
    def file(self) -> RuleFile:
        """The parsed file."""
        return self._read()

    @property
    def rules(self) -> tuple[Resolved, ...]:
        """The rules of the file that are in the library, with families as their members."""
        return tuple(entry.resolved for entry in self.entries)

    @classmethod
    def of(cls, file: RuleFile, rules: Iterable[Resolved]) -> Group:
        """The group of a file that was just read."""
        return cls(file.name, tuple(_entry(rule) for rule in rules), lambda: file)


def _entry(resolved: Resolved) -> Entry:
    rule = resolved.rule
    return Entry(Listed(rule.name, rule.family, rule.label), lambda: (resolved, None))


@frozen(slots=False)
class Library:
    """Rules in groups, in the order of the files."""

    groups: tuple[Group, ...]

    @property
    def entries(self) -> Iterator[Entry]:
        """All rules, families by their members."""
        return (entry for group in self.groups for entry in group.entries)

    @property
    def rules(self) -> tuple[Resolved, ...]:
        """All rules, families by their members."""
        return tuple(entry.resolved for entry in self.entries)

    def joined(self, others: Iterable[Library]) -> Library:
        """These rules and those of `others`, none of which has a name of another."""
        return Library((*self.groups, *(group for other in others for group in other.groups)))

    def select(self, only: Sequence[str], skip: Sequence[str]) -> Library:
        """The rules, families, members and groups that `only` names (all if it is empty), except
        those that `skip` names.
        """
        if not (only or skip):
            return self
        known = {group.name for group in self.groups} | {name for entry in self.entries for name in entry.names}
        for name in (*only, *skip):
            if name not in known:
                raise InputError(f"there is no rule and no group '{name}'{nearest(name, known)}")

        def kept(group: Group, entry: Entry) -> bool:
            names = entry.names | {group.name}
            return (not only or not names.isdisjoint(only)) and names.isdisjoint(skip)

        chosen = [(group, tuple(entry for entry in group.entries if kept(group, entry))) for group in self.groups]
        return Library(tuple(Group(group.name, entries, lambda group=group: group.file) for group, entries in chosen if entries))

    def entry(self, name: str) -> Entry:
        """The rule, or the member of a family, with this name."""
        if (entry := self._named.get(name)) is not None:
            return entry
        raise InputError(f"there is no rule '{name}'{nearest(name, {name for entry in self.entries for name in entry.names})}")

    def rule(self, name: str) -> Resolved:
        """The resolved rule, or member of a family, with this name."""
        return self.entry(name).resolved

    def members(self, name: str) -> tuple[Resolved, ...]:
        """The members of the family with this name, or the one rule with this name."""
        found = tuple(entry.resolved for entry in self.entries if name in entry.names)
        return found or (self.rule(name),)

    def written(self, name: str) -> tuple[RuleFile, Rule]:
        """The file, and the rule as written, with this name or with a member of this name."""
        family = name.partition("[")[0]
        return next((group.file, rule) for group in self.groups for rule in group.file.rules if rule.name == family)

    @functools.cached_property
    def _named(self) -> dict[str, Entry]:
        """The entries by name; the first of a name stands for it."""
        found: dict[str, Entry] = {}
        for entry in self.entries:
            found.setdefault(entry.listed.name, entry)
        return found

    @functools.cached_property
    def group_of(self) -> Mapping[str, str]:
        """The name of each rule's group, by rule."""
        return {entry.listed.name: group.name for group in self.groups for entry in group.entries}

    @functools.cached_property
    def directions(self) -> tuple[Direction, ...]:
        """Every direction of every rule, as a run lists them."""
        return tuple(direction for entry in self.entries for direction in entry.directions)

    @property
    def compiled(self) -> tuple[Compiled, ...]:
        """Every direction of every rule."""
        return tuple(direction for entry in self.entries for direction in entry.compiled)


def load(sources: Iterable[Source], base: Library | None = None) -> Library:
    """The rules of `base` and of files or texts. Raises `RuleErrors` with all of their problems."""
    waiting = list(sources)
    if base is not None and not waiting:
        return base

    from eqsat.language.parse import read
    from eqsat.language.resolve import duplicates, resolve

    problems: list[Problem] = []
    groups: list[Group] = []
    for source in waiting:
        try:
            file, found = read(*_text(source))
            rules = resolve(file, found)
        except RuleErrors as error:
            problems += error.problems
            continue
        groups.append(Group.of(file, rules))
    known = {entry.listed.family for entry in base.entries} if base is not None else frozenset[str]()
    problems += duplicates((group.file for group in groups), lambda name: base.written(name)[1] if base is not None and name in known else None)
    if problems:
        raise RuleErrors(problems)
    return Library((*(() if base is None else base.groups), *groups))


@functools.cache
def built_in() -> Library:
    """The project's own rules about the operators of the standard."""
    return _stored(built_in_files())


@functools.cache
def of_domain(domain: str) -> Library:
    """The project's own rules about the operators of a runtime's own domain."""
    return _stored([domain_file(domain)])


@functools.cache
def of_target(group: str) -> Library:
    """The project's own rules that pay on few targets."""
    return _stored([target_rule_file(group)])


@functools.lru_cache(maxsize=4)
def built_in_for(domains: frozenset[str], groups: frozenset[str]) -> Library:
    """The project's own rules, with those of these domains and the seldom groups of these names. Runs
    share what follows from the whole of them.
    """
    return built_in().joined((*map(of_domain, sorted(domains)), *map(of_target, sorted(groups))))


def _stored(files: Sequence[Path]) -> Library:
    """The rules of some of the project's own files. Parsed and compiled rules are cached between
    runs; the key covers everything that decides the result.
    """
    store = cached("rules", _sources(files), lambda: _made(load(files)))

    def group(name: str, number: int, listed: tuple[Listed, ...]) -> Group:
        entries = (Entry(one, functools.partial(store.part, number + place)) for place, one in enumerate(listed, 1))
        return Group(name, tuple(entries), functools.partial(store.part, number))

    return Library(tuple(group(*found) for found in store.index))


def ship_compiled(folder: Path) -> None:
    """Writes the compiled rules into the folder from which a wheel reads them."""
    for files in (built_in_files(), *([domain_file(domain)] for domain in DOMAINS), *([target_rule_file(group)] for group in SELDOM)):
        ship("rules", _sources(files), lambda files=files: _made(load(files)), folder)


def _sources(files: Sequence[Path]) -> list[Path]:
    """All files that decide the compiled form of the rules in `files`."""
    package = Path(__file__).parents[1]
    return [package, *(package / room for room in ("facts", "terms", "spelling", "language")), *files]


def _made(library: Library) -> tuple[object, Sequence[object]]:
    """The library as it is stored: the file of each group, followed by its rules."""
    index: list[tuple[str, int, tuple[Listed, ...]]] = []
    parts: list[object] = []
    for group in library.groups:
        listed = (replace(entry.listed, needs=tuple(one.needs for one in entry.compiled)) for entry in group.entries)
        index.append((group.name, len(parts), tuple(listed)))
        parts += [group.file, *((entry.resolved, entry.compiled) for entry in group.entries)]
    return index, parts


def built_in_files() -> list[Path]:
    """The project's own rule files."""
    return sorted(RULES.glob("*.rules"))


def domain_file(domain: str) -> Path:
    """The project's own rule file about the operators of a runtime's own domain."""
    return RULES / "domains" / f"{domain}.rules"


def target_rule_file(group: str) -> Path:
    """The project's own rule file of a group that pays on few targets."""
    return RULES / "targets" / f"{group}.rules"


def whole_library() -> Library:
    """All rules of the project, those about runtimes' own operators and for few targets included."""
    return built_in().joined((*map(of_domain, DOMAINS), *map(of_target, SELDOM)))


def rule_files(paths: Iterable[Path]) -> list[Path]:
    """The rule files at the paths, each once. A folder stands for the rule files in it."""
    found: dict[Path, Path] = {}
    for path in paths:
        inside = sorted(path.rglob("*.rules")) if path.is_dir() else [path]
        if not inside:
            raise InputError(f"{path}: no rule file (*.rules) lies there")
        for file in inside:
            found.setdefault(file.resolve(), file)
    return list(found.values())


def read_text(path: Path) -> str:
    """The text of a rule file. Raises `InputError` if there is none. Reads at most one byte more
    than the size limit of rule files.
    """
    from eqsat.language.parse import SIZE_LIMIT, decode

    try:
        with path.open("rb") as file:
            return decode(file.read(SIZE_LIMIT + 1), str(path))
    except OSError as error:
        raise InputError(f"{path}: can not read it: {error.strerror}") from None


def _text(source: Source) -> tuple[str, str]:
    """The text of a source, and its name in messages."""
    if isinstance(source, str) and "\n" in source:
        return source, "rules"
    path = Path(source)
    # Installations share compiled rules, so the name of a built-in file does not tell where the
    # package is installed.
    return read_text(path), f"rules/{path.relative_to(RULES).as_posix()}" if path.is_relative_to(RULES) else str(source)
