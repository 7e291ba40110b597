"""The demand of a recorded trace."""

from pathlib import Path

from flitlab.models.registry import SpecError, register
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.demand_file import end_of_pair, pair_matrix, read_lines
from flitlab.models.traffic.table import table_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficSpec


@register("traffic", "trace")
class Trace(TrafficSpec):
    """The demand matrix of a trace: a CSV of ``tick,src,dst`` or ``tick,src,dst,flits``, one line a message.

    T[i, j] is in proportion to the flits (1 a message unless given) from host i to host j over the whole trace.
    Only that matrix is used: a simulation draws arrivals at the load asked for, with destinations in the trace's
    proportions, and does not follow its ticks. ``notes`` has the number of messages and of ticks from first to last,
    and the load at which the pattern offers what the trace did on average.

    Example: ``traffic: {kind: trace, path: messages.csv}``
    """

    path: Path

    def demand(self, topology: Topology) -> Traffic:
        ticks, source, target, flits = [], [], [], []
        for where, row in read_lines(self.path, ("tick", "src", "dst", "flits"), optional=1):
            tick, amount = (self._whole(cell, where) for cell in (row[0], row[3] if len(row) > 3 else "1"))
            source.append(end_of_pair(row[1], topology.hosts, where))
            target.append(end_of_pair(row[2], topology.hosts, where))
            ticks.append(tick)
            flits.append(float(amount))
        if not sum(flits):
            raise SpecError("no message in it", key="path")
        demand = pair_matrix(source, target, flits, topology.hosts)
        span = max(ticks) - min(ticks) + 1
        busiest = float(max(demand.sum(axis=0).max(), demand.sum(axis=1).max()))
        notes = {"messages": len(ticks), "ticks": span, "mean_load": busiest / span}
        return table_traffic(self.kind, topology, demand, notes=notes)

    def _whole(self, cell: str, where: str) -> int:
        if not cell.strip().isdecimal():
            raise SpecError(f"{where}: {cell.strip()!r} is not a whole number, 0 or more", key="path")
        return int(cell)
