# SPDX-License-Identifier: Apache-2.0
"""The rate and the delay of links, in the keys that a mode computes with: of ``switching.link_gbps``, or of a file."""

from fractions import Fraction
from typing import Any

from flitlab.models.registry import SpecError
from flitlab.models.switching.switching_mode import SwitchingSpec
from flitlab.models.topology.file_delays import LINK_GBPS, stated_delays, with_stated_delays
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.text import ConfigDocument

OWN_KEYS = ("nic_mbps", "flit_ns")
"""Keys by which modes state the rate of a link: of packets of bytes, and of flits."""

DELAY_KEYS = ("link_us", "link_ns", "link_ticks")
"""Keys by which modes state the delay of a link."""


def with_link_rate(document: ConfigDocument, spec: SwitchingSpec, program_bytes: int) -> SwitchingSpec | None:
    """The keys of a switching mode, with ``nic_mbps`` or ``flit_ns`` by ``link_gbps``; None once rejected.

    Parameters
    ----------
    document: the configuration.
    spec: the keys as they are set.
    program_bytes: bytes of a flit of messages.
    """
    rate = spec.link_gbps
    if rate is None:
        return spec
    own = next((key for key in OWN_KEYS if key in type(spec).model_fields), None)
    if own is None:
        document.reject("switching.link_gbps", f"is not for mode {spec.mode}")
        return None
    if own in spec.model_fields_set and getattr(spec, own) is not None:
        document.reject(
            f"switching.{own}", f"states the rate of a link, as link_gbps does: give either link_gbps or {own}"
        )
        return None
    is_program = document.at("experiment") in ("application", "collective")
    size: Any = getattr(spec, "flit_bytes", None)
    if is_program and size is not None and size != program_bytes:
        document.reject("switching.flit_bytes", f"differs from messages.flit_bytes = {program_bytes}: leave it out")
        return None
    size = program_bytes if is_program else size
    if size is None and own == "flit_ns":
        problem = "needs switching.flit_bytes: by both follows flit_ns, the time of a flit"
        document.reject("switching.link_gbps", problem)
        return None
    return _at_rate(spec, own, rate, size)


def with_rate_of_file(spec: SwitchingSpec, topology: Topology, program_bytes: int | None) -> SwitchingSpec:
    """The keys of a switching mode, with the rate of links that the topology's file states if they state none.

    Parameters
    ----------
    spec: the keys.
    topology: its note ``link_gbps`` is the rate of a channel of capacity 1.
    program_bytes: bytes of a flit of messages; None if hosts run no program.
    """
    rate = topology.notes.get(LINK_GBPS)
    own = next((key for key in OWN_KEYS if key in type(spec).model_fields), None)
    if own is None or own in spec.model_fields_set or rate is None:
        return spec
    return _at_rate(spec, own, float(rate), program_bytes or getattr(spec, "flit_bytes", None))


def with_delays_of_file(
    document: ConfigDocument, spec: SwitchingSpec, topology: Topology, requested: str | None, simulates: bool
) -> tuple[SwitchingSpec, Topology, str | None]:
    """The keys of a switching mode, and the topology with the delays of its file in ticks, if these apply.

    Parameters
    ----------
    document: the configuration.
    spec: the keys. Where delays of the file apply, a default in microseconds does not.
    topology: the network.
    requested: ``topology.delays``. None: delays of the file apply unless the keys state the delay of links.
    simulates: whether an engine runs. Otherwise delays are weights of routings, in ns if a tick has no duration.

    Returns
    -------
    The keys, the topology, and whose delays apply: ``file`` or ``switching``, None if the file states none.
    """
    try:
        stated, tick = stated_delays(topology), spec.tick_in(topology)
    except SpecError as error:
        if error.key != "host_capacity":  # which the mode rejects
            document.reject("topology.path", str(error))
        return spec, topology, None
    if stated is None:
        if requested == "file":
            document.reject("topology.delays", "the file states no delays in a unit of time")
        return spec, topology, None
    if requested == "switching" or (requested is None and any(_is_set(spec, key) for key in DELAY_KEYS)):
        return spec, topology, "switching"
    if tick is None and not simulates:
        tick = Fraction(1)
    if tick is None:
        problem = "ticks have no duration without switching.flit_ns (or link_gbps and flit_bytes)"
        if requested == "file":
            document.reject("topology.delays", problem)
        else:
            low, high = min(part.min(initial=1e300) for part in stated), max(part.max(initial=0) for part in stated)
            document.warn("topology", f"delays of its links ({low:g} to {high:g} ns) are not applied: {problem}")
        return spec, topology, None
    if "link_us" in type(spec).model_fields and not _is_set(spec, "link_us"):
        spec = spec.model_copy(update={"link_us": 0.0})
    try:
        return spec, with_stated_delays(topology, tick), "file"
    except SpecError as error:
        document.reject("topology.path", str(error))
        return spec, topology, None


def _is_set(spec: SwitchingSpec, key: str) -> bool:
    return key in spec.model_fields_set and getattr(spec, key) is not None


def _at_rate(spec: SwitchingSpec, own: str, gbps: float, flit_bytes: int | None) -> SwitchingSpec:
    """The keys with their own one, ``own``, by a rate; unchanged without ``flit_bytes``, which ``flit_ns`` needs."""
    if own == "nic_mbps":
        return spec.model_copy(update={own: round(1000 * gbps, 9)})
    return spec if flit_bytes is None else spec.model_copy(update={own: float(f"{8 * flit_bytes / gbps:.15g}")})
