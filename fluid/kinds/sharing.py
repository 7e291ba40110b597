# SPDX-License-Identifier: Apache-2.0
"""Common base of the throughput models, which assign a rate to every flow by a rule."""

from typing import ClassVar, Literal

from flitlab.fluid.ceiling import PER_FLOW
from flitlab.fluid.kinds.spec import CeilingSpec
from flitlab.models.instance import Instance
from flitlab.models.rules.tables import VIA


class Sharing(CeilingSpec):
    """A throughput model over the paths of a routing: a rule, not a bound."""

    unit = PER_FLOW
    routes: ClassVar[Literal["unused", "used", "needed"]] = "needed"

    def absent(self, instance: Instance) -> str:
        """Why an instance has no such ceiling, '' if it has one: with any intermediate switch there are too many
        paths.
        """
        routes, reason = instance.routes, super().absent(instance)
        if not reason and routes is not None and routes.form == VIA:
            return f"{routes.kind} routing has too many paths, over every intermediate switch"
        return reason
