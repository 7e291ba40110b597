# SPDX-License-Identifier: Apache-2.0
"""Common base of the maximum concurrent flows by any routing and over given paths."""

from collections.abc import Iterator, Mapping
from typing import Literal, cast

from flitlab.fluid.ceiling import Ceiling
from flitlab.fluid.context import Context
from flitlab.fluid.kinds.spec import Solved
from flitlab.models.instance import Instance


class Concurrent(Solved):
    """A maximum concurrent flow. per_flow: also the rates of flows, as in throughput models."""

    usual = True
    limit = True
    beside_background = True
    growth = 1.3

    per_flow: bool = False

    def provable_rows(self) -> Mapping[str, None]:
        """The rows that a saved certificate can prove: the row of the kind."""
        return {self.kind: None}

    def rows(self, instance: Instance, context: Context) -> Iterator[Ceiling]:
        """The row of theta, an interval, then those of the rates of flows with ``per_flow``."""
        from flitlab.fluid.sharing.rows import with_rates

        kind = cast(Literal["mcf", "mcf_paths"], self.kind)
        yield from with_rates(instance, context.flow(kind, self.method, self.gap), self.per_flow)
