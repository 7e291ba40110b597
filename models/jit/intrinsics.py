# SPDX-License-Identifier: Apache-2.0
"""Names of the types in the signatures of intrinsics: functions that write the LLVM code of an operation.

Numba calls an intrinsic with the types of the operation's arguments.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from llvmlite.ir import IRBuilder, Value
from numba.core.base import BaseContext
from numba.core.typing import Context, Signature

__all__ = ["BaseContext", "Codegen", "Context", "IRBuilder", "Intrinsic", "Signature", "Value", "Values"]

Values: TypeAlias = Sequence[Value]
"""LLVM values, such as those of the arguments."""

Codegen: TypeAlias = Callable[[BaseContext, IRBuilder, Signature, Values], Value]
"""Writes the code of an operation with an LLVM builder, and returns the value of its result."""

Intrinsic: TypeAlias = tuple[Signature, Codegen]
"""What an intrinsic returns: the signature of the operation, and what writes its code."""
