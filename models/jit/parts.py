# SPDX-License-Identifier: Apache-2.0
"""How Numba is told to optimise a function together with all that it calls, once, and to emit code for it alone.

Numba optimises every function by itself, makes machine code of it, and optimises it again in each function that calls
it. Machine code of a function that only compiled code calls is never run. So here such a function is a *part*: it is
typed and lowered, and stays as it is until a *whole*, a function that Python calls, is made of all its parts. For that
a step of Numba's pipeline is replaced, with classes that Numba does not promise to keep: this module is for the
version of Numba with which it was tried (``TRIED`` in :mod:`flitlab.models.jit`).
"""

from typing import Any

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


class _Part(JITCodeLibrary):  # type: ignore[misc]
    """The code of a part: it is linked into others, and neither optimised nor made into machine code."""

    def finalize(self) -> None:
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True


class _Kernel(JITCodeLibrary):  # type: ignore[misc]
    """The code of a whole that allocates nothing: optimised in one go, as it holds no counts of references."""

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerPart(NativeLowering):  # type: ignore[misc]
    """Lowering to code that stays as it is, under a name by which callers find it."""

    _name = "lower_part"

    def run_pass(self, state: Any) -> bool:
        state.library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        name = lowered.fndesc.qualname.split(".")[-1]
        key = _dynfunc.make_function(lowered.fndesc.lookup_module(), name, "", 0, lowered.env, (state.library,))
        state.targetctx.insert_user_function(key, lowered.fndesc, [state.library])
        state["cr"] = _LowerResult(lowered.fndesc, lowered.call_helper, cfunc=key, env=lowered.env)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerKernel(NativeLowering):  # type: ignore[misc]
    """Lowering to code that is optimised in one go."""

    _name = "lower_kernel"

    def run_pass(self, state: Any) -> bool:
        state.library = _Kernel(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


class _Compiler(CompilerBase):  # type: ignore[misc]
    """Numba's pipeline, with another step for lowering."""

    lowering: type[NativeLowering]

    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.add_pass_after(self.lowering, NativeLowering)
        pipeline.passes = [(step, why) for step, why in pipeline.passes if step is not NativeLowering]
        pipeline.finalize()
        return [pipeline]


class PartCompiler(_Compiler):
    """The pipeline for a part."""

    lowering = _LowerPart


class KernelCompiler(_Compiler):
    """The pipeline for a whole that allocates nothing."""

    lowering = _LowerKernel
