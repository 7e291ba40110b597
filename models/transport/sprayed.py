# SPDX-License-Identifier: Apache-2.0
"""The keys of spraying transports."""

from collections.abc import Set
from typing import Any, Literal

from pydantic import BaseModel, Field

from flitlab.models.registry import SpecError
from flitlab.models.transport.law import Transport, TransportSpec
from flitlab.models.transport.spraying import Paths, Spraying, Spread
from flitlab.models.transport.times import LONGEST


class SprayedSpec(TransportSpec):
    """Keys of spraying transports: every packet takes one of ``paths`` by its own entropy value.

    spread: how a sender chooses it: round robin (``oblivious``), without marked or trimmed ones (``bitmap``), good ones
    again (``reps``), or both (``mixed``). sack_threshold: received bytes that cause an acknowledgement. init_window:
    packets, by default 1.5 bandwidth-delay products. timeout_us: by default 15 us plus the time of six full queues.
    """

    subflows: Literal[1] = 1
    start_ms: float = Field(default=0.0, ge=0, le=0)
    paths: Paths = 64
    spread: Spread = "mixed"
    sack_threshold: int = Field(default=16384, ge=1, le=10**9)
    init_window: int | None = Field(default=None, ge=1, le=10**6)
    timeout_us: float | None = Field(default=None, gt=0, le=1e9)

    def transport(self) -> Transport:
        raise SpecError(f"kind {self.kind} needs switching.mode: spray", key="transport")

    def sprayed(self, **more: Any) -> Spraying:
        """How hosts spray with these keys, and with those of the transport itself."""
        return Spraying(
            paths=self.paths, spread=self.spread, ack_bytes=self.sack_threshold, init_window=self.init_window,
            timeout_us=self.timeout_us, flows=self.flows, **more,
        )  # fmt: skip


SPRAYED = frozenset({"paths", "spread"})
"""Keys of transports with another mode that apply in mode spray only."""


def reject_keys(spec: BaseModel, keys: Set[str], mode: str) -> None:
    """Reject keys of a two-mode transport that do not apply in this mode.

    Default values count as not given, as in the resolved configuration of a run; so do times with their longest
    default, which earlier versions wrote there.

    Parameters
    ----------
    spec: the keys.
    keys: names that do not apply.
    mode: the switching mode.

    Raises
    ------
    SpecError: some of them are given.
    """
    fields = type(spec).model_fields
    misplaced = sorted(
        key for key in spec.model_fields_set & keys
        if getattr(spec, key) not in (fields[key].default, LONGEST.get(key))
    )  # fmt: skip
    if misplaced:
        raise SpecError(f"{', '.join(misplaced)}: not for switching.mode {mode}", key="transport")


def sprayed_keys(spec: Any) -> dict[str, Any]:
    """The values of :data:`SPRAYED` that a two-mode transport has."""
    return {key: getattr(spec, key) for key in sorted(SPRAYED) if getattr(spec, key) is not None}
