# SPDX-License-Identifier: Apache-2.0
"""The keys of transports that spray."""

from collections.abc import Set
from typing import Any, Literal

from pydantic import BaseModel, Field

from flitlab.models.registry import SpecError
from flitlab.models.transport.law import Transport, TransportSpec
from flitlab.models.transport.spraying import Paths, Spraying, Spread
from flitlab.models.transport.times import LONGEST


class SprayedSpec(TransportSpec):
    """Keys of the transports that spray: every packet takes one of ``paths`` by an entropy of its own.

    spread: how a sender chooses it: in turn (``oblivious``), without those that were marked or trimmed (``bitmap``),
    those again that did well (``reps``), or both (``mixed``). sack_threshold: bytes received that are acknowledged at
    the latest. init_window: packets, by default 1.5 products of bandwidth and delay. timeout_us: by default 15 us and
    the time of six full queues.
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
        """How hosts spray with these keys, and what a transport has of its own."""
        return Spraying(
            paths=self.paths, spread=self.spread, ack_bytes=self.sack_threshold, init_window=self.init_window,
            timeout_us=self.timeout_us, flows=self.flows, **more,
        )  # fmt: skip


SPRAYED = frozenset({"paths", "spread"})
"""Keys of transports of another mode that mean something in mode spray only."""


def reject_keys(spec: BaseModel, keys: Set[str], mode: str) -> None:
    """Raise ``SpecError`` for keys of a transport of two modes that mean nothing in this one, if they are given.

    What has its default value counts as not given, as in the resolved configuration of a run; so do times with their
    longest default, which earlier versions wrote there.
    """
    fields = type(spec).model_fields
    misplaced = sorted(
        key for key in spec.model_fields_set & keys
        if getattr(spec, key) not in (fields[key].default, LONGEST.get(key))
    )  # fmt: skip
    if misplaced:
        raise SpecError(f"{', '.join(misplaced)}: not for switching.mode {mode}", key="transport")


def sprayed_keys(spec: Any) -> dict[str, Any]:
    """The values of :data:`SPRAYED` that a transport of two modes gives."""
    return {key: getattr(spec, key) for key in sorted(SPRAYED) if getattr(spec, key) is not None}
