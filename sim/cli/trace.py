# SPDX-License-Identifier: Apache-2.0
"""``simrun trace`` (ask): follow one packet of a configuration, tick by tick."""

import argparse
from collections.abc import Callable
from typing import cast

from flitlab.models.mappings import JsonObject
from flitlab.models.scenario import Scenario
from flitlab.models.switching.buffered import Buffered
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import host_names, switch_names
from flitlab.sim.cli.common import case_of, complain, print_json, print_table, say, study_of
from flitlab.sim.cli.options import add_configuration, add_json, add_point, natural
from flitlab.sim.config.case import Case
from flitlab.sim.engines.base import EngineMismatch, Run
from flitlab.sim.engines.start import start
from flitlab.sim.engines.trace import reject_unlisted, trace
from flitlab.sim.engines.trace.base import Event, PacketHistory, waiting, zero_load
from flitlab.sim.exit import ExitCode


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_configuration(parser)
    parser.add_argument(
        "--packet",
        metavar="ID",
        type=natural,
        help="sequence number x hosts + source host; without it, packet ids are listed",
    )
    add_point(parser)
    parser.add_argument("--from", dest="first", metavar="T", type=natural, default=0, help="first tick to show")
    parser.add_argument("--to", dest="last", metavar="T", type=natural, help="tick at which to end")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print the events of one packet, or without ``--packet`` the delivered packets."""
    study = study_of(options, experiment="load_sweep")
    case = None if study is None else case_of(study, options.scenario)
    if study is None or case is None or case.scenario is None:
        return ExitCode.BAD
    if options.packet is None and options.last is None:
        complain("--packet: is missing; --to T (and --from T) lists the packets that are delivered before tick T")
        return ExitCode.BAD
    if options.last is not None and options.last <= options.first:
        complain(f"--to {options.last}: must be above --from, {options.first}")
        return ExitCode.BAD
    load = case.load_grid[0] if options.load is None else options.load
    seed = case.seeds[0] if options.seed is None else options.seed
    head = {"name": study.name, "scenario": case.label, "load": load, "seed": seed, "engine": study.engine}
    show = _list if options.packet is None else _trace
    try:
        return show(case, head, options)
    except EngineMismatch as error:
        complain(str(error))
        return ExitCode.CHECK_FAILED
    except ValueError as error:
        complain(str(error))
        return ExitCode.BAD


def _scenario(case: Case) -> Scenario[Buffered]:
    """The scenario; modes without buffers are rejected elsewhere."""
    return cast("Scenario[Buffered]", case.scenario)


def _list(case: Case, head: JsonObject, options: argparse.Namespace) -> int:
    """The packets delivered in a range of ticks."""
    scenario = _scenario(case)
    reject_unlisted(scenario)
    scenario_and_load = scenario.at(head["load"])
    run: Run = start(head["engine"], *scenario_and_load, head["seed"], log=True)
    run.advance(options.last)
    run.snapshot()
    names, hosts = host_names(scenario.topology), scenario.topology.hosts
    log = run.log()
    columns = (column.tolist() for column in (log.identity, log.delivered, log.hops))
    packets = [
        {"packet": identity, "source": names.value(identity % hosts), "delivered": tick, "hops": hops}
        for identity, tick, hops in sorted(zip(*columns, strict=True), key=lambda packet: (packet[1], packet[0]))
        if tick >= options.first
    ]
    if options.json:
        print_json({**head, "from": options.first, "to": options.last, "packets": packets})
        return 0
    title = f"{_title(head)}: {len(packets)} packets delivered in ticks {options.first} .. {options.last - 1}"
    print_table(title, [(name, _cell(name)) for name in ("packet", "source", "delivered", "hops")], packets)
    return 0


def _cell(name: str) -> Callable[[JsonObject], str]:
    return lambda row: str(row[name])


def _trace(case: Case, head: JsonObject, options: argparse.Namespace) -> int:
    """The events of one packet."""
    life = _life(case, head, options)
    scenario = _scenario(case)
    events = [event for event in life.events(scenario.switching.header) if event.tick >= options.first]
    if options.json:
        plain_events = [_plain_event(event, scenario.topology) for event in events]
        print_json({**head, **_plain(life, scenario.topology), **_account(life, case), "events": plain_events})
        return 0
    topology, hosts = scenario.topology, host_names(scenario.topology)
    source, destination = (
        f"host {hosts.label(host)} (switch {switch_names(topology).label(switch[host])})"
        for host, switch in ((life.source, topology.host_switch), (life.destination, topology.ejection_switch))
    )
    flits = f"{life.flits} flit{'s' * (life.flits > 1)}"
    say(_title(head))
    say(f"packet {life.identity}: {flits} from {source} to {destination}")
    columns = [
        ("tick", lambda event: str(event.tick)),
        ("age", lambda event: str(event.tick - life.created)),
        ("event", lambda event: _sentence(event, life, scenario.topology)),
        ("waited", lambda event: str(event.waited) if event.waited else ""),
    ]
    print_table("", columns, events)
    say("")
    _print_account(life, case)
    return 0


def _life(case: Case, head: JsonObject, options: argparse.Namespace) -> PacketHistory:
    """The packet in the chosen engine; both engines must agree."""
    names = ("compiled", "reference") if head["engine"] == "both" else (head["engine"],)
    scenario_and_load = _scenario(case).at(head["load"])
    lives = [trace(name, *scenario_and_load, head["seed"], options.packet, options.last) for name in names]
    header = _scenario(case).switching.header
    if lives[0] != lives[-1]:
        ours, theirs = (life.events(header) for life in lives)
        first = next((i for i, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), -1)
        raise EngineMismatch(f"engines differ on packet {options.packet}: {ours[first]}, reference {theirs[first]}")
    return lives[0]


def _title(head: JsonObject) -> str:
    return f"{head['scenario']}, load {head['load']:g}, seed {head['seed']}, engine {head['engine']}"


def _sentence(event: Event, life: PacketHistory, topology: Topology) -> str:
    """An event in words."""
    switches, hosts = switch_names(topology), host_names(topology)
    switch = "" if event.switch is None else f"switch {switches.label(event.switch)}"
    host = "" if event.host is None else f"host {hosts.label(event.host)}"
    on = "" if event.vc is None else f" on VC {event.vc}"
    by_channel = "" if event.channel is None else f" by channel {event.channel}"
    to = (
        f"host {hosts.label(life.destination)}"
        if event.to is None
        else f"switch {switches.label(event.to)}{by_channel}{on}"
    )
    if event.event == "arrived":
        by = (
            f" from switch {switches.label(topology.src[event.channel])}{by_channel}"
            if event.channel is not None
            else ""
        )
        return f"head arrives at {switch}{by}{on}"
    return {
        "created": f"created at {host}",
        "sent": f"leaves the source queue of {host}{on}",
        "eligible": f"may be granted at {switch}",
        "allocated": f"gets a VC at {switch} towards {to}",
        "granted": f"granted: {switch} -> {to}",
        "deflected": f"deflected: {switch} -> {to}",
        "tail": f"tail leaves {switch}",
        "delivered": f"tail delivered to {host}",
    }[event.event]


def _plain(life: PacketHistory, topology: Topology) -> JsonObject:
    names = host_names(topology)
    latency = None if life.delivered is None else life.delivered - life.created
    return {
        "packet": life.identity, "source": names.value(life.source), "destination": names.value(life.destination),
        "flits": life.flits,
        "created": life.created, "sent": life.sent, "delivered": life.delivered, "latency": latency,
        "hops": life.hops, "deadlocked": life.deadlocked,
    }  # fmt: skip


def _plain_event(event: Event, topology: Topology) -> JsonObject:
    """The non-empty fields of an event, with names of switches and hosts."""
    known = {key: value for key, value in event._asdict().items() if value is not None}
    names = {"host": host_names(topology), "switch": switch_names(topology), "to": switch_names(topology)}
    return {key: names[key].value(value) if key in names else value for key, value in known.items()}


def _account(life: PacketHistory, case: Case) -> JsonObject:
    """The ticks of a delivered packet, by cause."""
    if life.delivered is None or case.scenario is None:
        return {"zero_load": None, "waiting": None}
    form = zero_load(life, _scenario(case))
    return {
        "zero_load": {"latency": sum(form), **form._asdict()},
        "waiting": waiting(life, _scenario(case))._asdict(),
    }


_WAITING = {
    "source": "in the source queue",
    "behind": "behind other packets in its VCs",
    "output": "for outputs, VCs and credits",
    "tail": "for flits that fell behind",
}


def _print_account(life: PacketHistory, case: Case) -> None:
    if life.delivered is None:
        why = "the network is deadlocked" if life.deadlocked else "--to T follows it further"
        say(f"not delivered before tick {life.until}; {why}")
        return
    account = _account(life, case)
    form, spent = account["zero_load"], account["waiting"]
    parts = ", ".join(f"{name} {form[name]}" for name in ("injection", "header", "switch", "links", "ejection"))
    say(f"latency {life.delivered - life.created} ticks over {life.hops} hops")
    say(f"  {form['latency']} in an empty network: {parts}, flits behind the head {form['flits']}")
    total = sum(spent.values())
    where = ", ".join(f"{ticks} {_WAITING[name]}" for name, ticks in spent.items() if ticks)
    say(f"  {total} waiting" + (f": {where}" if where else ""))
