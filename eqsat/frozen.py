"""Data classes that are quick to define: frozen ones, which no code may change, and mutable ones.

They compare and print by their fields, like a `dataclass`; frozen ones hash by them, too. The
dataclasses of the standard library compile up to six functions for each class, which took a seventh
of the time of a run on a small model. Here it is one, `__init__`, and only when the first object is
made: half of the classes make none in a run. Objects are made faster, too, because pyright alone
sees to it that nothing is set in a frozen one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

_Class = TypeVar("_Class")


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(made: type[_Class], /) -> type[_Class]: ...


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(*, slots: bool) -> Callable[[type[_Class]], type[_Class]]: ...


def frozen(made: type[_Class] | None = None, /, *, slots: bool = True) -> type[_Class] | Callable[[type[_Class]], type[_Class]]:
    """Makes a class frozen. One with cached properties needs `slots=False`.

    Methods that the class itself has stay.
    """
    return _decorator(made, slots, hashable=True)


@overload
@dataclass_transform(field_specifiers=(field,))
def mutable(made: type[_Class], /) -> type[_Class]: ...


@overload
@dataclass_transform(field_specifiers=(field,))
def mutable(*, slots: bool) -> Callable[[type[_Class]], type[_Class]]: ...


def mutable(made: type[_Class] | None = None, /, *, slots: bool = True) -> type[_Class] | Callable[[type[_Class]], type[_Class]]:
    """Makes a class like `frozen`, but its fields may be set, and so it has no hash."""
    return _decorator(made, slots, hashable=False)


def _decorator(made: type[_Class] | None, slots: bool, hashable: bool) -> Any:
    def define(written: type[_Class]) -> type[_Class]:
        own = vars(written)
        # A dataclass without a docstring gets its signature, which takes as long as all else.
        written.__doc__ = written.__doc__ or written.__name__
        defined = dataclass(init=False, eq=False, repr=False, slots=slots)(written)
        methods = {"__init__": _compiled_late(defined), **_methods(defined)}
        for name, method in methods.items():
            if name not in own:
                setattr(defined, name, method)
        if not hashable:
            defined.__hash__ = None  # pyright: ignore[reportAttributeAccessIssue]
        return defined

    return define if made is None else define(made)


def _compiled_late(made: type[Any]) -> Callable[..., None]:
    """Returns an `__init__` that the first call replaces by the one of a dataclass."""

    def first(self: object, *arguments: Any, **named: Any) -> None:
        made.__init__ = compiled = _compiled(made)
        compiled(self, *arguments, **named)

    return first


def _compiled(made: type[Any]) -> Callable[..., None]:
    """Compiles the `__init__` that a dataclass with these fields has."""
    parameters, lines, scope = ["self"], ["pass"], dict[str, Any]()
    for number, item in enumerate(fields(made)):
        default = f"_default{number}"
        value = item.name if item.init else default
        if item.default is not MISSING:
            scope[default] = item.default
        elif item.default_factory is not MISSING:
            scope[default] = item.default_factory
            value = f"{default}() if {value} is {default} else {value}"
        if item.init:
            parameters.append(f"{item.name}={default}" if default in scope else item.name)
        if item.init or default in scope:
            lines.append(f"self.{item.name} = {value}")
    if hasattr(made, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines), scope)
    return scope["__init__"]


def _methods(made: type[Any]) -> dict[str, Callable[..., Any]]:
    compared = _values([item.name for item in fields(made) if item.compare])
    shown = [item.name for item in fields(made) if item.repr]

    def equal(self: object, other: object) -> bool:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: object) -> int:
        return hash(compared(self))

    def text(self: object) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    return {"__eq__": equal, "__hash__": hashed, "__repr__": text}


def _values(names: list[str]) -> Callable[[object], tuple[Any, ...]]:
    """Returns the function that reads these attributes of an object."""
    if len(names) != 1:
        return attrgetter(*names) if names else lambda instance: ()
    read = attrgetter(names[0])
    return lambda instance: (read(instance),)
