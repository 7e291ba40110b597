# SPDX-License-Identifier: Apache-2.0
"""The family of flattened butterflies."""

from pydantic import Field

from flitlab.models.registry import register
from flitlab.models.topology.families.hyperx import hyperx_links
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.spec import TopologySpec


@register("topology", "flattened_butterfly")
class FlattenedButterfly(TopologySpec):
    """k-ary n-flat: the routers of each row of a k-ary n-fly butterfly merged into one.

    Routers are the words of n - 1 digits in base k; any two that differ in one digit only are linked. Each
    has k hosts.

    k**(n - 1) routers, numbered by the value of their word; degree (n - 1)(k - 1); k**n hosts; diameter
    n - 1. Valid: k and n from 2, up to 2 * 10**7 channels.

    Example: ``topology: {kind: flattened_butterfly, k: 5, n: 3}``

    Source: Kim, Dally and Abts, ISCA 2007, doi:10.1145/1250662.1250679.
    """

    k: int = Field(ge=2)
    n: int = Field(ge=2, le=64)

    def graph(self) -> Topology:
        routers, dims = self.k ** (self.n - 1), [self.k] * (self.n - 1)
        limit_size(routers * len(dims) * (self.k - 1), "n")
        topology = Topology.from_links(
            self.kind, routers, hyperx_links(dims, [1] * len(dims)), notes={"dims": dims}
        )  # fmt: skip
        return topology.with_hosts(self.k)
