# SPDX-License-Identifier: Apache-2.0
"""Lengths of the cables between switches."""

from typing import Any

from flitlab.models.layout.floor import cables_of, lengths, ordered_cabinets
from flitlab.models.layout.metric import LayoutSpec
from flitlab.models.layout.prices import is_optical
from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology


@register("metric", "cables")
class CablesMetric(LayoutSpec):
    """Cables between cabinets on a floor: number, length in metres, share of optical ones.

    m cabinets stand in q = ceil(sqrt(m)) rows of p = ceil(m / q), ``pitch: [0.6, 2.1]`` metres apart in a row and
    between rows. A cable inside a cabinet is ``intra_cabinet`` long (1 m), one between cabinets their Manhattan
    distance plus ``overhead`` (2 m). A bi-directional link is one cable, a uni-directional channel one of its own.
    Hosts stand in the cabinet of their switch; their cables count with ``hosts: true``.

    * ``switches_per_cabinet`` (1: the paper gives no number; a switch shares its cabinet with its hosts).
    * ``placement: order``: switches fill cabinets, and cabinets the rows, in the order of their numbers, every row
      from the same side. A torus is not folded: folding makes its longest cables shorter and the others longer,
      with the same total along each ring.
    * ``placement: optimised``: a local search from there, the same for the same ``seed``; ``gain`` is the part of the
      total length that it saves. It is no lower bound on what is possible.
    * ``reach``: longest electric cable; without it, a cable is optical where that is cheaper (from 6.86 m).
    * ``constants``: a YAML file or a mapping with other values of models/layout/constants.yaml; it need not name all.

    Gives number, mean, max, total, optical_share; gain if optimised.

    Example: ``metrics: [{kind: cables, switches_per_cabinet: 8}]``

    Source: UNI section IV-C; Besta and Hoefler, Slim Fly, SC 2014, for the rest.
    """

    def measure(self, topology: Topology) -> dict[str, Any]:
        if not topology.channels:
            return {"number": 0, "mean": None, "max": None, "total": 0.0, "optical_share": None}
        _, metres = self.cables(topology, self.cabinets(topology))
        values: dict[str, Any] = {
            "number": len(metres),
            "mean": float(metres.mean()),
            "max": float(metres.max()),
            "total": float(metres.sum()),
            "optical_share": float(is_optical(metres, self.effective_constants.cable).mean()),
        }
        if self.placement == "optimised":
            ends, floor = cables_of(topology).ends, self.effective_constants.floor
            ordered_total = lengths(ordered_cabinets(topology.switches, floor), ends, floor).sum()
            optimised_total = lengths(self.cabinets(topology), ends, floor).sum()
            values["gain"] = float(1 - optimised_total / ordered_total)
        return values
