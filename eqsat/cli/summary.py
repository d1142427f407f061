"""The report of a run, or a verdict, as lines for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from eqsat.parameters.amounts import scaled

INDENT = 8
"""The place at which a line says more about its topic."""
_NAMES = 8  # of rules that the terminal shows
_LACKING = 3  # rules for which the result lacks something that the terminal shows
_SIZES = 4  # that a prediction assumes and that the terminal shows
_LEFT = 3  # rules with unapplied matches that the terminal shows

LIFTED = ("opset", "domain", "growth")
"""The reasons against a rule that an option lifts."""
KINDS = {
    "cost": "dearer",
    "same cost": "of the same cost",
    "nothing new": "with nothing new",
    "kernel": "without a kernel",
    "not priced": "not priced",
    "original stays": "in a model that was no better",
    "not found": "with nothing in the result's graphs",
}
"""By reason, what several rules have in common."""


def summary(report: Mapping[str, Any]) -> list[str]:
    """The report of a run for a person, one fact a line, the nodes first."""
    nodes, size, cost = report["nodes"], report["bytes"], report["cost"]
    before, after = cost["before"], cost["after"]
    lines = [f"nodes   {nodes['before']} -> {nodes['after']}", f"kernels {before['launches']} -> {after['launches']}"]
    if before["seconds"] is not None:
        lines.append(f"moved   {scaled(before['bytes'])}B -> {scaled(after['bytes'])}B")
        if before["multiply_adds"] or after["multiply_adds"]:
            lines.append(f"macs    {scaled(before['multiply_adds']).strip()} -> {scaled(after['multiply_adds']).strip()} multiply-adds")
        lines.append(f"time    {scaled(before['seconds'])}s -> {scaled(after['seconds'])}s, predicted for {cost['target']}{assumed(cost['sizes'])}")
    if before["memory"] is not None:
        lines.append(f"memory  {scaled(before['memory'])}B -> {scaled(after['memory'])}B at the peak")
    lines.append(f"file    {size['before']} -> {size['after']} bytes")
    if report["engine"]["order"] is not None:
        lines.append(f"engine  {report['engine']['name']}, rules in the order {report['engine']['order']}")
    if used := _used(report["rules"]):
        lines.append(f"rules   {used}")
    if unused := _unused(report["rules"]):
        lines.append(f"unused  {unused}")
    if report["tune"]:
        lines.append(f"tune    {_tuned(report['tune'])}")
    lines += [f"verify  {verification(report['verify'])}", f"took    {report['seconds']['total']:.2f} s"]
    if report["finite"]:
        lines.append(f"finite  {_some(report['finite'])}: NaN or infinity may spread; --strict does without")
    if report["limits"]["hit"]:
        lines.append(f"limit   {_limited(report['limits'])}")
    # The line `verify` has the reason of a result that is not verified.
    lines += [f"note    {note}" for note in report["notes"] if note != f"not verified: {report['verify']['reason']}"]
    if report["output"]:
        lines.append(f"wrote   {report['output']}")
    return lines


def assumed(sizes: Mapping[str, int]) -> str:
    """The sizes that a prediction assumes."""
    named = [f"{name}={size}" for name, size in list(sizes.items())[:_SIZES]]
    more = [f"{len(sizes) - _SIZES} more"] if len(sizes) > _SIZES else []
    return f" at {', '.join(named + more)}" if sizes else ""


def _limited(limits: Mapping[str, Any]) -> str:
    """A limit that ended the run, the option that lifts it, and what is known to be left."""
    option, hit = limits["option"], limits["hit"]
    text = f"{hit}: the result is valid; " + (f"{option} would go on" if option else "more might have been found")
    waiting = sorted(limits["waiting"].items(), key=lambda item: (-item[1], item[0]))
    if waiting:
        more = sum(count for _, count in waiting[_LEFT:])
        matches = [f"{count} of {name}" for name, count in waiting[:_LEFT]] + ([f"{more} of other rules"] if more else [])
        text += f"; matches not applied: {', '.join(matches)}"
    return text


def details(report: Mapping[str, Any]) -> list[str]:
    """A line for each rule, the slowest first, then one for each step of the saturation."""
    lines = ["", "rule                                matches  seconds  used"]
    for rule in sorted(report["rules"], key=lambda rule: (-rule["seconds"], rule["name"])):
        lines.append(f"{rule['name']:<34} {rule['matches']:>8} {rule['seconds']:>8.3f}  {_use(rule)}")
    lines += ["", "graph phase        step         e-nodes  classes  seconds"]
    for step in report["saturation"]["steps"]:
        lines.append(f"{step['graph']:>5} {step['phase']:<12} {step['step']:<10} {step['nodes']:>9} {step['classes']:>8} {step['seconds']:>8.3f}")
    return lines


def _use(rule: Mapping[str, Any]) -> str:
    """Whether the result uses a rule, or the reason why it does not."""
    if rule["unused"] is not None:
        return str(rule["unused"]["text"])
    return "dropped" if rule.get("dropped") else {True: "yes", False: "no", None: "not known"}[rule["used"]]


def _used(rules: Sequence[Mapping[str, Any]]) -> str:
    """The rules that the result uses and that are not known to be useless, those with most matches
    first.
    """
    useful = [rule for rule in rules if rule["matches"] and rule["used"] and rule["needed"] is not False]
    names = [rule["name"] for rule in sorted(useful, key=lambda rule: (-rule["matches"], rule["name"]))]
    return _some(names)


def _unused(rules: Sequence[Mapping[str, Any]]) -> str:
    """The rules that fired and are not used: the reasons of those that an option would allow, and
    how many others there are for each reason.
    """
    fired = [rule for rule in rules if rule["matches"] and not rule["used"]]
    kinds = {rule["name"]: None if rule["unused"] is None else rule["unused"]["reason"] for rule in fired}
    lacking = [f"{rule['name']}: {rule['unused']['text']}" for rule in fired if kinds[rule["name"]] in LIFTED]
    others = Counter(kind for kind in kinds.values() if kind not in LIFTED)
    unknown = others.pop(None, 0)
    counts = [f"{count} {KINDS[kind]}" for kind, count in others.most_common() if kind]
    if unknown:
        counts.append(f"{unknown} {'more ' if lacking or counts else ''}fired: --reasons tells why")
    return "; ".join([*lacking[:_LACKING], *counts])


def _tuned(tune: Mapping[str, Any]) -> str:
    """The kept model, and its time in comparison with the original's."""
    rows = {row["name"]: row for row in tune["candidates"]}
    kept, original = rows[tune["kept"]], rows["original"]
    if kept["measured"] is None:
        return f"kept '{kept['name']}'; nothing was measured"
    different = sum(row["same"] is None and row["measured"] is not None for row in rows.values())
    if different == 1:
        return f"kept '{kept['name']}'; all models are the original, so none is faster"
    return (
        f"kept '{kept['name']}' of {different} models: {scaled(kept['measured'])}s, the original {scaled(original['measured'])}s, "
        f"on {tune['threads']} thread in {tune['batches']} batches"
    )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(names[:_NAMES]) + more


def verification(verdict: Mapping[str, Any]) -> str:
    """The verdict in one line."""
    status = verdict["status"]
    if status != "equal":
        return f"{status}: {verdict.get('reason') or 'no reason given'}" if status != "skipped" else "skipped"
    outputs = verdict.get("outputs", [])
    bitwise = all(output.get("bitwise", True) for output in outputs)
    idle = [output["name"] for output in outputs if output.get("exercised") is False]
    text = "equal, bit by bit" if bitwise else f"equal up to float rounding (largest error {verdict.get('max_error')})"
    if not verdict.get("runs"):
        text = "equal: the changes are correct without a run"
    elif verdict.get("regions") is not None:
        text += f", in {verdict['regions']} regions that changed"
    return text + (f"; not exercised: {', '.join(idle)}" if idle else "")
