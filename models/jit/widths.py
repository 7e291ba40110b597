# SPDX-License-Identifier: Apache-2.0
"""Integer widths and signs in compiled code: operations that Numba widens silently are rejected.

Records store many numbers in 32 unsigned bits. Numba widens the difference of two of them to 64 bits, so that a number
that wraps becomes negative, or huge, where NumPy or C would wrap. Where an unsigned and a signed number are
alternatives, Numba takes a float for both. This step of the pipeline runs after type inference, on every compiled
function, and names the line.
"""

import operator
from collections.abc import Iterator
from typing import Any, TypeAlias

from numba.core import errors, ir, types
from numba.core.compiler import StateDict
from numba.core.compiler_machinery import AnalysisPass, register_pass

TypeMap: TypeAlias = dict[str, Any]
"""The Numba type of each variable of a function, by name; its stubs lack what types have."""

_CHOICES = {min, max}
_INTEGER: Any = types.Integer  # whose stubs lack what an integer type has


class WidthError(errors.NumbaError):
    """An operation of compiled code whose result has another width or sign than its operands."""


@register_pass(mutates_CFG=False, analysis_only=True)
class CheckWidths(AnalysisPass):  # type: ignore[misc]
    """Reject differences of unsigned numbers that are not narrowed at once, and integers that become floats."""

    _name = "check_widths"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: StateDict) -> bool:
        """Raise :class:`WidthError` for the first error of a function with known types."""
        for message, location in width_faults(state.func_ir, state.typemap):
            raise WidthError(message, location)
        return False


def width_faults(function: ir.FunctionIR, typemap: TypeMap) -> Iterator[tuple[str, ir.Loc]]:
    """Yield (message, location) for each error.

    typemap: of the function.
    """
    statements = [statement for block in function.blocks.values() for statement in block.body]
    for statement in statements:
        if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr):
            target, value = statement.target.name, statement.value
            message = _fault(value, typemap, typemap[target])
            if not message and _is_short_difference(value, typemap) and not _is_narrowed(target, statements, typemap):
                operands = f"{typemap[value.lhs.name]} and {typemap[value.rhs.name]}"
                message = f"the difference of {operands} is {typemap[target]}: narrow it at once, or widen both before"
            if message:
                yield message, statement.loc


def _fault(value: ir.Expr, typemap: TypeMap, result: types.Type) -> str:
    """The error in the type of an expression, '' if there is none."""
    if value.op in ("binop", "inplace_binop") and value.fn not in (operator.truediv, operator.itruediv):
        return _real_of_integers(result, value.lhs, value.rhs, typemap=typemap)
    if value.op == "unary" and value.fn is operator.neg and _is_unsigned(typemap[value.value.name]):
        return f"the negative of {typemap[value.value.name]} is {result}: widen it before"
    if value.op == "phi":
        incoming = [var for var in value.incoming_values if isinstance(var, ir.Var)]
        return _real_of_integers(result, *incoming, typemap=typemap)
    if value.op == "call" and getattr(typemap[value.func.name], "typing_key", None) in _CHOICES:
        return _real_of_integers(result, *value.args, typemap=typemap)
    return ""


def _real_of_integers(result: types.Type, *variables: ir.Var, typemap: TypeMap) -> str:
    """The error of a float result of integers with different signs, '' if there is none."""
    operands = [typemap[var.name] for var in variables]
    if not operands or not isinstance(result, types.Float):
        return ""
    if not all(isinstance(operand, _INTEGER) for operand in operands):
        return ""
    return f"{' and '.join(sorted({str(operand) for operand in operands}))} become {result}: give both the same sign"


def _is_unsigned(kind: types.Type) -> bool:
    return bool(isinstance(kind, _INTEGER) and not kind.signed)


def _is_short_difference(value: ir.Expr, typemap: TypeMap) -> bool:
    """Whether an expression is the difference of unsigned numbers, one of them with fewer than 64 bits."""
    if value.op not in ("binop", "inplace_binop") or value.fn not in (operator.sub, operator.isub):
        return False
    left, right = typemap[value.lhs.name], typemap[value.rhs.name]
    return _is_unsigned(left) and _is_unsigned(right) and bool(min(left.bitwidth, right.bitwidth) < 64)


def _is_narrowed(name: str, statements: list[ir.Stmt], typemap: TypeMap) -> bool:
    """Whether a variable is only converted to, or stored in, 32 bits or fewer."""
    uses = sum(var.name == name for one in statements if not isinstance(one, ir.Del) for var in one.list_vars())
    narrowing = sum(used == name for one in statements for used in _into_narrow(one, typemap))
    return bool(uses - 1 == narrowing > 0)  # one use is its assignment


def _into_narrow(statement: ir.Stmt, typemap: TypeMap) -> Iterator[str]:
    """Yield the variables that a statement converts to, or stores in, 32 bits or fewer."""
    if isinstance(statement, (ir.SetItem, ir.StaticSetItem)):
        kind, stored = getattr(typemap[statement.target.name], "dtype", None), [statement.value]
    elif isinstance(statement, ir.SetAttr) and isinstance(typemap[statement.target.name], types.Record):
        kind, stored = typemap[statement.target.name].typeof(statement.attr), [statement.value]
    elif isinstance(statement, ir.Assign) and getattr(statement.value, "op", "") == "call":
        kind, stored = getattr(typemap[statement.value.func.name], "instance_type", None), statement.value.args
    else:
        return
    if isinstance(kind, _INTEGER) and kind.bitwidth <= 32:
        yield from (var.name for var in stored)
