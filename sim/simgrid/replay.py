# SPDX-License-Identifier: Apache-2.0
"""Runs a program in SimGrid: ``python3 replay.py PLAN TIMES``, both JSON files.

The script runs in any Python that has SimGrid's module (Debian: python3-simgrid, for the system's Python), which may
lack flitlab: it imports nothing else. PLAN is the result of :func:`flitlab.sim.simgrid.compare.plan_of`; TIMES holds
``finish``, the completion time of each operation, in seconds.

One actor runs the whole program: it starts every communication between two hosts, and waits for the first one in flight
to end, or for the next event.
"""

import heapq
import json
import sys
from typing import Any

from simgrid import Actor, Comm, Engine, Host, LinkInRoute, NetZone, this_actor

SETTINGS = (
    "network/model:CM02", "network/latency-factor:1", "network/bandwidth-factor:1", "network/weight-S:0",
    "network/crosstraffic:0", "network/TCP-gamma:1e20", "surf/precision:1e-12",
)  # fmt: skip
"""Max-min fair sharing of links, without SimGrid's TCP model."""

CALC, SEND, RECV = 0, 1, 2
READY, BEGUN, QUEUED, ARRIVED, DONE = range(5)
REQUEST, CONSENT, DATA, DELIVERED = range(1, 5)

Plan = dict[str, Any]
"""Result of ``plan_of``, read from JSON."""


def platform(plan: Plan) -> None:
    """Create hosts, links, and one route for every pair of hosts that communicates."""
    zone = NetZone.create_full_zone("network")
    hosts = [zone.create_host(f"h{h}", "100Gf") for h in range(plan["hosts"])]
    links = [
        zone.create_link(f"l{number}", f"{bandwidth!r}Bps").set_latency(f"{latency!r}s").seal()
        for number, (bandwidth, latency) in enumerate(plan["links"])
    ]
    for source, target, route in plan["routes"]:
        ends = hosts[source].netpoint, hosts[target].netpoint
        zone.add_route(*ends, None, None, [LinkInRoute(links[number]) for number in route], False)
    zone.seal()


class Conductor:
    """The operations of all ranks; events are (time, operation, what) in a heap, messages are communications."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.hosts = [Host.by_name(f"h{h}") for h in range(plan["hosts"])]
        count = len(plan["kind"])
        self.needs = list(plan["need"])
        self.ready = [False] * count
        self.finish: list[float | None] = [None] * count
        self.stage, self.requested = [0] * count, [False] * count
        self.free: dict[tuple[int, int], float] = {}
        self.events = [(0.0, o, READY) for o in range(count) if self.needs[o] == 0]
        heapq.heapify(self.events)
        self.in_flight: list[Comm] = []
        self.transfers: list[tuple[int, float]] = []
        self.later = {(a, b): delay for (a, b, _), delay in zip(plan["routes"], plan["later"], strict=True)}

    def __call__(self) -> None:
        """Body of the only actor: process all events, in order of time and number."""
        while self.events or self.in_flight:
            now = Engine.clock
            while self.events and self.events[0][0] <= now:
                _, operation, what = heapq.heappop(self.events)
                self.handle(operation, what, now)
            self.wait(now)

    def wait(self, now: float) -> None:
        """Wait for the next event or the end of a communication, whichever comes first."""
        pause = self.events[0][0] - now if self.events else -1.0
        if not self.in_flight:
            if pause > 0:
                this_actor.sleep_until(self.events[0][0])
            return
        index = Comm.wait_any_for(self.in_flight, pause)
        if index < 0:
            return
        send, delay = self.transfers[index]
        self.schedule(Engine.clock + delay, send, ARRIVED)
        if self.stage[send] == DATA and not (self.plan["buffered"] or self.is_confirmed(send)):
            self.schedule(Engine.clock, send, DONE)
        for column in (self.in_flight, self.transfers):
            column[index] = column[-1]
            column.pop()

    def schedule(self, time: float, operation: int, what: int) -> None:
        """Schedule an event of an operation.

        Parameters
        ----------
        time : float
            Seconds.
        operation : int
            The operation.
        what : int
            Kind of event.
        """
        heapq.heappush(self.events, (time, operation, what))

    def handle(self, o: int, what: int, now: float) -> None:
        """Handle an event of an operation and its consequences (docs/applications.md, The model).

        Parameters
        ----------
        o : int
            The operation.
        what : int
            Kind of event.
        now : float
            Seconds.
        """
        plan = self.plan
        if what == READY:
            self.ready[o] = True
            if plan["kind"][o] != RECV:
                begin, end = self.occupy_processor(o, plan["hold"][o], now)
                self.schedule(begin, o, BEGUN)
                self.schedule(end, o, DONE if plan["kind"][o] == CALC else QUEUED)
                return
            self.release(o, 1, now)
            send = plan["partner"][o]
            if self.stage[send] == DELIVERED:
                self.begin_receive(o, now)
            elif self.requested[send]:
                self.transfer(send, CONSENT if plan["waits"][send] else DATA, now)
        elif what == BEGUN:
            self.release(o, 1, now)
        elif what == QUEUED:
            self.begin_send(o, now)
        elif what == ARRIVED:
            self.arrive(o, now)
        else:
            self.finish[o] = now
            self.release(o, 0, now)

    def begin_send(self, send: int, now: float) -> None:
        """Send a request or the message, or wait for the receive."""
        plan = self.plan
        if plan["waits"][send]:
            self.transfer(send, REQUEST, now)
            return
        if plan["await_receive"] and not self.ready[plan["partner"][send]]:
            self.requested[send] = True
        else:
            self.transfer(send, DATA, now)
        if plan["buffered"] or self.is_local(send):
            self.schedule(now, send, DONE)

    def arrive(self, send: int, now: float) -> None:
        """Handle the arrival of the message, the request or the consent of a send."""
        receive = self.plan["partner"][send]
        if self.stage[send] == REQUEST:
            self.requested[send] = True
            if self.ready[receive]:
                self.transfer(send, CONSENT, now)
        elif self.stage[send] == CONSENT:
            self.transfer(send, DATA, now)
        else:
            self.stage[send] = DELIVERED
            if self.is_confirmed(send):
                self.schedule(now, send, DONE)
            if self.ready[receive]:
                self.begin_receive(receive, now)

    def is_confirmed(self, send: int) -> bool:
        """Whether a send to another rank is done when its message has been delivered."""
        confirmed: bool = self.plan["waits"][send] or (self.plan["confirmed"] and not self.is_local(send))
        return confirmed

    def is_local(self, send: int) -> bool:
        """Whether a rank sends a message to itself."""
        local: bool = self.plan["rank"][send] == self.plan["rank"][self.plan["partner"][send]]
        return local

    def occupy_processor(self, o: int, hold: float, now: float) -> tuple[float, float]:
        """Reserve the processor of an operation.

        Parameters
        ----------
        o : int
            The operation.
        hold : float
            Seconds of work.
        now : float
            Seconds.

        Returns
        -------
        begin, end : float
            Seconds.
        """
        processor = self.plan["rank"][o], self.plan["cpu"][o]
        begin = max(now, self.free.get(processor, 0.0))
        self.free[processor] = begin + hold
        return begin, begin + hold

    def begin_receive(self, receive: int, now: float) -> None:
        """Occupy the processor of a receive that is ready and whose message has arrived."""
        self.schedule(self.occupy_processor(receive, self.plan["hold"][receive], now)[1], receive, DONE)

    def release(self, o: int, early: int, now: float) -> None:
        """Release the operations that depend on the start or the end of an operation.

        Parameters
        ----------
        o : int
            The operation.
        early : int
            1: its start; 0: its end.
        now : float
            Seconds.
        """
        for entry in self.plan["successor"][self.plan["after"][o] : self.plan["after"][o + 1]]:
            if entry % 2 == early:
                self.needs[entry // 2] -= 1
                if self.needs[entry // 2] == 0:
                    self.schedule(now, entry // 2, READY)

    def transfer(self, send: int, stage: int, now: float) -> None:
        """Send the message, the request or the consent of a send.

        Parameters
        ----------
        send : int
            The operation.
        stage : int
            DATA, REQUEST or CONSENT.
        now : float
            Seconds.
        """
        self.stage[send] = stage
        plan = self.plan
        if self.is_local(send):
            self.schedule(now + plan["tick"], send, ARRIVED)
            return
        ends = [plan["host"][plan["rank"][o]] for o in (send, plan["partner"][send])]
        source, target = reversed(ends) if stage == CONSENT else ends
        size = plan["size"][send] if stage == DATA else plan["empty"]
        self.in_flight.append(Comm.sendto_async(self.hosts[source], self.hosts[target], size))
        self.transfers.append((send, self.later[source, target]))


def main(plan_file: str, times_file: str) -> None:
    """Read a plan, run it, and write the completion time of each operation, in seconds."""
    engine = Engine(["replay", *(f"--cfg={setting}" for setting in SETTINGS), "--log=root.thres:error"])
    with open(plan_file, encoding="utf-8") as file:
        plan = json.load(file)
    platform(plan)
    conductor = Conductor(plan)
    Actor.create("conductor", conductor.hosts[0], conductor)
    engine.run()
    with open(times_file, "w", encoding="utf-8") as file:
        json.dump({"finish": conductor.finish}, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
