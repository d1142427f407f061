"""The command line of the rule language: `eqsat rules list|show|check|format|why`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eqsat.cli.options import add_settings, count, prints_help
from eqsat.cli.progress import shown_progress
from eqsat.cli.streams import source_of
from eqsat.errors import InputError

if TYPE_CHECKING:
    from eqsat.language.library import Library
    from eqsat.language.resolved import Resolved


_WHY = """Shows where a rule fires on a model, whether what it makes is chosen, and what stops it elsewhere.
The choice is made from one e-graph of each whole graph, with the default settings and without
verification, so a run of `eqsat optimize` may choose otherwise."""


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a number, 0 or more")
    return int(text)


def add_rules(commands: Any) -> None:
    """Adds `rules` and its actions to the commands of a parser."""
    rules = commands.add_parser("rules", help="list, show, check and format rewrite rules")
    rules.set_defaults(command=prints_help(rules))
    actions = rules.add_subparsers(title="actions", metavar="ACTION")

    listing = actions.add_parser("list", help="the rules, by group, each with its purpose")
    _add_sources(listing)
    listing.set_defaults(command=_list)

    show = actions.add_parser("show", help="one rule as text, or as the egglog program that runs")
    show.add_argument("name", metavar="NAME")
    show.add_argument("--egglog", action="store_true", help="what the rule compiles to")
    _add_sources(show)
    show.set_defaults(command=_show)

    check = actions.add_parser("check", help="compare both sides of rules on random instances")
    check.add_argument("paths", metavar="PATH", nargs="*", help="rule files, or folders of them (default: the built-in rules)")
    check.add_argument("--n", metavar="N", type=count, default=None, help="instances of each rule that must fire (default: 300)")
    check.add_argument("--seed", metavar="S", type=_seed, default=0, help="another seed draws other instances (default: 0)")
    check.add_argument("--save", metavar="DIR", help="where models that refute a rule are written (default: a new temporary folder)")
    check.add_argument("--json", action="store_true", help="print one JSON object")
    check.set_defaults(command=_check)

    layout = actions.add_parser("format", help="write rule files in the one layout")
    layout.add_argument("paths", metavar="PATH", nargs="+", help="rule files, or folders of them")
    layout.add_argument("--check", action="store_true", help="write nothing; exit with 2 where a file is laid out otherwise")
    layout.add_argument("--json", action="store_true", help="print one JSON object")
    layout.set_defaults(command=_format)

    why = actions.add_parser("why", help="where a rule fires on a model, and why it does not fire elsewhere", description=_WHY)
    why.add_argument("name", metavar="NAME", help="a rule, a family of rules, or a member of one")
    why.add_argument("model", metavar="MODEL", help="an ONNX file; - reads it from standard input")
    _add_sources(why)
    add_settings(why, ("no_empty_inputs",))
    why.set_defaults(command=_why)


def _add_sources(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rules", metavar="FILE.rules", action="append", default=[], help="the rules of this file as well (repeatable)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _library(options: argparse.Namespace) -> Library:
    from eqsat.language.library import load, whole_library

    return load(map(Path, options.rules), whole_library())


def _list(options: argparse.Namespace) -> int:
    from eqsat.language.results import is_family

    library = _library(options)
    if options.json:
        groups = [
            {
                "group": group.name,
                "about": " ".join(group.file.preamble),
                "rules": [
                    {
                        "name": rule.name,
                        "label": rule.label.value,
                        "both": rule.both,
                        "about": " ".join(rule.documentation),
                        "members": [entry.listed.name for entry in group.entries if is_family(rule) and entry.listed.family == rule.name],
                    }
                    for rule in group.file.rules
                ],
            }
            for group in library.groups
        ]
        print(json.dumps({"groups": groups}))
        return 0
    for group in library.groups:
        print(group.name + (f": {' '.join(group.file.preamble)}" if group.file.preamble else ""))
        for rule in group.file.rules:
            members = sum(entry.listed.family == rule.name for entry in group.entries)
            name = f"{rule.name} ({members} members)" if is_family(rule) else rule.name
            print(f"  {rule.label.value:6}  {name:32}  {' '.join(rule.documentation)}")
    return 0


def _show(options: argparse.Namespace) -> int:
    from eqsat.language.expansion import definitions_for
    from eqsat.language.printer import show, show_definition
    from eqsat.language.results import is_family

    library = _library(options)
    found = library.members(options.name)
    file, rule = library.written(options.name)
    members = [resolved.rule.name for resolved in found if is_family(rule)]
    if not options.egglog:
        # A member is shown with its operators filled in; a family and a rule are shown as written.
        text = "\n\n".join([*map(show_definition, definitions_for(rule, file)), show(rule)]) if rule.name == options.name else show(found[0].rule)
        record = {"name": options.name, "file": rule.file, "line": rule.place.line, "text": text, "members": members}
        print(json.dumps(record) if options.json else "\n".join([text, *([f"\nmembers: {', '.join(members)}"] if len(members) > 1 else [])]))
        return 0
    from eqsat.egraph.emit import rule_text
    from eqsat.language.compile import compile_rule

    programs = [rule_text(compiled) for resolved in found for compiled in compile_rule(resolved)]
    print(json.dumps({"name": options.name, "egglog": programs}) if options.json else "\n\n".join(programs))
    return 0


def _check(options: argparse.Namespace) -> int:
    from eqsat.checker.check import FIRED, check
    from eqsat.cli.verdicts import Counterexamples, Verdicts, record, standing_line
    from eqsat.language.library import load, rule_files, whole_library

    with shown_progress(options.json) as progress:
        progress("read the rules")
        library = load(rule_files(map(Path, options.paths))) if options.paths else whole_library()
        rules = library.rules
        if not rules:
            raise InputError(f"{' and '.join(options.paths)}: has no rule")
        shown = Verdicts(Counterexamples(options.save), not options.json)
        verdicts = check(rules, options.n or FIRED, options.seed, shown.add, lambda standing: progress(standing_line(standing)))
    shown.finish()
    wrong = sum(not verdict.passed for verdict in verdicts)
    if options.json:
        print(json.dumps({"passed": not wrong, "rules": [record(verdict, shown.files) for verdict in verdicts]}))
    else:
        print(f"{len(verdicts)} rules, {sum(verdict.fired for verdict in verdicts)} instances: " + (f"{wrong} did not pass" if wrong else "all passed"))
    return 2 if wrong else 0


def _format(options: argparse.Namespace) -> int:
    from eqsat.language.library import read_text, rule_files
    from eqsat.language.parse import parse
    from eqsat.language.printer import show_file
    from eqsat.language.problems import Problem, RuleErrors

    changed: dict[Path, str] = {}
    problems: list[Problem] = []
    for path in rule_files(map(Path, options.paths)):
        try:
            before = read_text(path)
            after = show_file(parse(before, str(path)))
        except RuleErrors as error:
            problems += error.problems
            continue
        if before != after:
            changed[path] = after
    if problems:
        raise RuleErrors(problems)
    for path, after in changed.items():
        if not options.check:
            _rewrite(path, after)
        if not options.json:
            print(path)
    if options.json:
        print(json.dumps({"changed": list(map(str, changed))}))
    return 2 if options.check and changed else 0


def _rewrite(path: Path, text: str) -> None:
    """Writes the text of a file, which keeps its old text if anything goes wrong. A link stays a
    link.
    """
    from eqsat.model.write import replacing

    try:
        with replacing(path.resolve()) as file:
            file.write(text.encode())
    except OSError as error:
        raise InputError(f"{path}: can not write it: {error.strerror}") from None


def _why(options: argparse.Namespace) -> int:
    from eqsat.why.why import why

    source = source_of(options.model)
    with shown_progress(options.json) as progress:
        progress("matching")
        library = _library(options)
        found = library.members(options.name)
        answers = [why(resolved, source, library, bool(options.no_empty_inputs)) for resolved in _present(found, source, library)]
    if options.json:
        records = [answer.to_json() for answer in answers]
        print(json.dumps(records[0] if len(found) == 1 else {"rule": options.name, "members": records}))
        return 0
    if not answers:
        print(f"rule {options.name}: the model has the operators of none of its {len(found)} members")
    for answer in answers:
        sys.stdout.write("".join(f"{line}\n" for line in answer.lines()))
    return 0


def _present(members: Sequence[Resolved], source: Any, library: Library) -> list[Resolved]:
    """The members of a family that may match: the model has those of their chosen operators that a
    direction looks for, and a node with as many outputs as the member has results. A rule that is
    no family is always returned.
    """
    if len(members) == 1:
        return list(members)
    from eqsat.why.why import contents_of

    operators, counts = contents_of(source)

    def looked_for(member: Resolved) -> bool:
        if member.rule.results is not None and member.rule.results not in counts:
            return False
        directions = library.entry(member.rule.name).directions
        return any(operators.issuperset(one.needs.operators.intersection(member.rule.operators)) for one in directions)

    return [member for member in members if looked_for(member)]
