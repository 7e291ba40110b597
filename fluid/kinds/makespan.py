# SPDX-License-Identifier: Apache-2.0
"""Lower bounds on the time of a program."""

import math
from collections.abc import Iterator

from flitlab.fluid.ceiling import Ceiling
from flitlab.fluid.context import Context
from flitlab.fluid.kinds.spec import CeilingSpec
from flitlab.models.instance import Instance
from flitlab.models.registry import register


@register("ceiling", "makespan")
class Makespan(CeilingSpec):
    """Lower bounds on the time of a program, and of each kind of its steps, by any routing."""

    rank = 11
    label = "lower bound on the time"
    unit = "ns"
    minor = ("step ",)
    of_program = True

    def rows(self, instance: Instance, context: Context) -> Iterator[Ceiling]:
        """The row of the largest bound in ns, then one of each bound, then one of each kind of step of the program."""
        from flitlab.fluid.makespan import makespan_bounds
        from flitlab.fluid.problem import FluidError

        if context.program is None:
            raise FluidError("makespan bounds the time of a program, and there is none")
        bounds = makespan_bounds(context.program)
        names = {
            "": bounds.ticks, ":volume": bounds.volume, ":path": bounds.path, ":processor": bounds.processor,
            ":phases": bounds.phases,
        }  # fmt: skip
        names |= {f":step {step.kind.label}": step.ticks for step in bounds.steps}
        for name, ticks in names.items():
            note = "" if name else f"bound by the {bounds.binding}"
            ns = float(ticks * bounds.tick_ns)
            yield Ceiling(f"makespan{name}", None, ns, math.nan, "ns", "lower bound", 0.0, note)
