"""Rules as text: the one canonical layout of a syntax tree.

`parse` reads the text as the same tree, comments included, and printing that tree gives the same
text. The text has only the parentheses that the grammar needs, and nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eqsat.language import syntax
from eqsat.language.syntax import Expression
from eqsat.operators import full_name

WIDTH = 120  # a longer line is broken at its arrow, and between items

# The binding strength of expressions in the grammar, weakest first.
_CHOICE, _OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGN, _POWER, _PART, _ATOM = range(11)
# By operator, the level of the whole, and the least levels of its operands.
_BINARY = {
    **dict.fromkeys(("+", "-"), (_SUM, _SUM, _PRODUCT)),
    **dict.fromkeys(("*", "/", "//", "%"), (_PRODUCT, _PRODUCT, _SIGN)),
    "**": (_POWER, _PART, _SIGN),
}


def show_file(file: syntax.RuleFile) -> str:
    """The text of a file: preamble, definitions and rules, with an empty line between them."""
    texts = [*map(show_definition, file.definitions), *map(show, file.rules)]
    parts = [*([_comment(file.preamble)] if file.preamble else []), *(text + "\n" for text in texts)]
    return "\n".join(parts)


def show(rule: syntax.Rule) -> str:
    """The text of a rule, its documentation above it, without a line break at its end."""
    return "\n".join(
        [
            f"{_comment(rule.documentation)}{_ranges(rule.ranges)}{rule.label} rule {rule.name}:",
            _sides(rule),
            *(["    where " + "\n          ".join(_conditions(rule.conditions))] if rule.conditions else []),
            *([] if rule.exact_if is None else [f"    exact if {expression(rule.exact_if)}"]),
            *("    test " + ",\n         ".join(_filled((_given(given) for given in test.given), WIDTH - 10)) for test in rule.tests),
        ]
    )


def show_definition(definition: syntax.FileDefinition) -> str:
    """The text of a `def`, its documentation above it, without a line break at its end. Each part
    of a long condition has its own line.
    """
    head = f"{_comment(definition.documentation)}def {definition.name}({', '.join(name.name for name in definition.parameters)}) ="
    value = definition.value
    text = expression(value)
    if len(head) + len(text) >= WIDTH and isinstance(value, syntax.Logic):
        level = _OR if value.operator == "or" else _AND
        return f"{head}\n" + f" {value.operator}\n".join(f"    {_show(part, level + 1)}" for part in value.operands)
    return f"{head} {text}"


def _ranges(ranges: Iterable[syntax.Range]) -> str:
    """The line above a family."""
    found = [f"{shown_together(part.variables)} in {_show_sets(part.sets)}" for part in ranges]
    return f"for {', '.join(found)}:\n" if found else ""


def _show_sets(sets: Iterable[syntax.OperatorSet]) -> str:
    texts = [f"{'-' if part.removed else '+'} {'mirrored ' * part.mirrored}{part.name or _show_choices(part.choices)}" for part in sets]
    return " ".join(texts).removeprefix("+ ")


def _show_choices(choices: Iterable[Sequence[syntax.Name]]) -> str:
    return f"[{', '.join(shown_together([operator.name for operator in choice]) for choice in choices)}]"


def shown_together(names: Sequence[str]) -> str:
    """One name alone, or several in parentheses."""
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _comment(lines: Iterable[str]) -> str:
    return "".join(f"# {line}\n" if line else "#\n" for line in lines)


def _sides(rule: syntax.Rule) -> str:
    left, right = [_line(line) for line in rule.left], [_line(line) for line in rule.right]
    arrow = "<=>" if rule.both else "=>"
    short = f"    {left[0]} {arrow} {right[0]}"
    lone = not any(line.targets for line in (*rule.left, *rule.right))
    if lone and len(left) == len(right) == 1 and len(short) <= WIDTH:
        return short
    return "\n".join([*(f"    {line}" for line in left), f" {arrow} {right[0]}", *(f"    {line}" for line in right[1:])])


def _line(line: syntax.Line) -> str:
    return _defined(line.targets, line.value)


def _defined(targets: Sequence[str], value: Expression) -> str:
    return f"{', '.join(targets)} = {expression(value)}" if targets else expression(value)


def _conditions(conditions: Iterable[syntax.Condition]) -> list[str]:
    """The lines of `where`, one for each definition."""
    lines: list[str] = []
    together: list[str] = []
    for condition in conditions:
        if isinstance(condition, syntax.Definition):
            lines += [*_filled(together, WIDTH - 10), _defined(condition.targets, condition.value)]
            together = []
        else:
            together.append(_condition(condition))
    return lines + _filled(together, WIDTH - 10)


def _condition(condition: syntax.Judgement | syntax.Const | syntax.Guard) -> str:
    match condition:
        case syntax.Judgement(name, type):
            return f"{name}: {_type(type)}"
        case syntax.Const(name):
            return f"const {name}"
        case syntax.Guard(value):
            return expression(value)


def _filled(items: Iterable[str], width: int) -> list[str]:
    """The items with commas between them, on as few lines as the width allows."""
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + 2 + len(item) <= width:
            lines[-1] += f", {item}"
        else:
            lines.append(item)
    return lines


def _type(type: syntax.Type) -> str:
    return type.dtype if type.dims is None else f"{type.dtype}[{_list(type.dims)}]"


def _given(given: syntax.Given) -> str:
    if given.value is not None:
        return f"{given.name} = {expression(given.value)}"
    return " ".join([f"{given.name}:", *map(_type, given.types)])


# --- expressions ---


def expression(value: Expression) -> str:
    """The text of an expression or a term."""
    return _show(value, _CHOICE)


def _list(items: Iterable[Expression]) -> str:
    return ", ".join(map(expression, items))


def _show(value: Expression, least: int) -> str:
    """The text of a part, in parentheses if it binds weaker than `least`."""
    level, text = _text(value)
    return text if level >= least else f"({text})"


def _text(value: Expression) -> tuple[int, str]:
    match value:
        case syntax.Conditional(condition, yes, no):
            return _CHOICE, f"{_show(yes, _OR)} if {_show(condition, _OR)} else {_show(no, _CHOICE)}"
        case syntax.Logic(operator, operands):
            level = _OR if operator == "or" else _AND
            return level, f" {operator} ".join(_show(operand, level + 1) for operand in operands)
        case syntax.Unary("not", operand):
            return _NOT, f"not {_show(operand, _NOT)}"
        case syntax.Comparison(operands, operators):
            rest = (f" {operator} {_show(operand, _SUM)}" for operator, operand in zip(operators, operands[1:], strict=True))
            return _COMPARISON, _show(operands[0], _SUM) + "".join(rest)
        case syntax.Binary(operator, left, right):
            level, least_left, least_right = _BINARY[operator]
            return level, f"{_show(left, least_left)} {operator} {_show(right, least_right)}"
        case syntax.Unary(operator, operand):
            return _SIGN, f"{operator}{_show(operand, _SIGN)}"
        case syntax.Number(_, text):
            return _SIGN if text.startswith("-") else _ATOM, text
        case syntax.Index(source, index):
            return _PART, f"{_show(source, _PART)}[{expression(index)}]"
        case syntax.Slice(source, start, stop):
            ends = ["" if end is None else expression(end) for end in (start, stop)]
            return _PART, f"{_show(source, _PART)}[{':'.join(ends)}]"
        case _:
            return _ATOM, _atom(value)


def _atom(value: Expression) -> str:
    match value:
        case syntax.Name(name):
            return name
        case syntax.Wildcard():
            return "_"
        case syntax.Text(text):
            escaped = text.replace("\\", "\\\\").replace('"', '\\"')
            return f'"{escaped}"'
        case syntax.Items(items):
            return f"[{_list(items)}]"
        case syntax.Comprehension(item, target, source, conditions):
            tests = "".join(f" if {_show(condition, _OR)}" for condition in conditions)
            return f"[{expression(item)} for {target} in {_show(source, _OR)}{tests}]"
        case syntax.Call(function, arguments):
            return f"{function}({_list(arguments)})"
        case syntax.Constant(dtype, number):
            return f"{dtype}({expression(number)})"
        case syntax.Spread(item):
            return f"..{expression(item)}"
        case syntax.Near(number):
            return f"~{_show(number, _SIGN)}"
        case syntax.Maybe(name):
            return f"{name}?"
        case syntax.Mapped(item, targets, sources):
            return f"[{expression(item)} for {', '.join(targets)} in {', '.join(f'..{name}' for name in sources)}]"
        case syntax.Term():
            return _term(value)
        case _:
            raise AssertionError(value)


def _term(term: syntax.Term) -> str:
    operator = full_name(term.domain, term.operator)
    # The closing bracket `>` would read as a comparison, so attributes hold sums at most.
    attributes = [f"{attribute.name} = {_show(attribute.value, _SUM)}" for attribute in term.attributes]
    attributes += [] if term.carried is None else [f"..{term.carried}"]
    inputs = ", ".join("" if item is None else expression(item) for item in term.inputs)
    return f"{operator}<{', '.join(attributes)}>({inputs})" if attributes else f"{operator}({inputs})"
