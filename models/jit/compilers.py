# SPDX-License-Identifier: Apache-2.0
"""Numba compilers that optimise a function once, together with all that it calls.

Numba optimises every function by itself, emits machine code for it, and optimises it again in each caller. Machine code
of a function that only compiled code calls is never run. Here such a function is a *device function*: it is typed,
lowered and lightly optimised, and stays in that form until it is linked into an *entry point*, a function that Python
calls.

Functions pass the constants and the state of a run, named tuples of dozens of arrays, again and again. Numba unpacks a
tuple for every call, and reads all of it from the stack for every use, which took half of the compile time of a kernel.
So a named tuple is passed as a single value, and not stored on the stack first.

This replaces a step of Numba's pipeline, with classes that Numba does not promise to keep: the module is for the
version of Numba with which it was tested (``NUMBA_TESTED`` in :mod:`flitlab.models.jit`).
"""

from collections import Counter
from types import CodeType
from typing import ClassVar

from llvmlite.binding import ModuleRef
from llvmlite.ir import Type as LLVMType
from numba import _dynfunc
from numba.core import config, ir, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags, StateDict, _LowerResult
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.datamodel.models import TupleModel
from numba.core.datamodel.registry import register_default
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering, NopythonRewrites, NopythonTypeInference
from numba.core.untyped_passes import InlineClosureLikes

from flitlab.models.jit.intrinsics import IRBuilder, Value
from flitlab.models.jit.widths import CheckWidths


@register_default(types.NamedTuple)  # type: ignore[attr-defined]
class _NamedTuple(TupleModel):  # type: ignore[misc]
    """A named tuple, passed as one argument."""

    def get_argument_type(self) -> LLVMType:
        return self.get_value_type()

    def as_argument(self, builder: IRBuilder, value: Value) -> Value:
        return value

    def from_argument(self, builder: IRBuilder, value: Value) -> Value:
        return value


class _Lower(Lower):  # type: ignore[misc]
    """Lowering in which, without reference counts, an argument that is never reassigned needs no memory."""

    def _find_singly_assigned_variable(self) -> None:
        super()._find_singly_assigned_variable()
        if not self.context.enable_nrt:
            assigned = [assignment for block in self.blocks.values() for assignment in block.find_insts(ir.Assign)]
            names = Counter(assignment.target.name for assignment in assigned)
            arguments = {assignment.target.name for assignment in assigned if isinstance(assignment.value, ir.Arg)}
            self._singly_assigned_vars |= {name for name in arguments if names[name] == 1}


class _DeviceFunction(JITCodeLibrary):  # type: ignore[misc]
    """The code of a device function: lightly optimised, linked into callers, never compiled to machine code."""

    def _optimize_functions(self, ll_module: ModuleRef) -> None:
        ll_module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager(opt=min(1, config.OPT))
        for function in ll_module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def finalize(self) -> None:
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True


class _Kernel(JITCodeLibrary):  # type: ignore[misc]
    """The code of an entry point without allocations: optimised as a whole, as it has no reference counts."""

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class _Lowering(NativeLowering):  # type: ignore[misc]
    """A lowering step of the pipeline."""

    lowering_class = _Lower


@register_pass(mutates_CFG=True, analysis_only=False)
class _InlineClosures(InlineClosureLikes):  # type: ignore[misc]
    """Numba's inlining of local functions and comprehensions, in functions that have any.

    It computes the lifetimes of all variables twice.
    """

    _name = "inline_closures"

    def run_pass(self, state: StateDict) -> bool:
        has_closure = any(isinstance(constant, CodeType) for constant in state.func_id.code.co_consts)
        return bool(super().run_pass(state)) if has_closure else False


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerDeviceFunction(_Lowering):
    """Lowering to code that is kept for linking, under a name for its callers."""

    _name = "lower_part"

    def run_pass(self, state: StateDict) -> bool:
        state.library = _DeviceFunction(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        name = lowered.fndesc.qualname.split(".")[-1]
        key = _dynfunc.make_function(lowered.fndesc.lookup_module(), name, "", 0, lowered.env, (state.library,))
        state.targetctx.insert_user_function(key, lowered.fndesc, [state.library])
        state["cr"] = _LowerResult(lowered.fndesc, lowered.call_helper, cfunc=key, env=lowered.env)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerKernel(_Lowering):
    """Lowering to code that is optimised as a whole."""

    _name = "lower_kernel"

    def run_pass(self, state: StateDict) -> bool:
        state.library = _Kernel(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


class _SharedFlags(Flags):  # type: ignore[misc]
    """Flags that are not changed, and one object for the same values: compared and hashed as objects."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__


class _Flags(Flags):  # type: ignore[misc]
    """Flags: all copies with the same values are one object.

    Numba copies the flags for each function that it compiles, and looks up the types of operations under a key with
    that copy, dozens of times per operation. Numba's flags all have the same hash, and are compared value by value.
    """

    __slots__ = ()
    _shared: ClassVar[dict[str, _SharedFlags]] = {}

    def copy(self) -> _SharedFlags:
        return self._shared.setdefault(repr(self), _SharedFlags(self))


class EntryPointCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's pipeline with a check of widths, without steps that have no effect, optionally with another lowering."""

    lowering: type[NativeLowering] = NativeLowering

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(_Flags(value) if isinstance(value, Flags) else value for value in arguments))

    def define_pipelines(self) -> list[PassManager]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        replaced = {InlineClosureLikes: _InlineClosures, NativeLowering: self.lowering}
        omitted = () if self.state.flags.nrt else (NopythonRewrites,)  # it fuses expressions that allocate arrays
        pipeline.passes = [(replaced.get(step, step), why) for step, why in pipeline.passes if step not in omitted]
        pipeline.add_pass_after(CheckWidths, NopythonTypeInference)
        pipeline.finalize()
        return [pipeline]


class DeviceFunctionCompiler(EntryPointCompiler):
    """The pipeline of a device function."""

    lowering = _LowerDeviceFunction


class KernelCompiler(EntryPointCompiler):
    """The pipeline of an entry point without allocations."""

    lowering = _LowerKernel
