"""Every door through which values enter, found from the public lists.

    bf.__all__ and the lists of its packages  ->  from_*, load*, read_*   ->  doors
    bf.kernels.__all__                        ->  every kernel

What a parameter is given follows from its annotation, and what is valid from examples
by type. A new reader or kernel is fuzzed the day it is listed.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import blowfish_fast as bf

from .asked_doors import asked
from .examples import argument
from .kernel_arguments import kernel_arguments
from .ledger_doors import data_arguments, ledger_arguments, open_ledger, release_with
from .question_doors import QUESTIONS

BEGINNINGS = ("from_", "load", "read_")


class Door(NamedTuple):
    """A callable, its name, and how arguments for it are made."""

    name: str
    call: Callable[..., Any]
    arguments: Callable[[Any], tuple[list[Any], dict[str, Any]]]
    kernel: bool


def public_objects():
    """Yield everything that the package or one of its public packages lists."""
    for name in bf.__all__:
        value = getattr(bf, name)
        yield name, value
        if isinstance(value, types.ModuleType) and value is not bf.kernels:
            for inner in getattr(value, "__all__", ()):
                yield f"{name}.{inner}", getattr(value, inner)


def value_doors():
    """Return every public function and method that reads foreign values."""
    found = {}
    for name, value in public_objects():
        if inspect.isfunction(value) and value.__name__.startswith(BEGINNINGS):
            found[value] = (name, value)
        if not inspect.isclass(value):
            continue
        for member, _ in inspect.getmembers(value):
            method = getattr(value, member)
            reads = member.startswith(BEGINNINGS) and _is_ours(method)
            if reads and not inspect.isabstract(value):
                found[getattr(method, "__func__", method), value] = (
                    f"{name}.{member}",
                    method,
                )
    return [_door(name, call) for name, call in found.values()]


def _is_ours(method):
    """Whether a method is written in the package, not inherited from elsewhere."""
    home = getattr(inspect.unwrap(method), "__module__", None) or ""
    return callable(method) and home.partition(".")[0] == bf.__name__


def kernel_doors():
    """Return every public kernel."""
    return [
        Door(
            f"kernels.{name}",
            call := getattr(bf.kernels, name),
            lambda rng, call=call: kernel_arguments(rng, call),
            True,
        )
        for name in bf.kernels.__all__
    ]


def ledger_doors():
    """Return the file of a ledger, and its releases of every mechanism."""
    return [
        Door("Ledger, from a file", open_ledger, ledger_arguments, False),
        Door("Ledger.release of any data", release_with, data_arguments, False),
    ]


def question_doors():
    """Return what builds and answers questions, and what else is asked or set."""
    every = QUESTIONS | asked()
    return [Door(name, *parts, False) for name, parts in every.items()]


def all_doors():
    return value_doors() + ledger_doors() + question_doors() + kernel_doors()


def _door(name, call):
    parameters = []
    for one in inspect.signature(call).parameters.values():
        if one.kind is not one.VAR_POSITIONAL:
            parameters.append(one)

    def arguments(rng):
        given, named = [], {}
        left_out = rng.choice((0.6, 0.6, 1.0))
        for one in parameters:
            if one.default is not one.empty and rng.random() < left_out:
                if one.kind is not one.KEYWORD_ONLY:
                    break
                continue
            if one.kind is one.VAR_KEYWORD:
                words = ("one", "two", "three")[: rng.randrange(4)]
                named |= {word: argument(rng, name, one) for word in words}
                continue
            made = argument(rng, name, one)
            if one.kind is one.KEYWORD_ONLY:
                named[one.name] = made
            else:
                given.append(made)
        return given, named

    return Door(name, call, arguments, False)
