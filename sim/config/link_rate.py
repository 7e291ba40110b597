# SPDX-License-Identifier: Apache-2.0
"""``switching.link_gbps``: the rate of a link, in the keys that a mode computes with."""

from typing import Any

from flitlab.models.switching.switching_mode import SwitchingSpec
from flitlab.sim.config.text import ConfigDocument

OWN_KEYS = ("nic_mbps", "flit_ns")
"""Keys by which modes state the rate of a link: of packets of bytes, and of flits."""


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
    if own == "nic_mbps":
        return spec.model_copy(update={own: round(1000 * rate, 9)})
    is_program = document.at("experiment") in ("application", "collective")
    size: Any = getattr(spec, "flit_bytes", None)
    if is_program and size is not None and size != program_bytes:
        document.reject("switching.flit_bytes", f"differs from messages.flit_bytes = {program_bytes}: leave it out")
        return None
    size = program_bytes if is_program else size
    if size is None:
        problem = "needs switching.flit_bytes: by both follows flit_ns, the time of a flit"
        document.reject("switching.link_gbps", problem)
        return None
    return spec.model_copy(update={own: float(f"{8 * size / rate:.15g}")})
