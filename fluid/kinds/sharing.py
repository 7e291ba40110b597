# SPDX-License-Identifier: Apache-2.0
"""What the throughput models have in common, which give a rate to every flow by a rule."""

from typing import ClassVar, Literal

from flitlab.fluid.ceiling import PER_FLOW
from flitlab.fluid.kinds.spec import CeilingSpec
from flitlab.models.instance import Instance
from flitlab.models.rules.tables import VIA


class Sharing(CeilingSpec):
    """A throughput model over the paths of a routing: a rule, no bound."""

    unit = PER_FLOW
    routes: ClassVar[Literal["unused", "used", "needed"]] = "needed"

    def absent(self, instance: Instance) -> str:
        """Why there is no such ceiling of an instance, '' if there is: routes over every switch are too many paths."""
        routes, reason = instance.routes, super().absent(instance)
        if not reason and routes is not None and routes.form == VIA:
            return f"{routes.kind} routing has too many paths, over every intermediate switch"
        return reason
