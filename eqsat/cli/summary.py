"""The report of a run, or a verdict, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

INDENT = 8
"""The place at which a line says more about its topic."""
_NAMES = 8  # of rules that the terminal shows


def summary(report: Mapping[str, Any]) -> list[str]:
    """The report of a run for a person, one fact a line, the nodes first."""
    nodes, size, cost = report["nodes"], report["bytes"], report["cost"]
    before, after = cost["before"], cost["after"]
    lines = [f"nodes   {nodes['before']} -> {nodes['after']}", f"kernels {before['launches']} -> {after['launches']}"]
    if before["seconds"] is not None:
        lines.append(f"moved   {scaled(before['bytes'])}B -> {scaled(after['bytes'])}B")
        if before["multiply_adds"] or after["multiply_adds"]:
            lines.append(f"macs    {scaled(before['multiply_adds']).strip()} -> {scaled(after['multiply_adds']).strip()} multiply-adds")
        lines.append(f"time    {scaled(before['seconds'])}s -> {scaled(after['seconds'])}s, predicted for {cost['target']}")
    if before["memory"] is not None:
        lines.append(f"memory  {scaled(before['memory'])}B -> {scaled(after['memory'])}B at the peak")
    lines.append(f"file    {size['before']} -> {size['after']} bytes")
    if report["engine"]["order"] is not None:
        lines.append(f"engine  {report['engine']['name']}, rules in the order {report['engine']['order']}")
    if fired := _fired(report["rules"]):
        lines.append(f"rules   {fired}")
    if report["tune"]:
        lines.append(f"tune    {_tuned(report['tune'])}")
    lines += [f"verify  {verification(report['verify'])}", f"took    {report['seconds']['total']:.2f} s"]
    if report["finite"]:
        lines.append(f"finite  {_some(report['finite'])}: NaN or infinity may spread; --strict does without")
    if report["limits"]["hit"]:
        lines.append(f"limit   {_limited(report['limits']['hit'])}")
    lines += [f"note    {note}" for note in report["notes"]]
    if report["output"]:
        lines.append(f"wrote   {report['output']}")
    return lines


_REMEDIES = {
    "time": "a longer --time-limit",
    "nodes": "a larger --node-limit",
    "memory": "a larger --memory-limit",
    "extract time": "a longer --extract-time",
    "rounds": "a higher --effort",
    "growth": "a higher --effort",
}


def _limited(limit: str) -> str:
    """A limit that ended the run, and the option that lifts it."""
    remedy = _REMEDIES.get(limit)
    return f"{limit}: the result is valid; " + (f"{remedy} might find more" if remedy else "more might have been found")


def details(report: Mapping[str, Any]) -> list[str]:
    """A line for each rule, the slowest first, then one for each step of the saturation."""
    lines = ["", "rule                                matches  seconds"]
    for rule in sorted(report["rules"], key=lambda rule: (-rule["seconds"], rule["name"])):
        lines.append(f"{rule['name']:<34} {rule['matches']:>8} {rule['seconds']:>8.3f}")
    lines += ["", "graph phase        step         e-nodes  classes  seconds"]
    for step in report["saturation"]["steps"]:
        lines.append(f"{step['graph']:>5} {step['phase']:<12} {step['step']:<10} {step['nodes']:>9} {step['classes']:>8} {step['seconds']:>8.3f}")
    return lines


def _fired(rules: Sequence[Mapping[str, Any]]) -> str:
    """The rules that fired and are not known to be useless, those with most matches first."""
    useful = [rule for rule in rules if rule["matches"] and rule["needed"] is not False]
    names = [rule["name"] for rule in sorted(useful, key=lambda rule: (-rule["matches"], rule["name"]))]
    return _some(names)


def _tuned(tune: Mapping[str, Any]) -> str:
    """The kept model, and its time in comparison with the original's."""
    rows = {row["name"]: row for row in tune["candidates"]}
    kept, original = rows[tune["kept"]], rows["original"]
    if kept["measured"] is None:
        return f"kept '{kept['name']}'; nothing was measured"
    different = sum(row["same"] is None and row["measured"] is not None for row in rows.values())
    return (
        f"kept '{kept['name']}' of {different} models: {scaled(kept['measured'])}s, the original {scaled(original['measured'])}s, "
        f"on {tune['threads']} thread in {tune['batches']} batches"
    )


def scaled(amount: float) -> str:
    """An amount with three digits and the prefix of its unit."""
    if not amount:
        return "0 "
    for prefix, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0), ("m", 1e-3)):
        if amount >= factor:
            return f"{amount / factor:.3g} {prefix}"
    return f"{amount / 1e-6:.3g} u"


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
