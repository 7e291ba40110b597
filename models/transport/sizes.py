# SPDX-License-Identifier: Apache-2.0
"""The sizes of flows."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field

from flitlab.models.arrays import Floats, Ints
from flitlab.models.registry import SpecError

TABLE_PACKET = 1460
"""Bytes of a packet in the built-in tables."""

QUANTILES = 1 << 16
"""Quantiles of a distribution over which what is missing in last packets is averaged."""

_TABLES = Path(__file__).parent


@dataclass(frozen=True, eq=False)
class Sizes:
    """Flow sizes as an inverted distribution function, linear between its points.

    size: float64 [points], bytes; cumulative: float64 [points], from 0 to 1. tail: exponent of a bounded Pareto
    distribution, whose ``size`` holds the smallest and the largest; 0: none.
    """

    size: Floats
    cumulative: Floats
    tail: float = 0.0

    @property
    def mean(self) -> float:
        """Mean size in bytes."""
        if not self.tail:
            return float(np.sum((self.size[1:] + self.size[:-1]) / 2 * np.diff(self.cumulative)))
        low, high, a = self.size[0], self.size[1], self.tail
        cut = 1 - (low / high) ** a
        if a == 1:
            return float(low * np.log(high / low) / cut)
        return float(a / (a - 1) * low * (1 - (low / high) ** (a - 1)) / cut)

    def mean_packets(self, payload: int) -> float:
        """The mean of the packets of a flow, whose last one may not be full. payload: bytes of a full one."""
        middles = (np.arange(QUANTILES) + 0.5) / QUANTILES
        return (self.mean + float((-self.of(middles) % payload).mean())) / payload

    def table(self) -> list[list[int] | list[float] | float]:
        """The distribution as plain numbers."""
        return [self.size.tolist(), self.cumulative.tolist(), self.tail]

    def of(self, share: npt.NDArray[np.floating]) -> Ints:
        """Sizes in bytes, int64, at places in [0, 1) of the distribution."""
        if self.tail:
            low, high = self.size
            cut = 1 - (low / high) ** self.tail
            packets: Ints = np.maximum(1, low * (1 - share * cut) ** (-1 / self.tail)).astype(np.int64)
            return packets
        packets = np.maximum(1, np.ceil(np.interp(share, self.cumulative, self.size))).astype(np.int64)
        return packets


class SizesSpec(BaseModel):
    """``sizes:`` of finite flows.

    fixed {bytes} · pareto {mean_bytes, shape, max_bytes} (bounded) · web_search · data_mining · file {path}, a CSV with
    the columns bytes (or packets, of 1,460 bytes) and cumulative.

    Sources: web_search: Alizadeh et al., DCTCP, SIGCOMM 2010, doi:10.1145/1851182.1851192; data_mining: Greenberg et
    al., VL2, SIGCOMM 2009, doi:10.1145/1592568.1592576; both as tabulated for pFabric (Alizadeh et al., SIGCOMM 2013,
    doi:10.1145/2486001.2486031).
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    kind: Literal["fixed", "pareto", "web_search", "data_mining", "file"]
    bytes: Annotated[int, Field(ge=1, le=10**12)] | None = None
    mean_bytes: Annotated[float, Field(ge=1, le=1e12)] | None = None
    shape: Annotated[float, Field(ge=1e-3, le=100)] = 1.2
    max_bytes: Annotated[float, Field(ge=1, le=1e13)] = 1e9
    path: str | None = None

    def build(self) -> Sizes:
        """The distribution that the parameters describe. Raises ``SpecError``."""
        if self.kind == "fixed":
            if self.bytes is None:
                raise SpecError("missing: kind fixed needs it", key="sizes.bytes")
            return Sizes(np.full(2, float(self.bytes)), np.array([0.0, 1.0]))
        if self.kind == "pareto":
            return self._pareto()
        if self.kind == "file":
            if self.path is None:
                raise SpecError("missing: kind file needs it", key="sizes.path")
            return read_table(Path(self.path))
        return read_table(_TABLES / f"{self.kind}.csv")

    def _pareto(self) -> Sizes:
        """The bounded Pareto distribution with the given mean; bisection finds the smallest size."""
        if self.mean_bytes is None:
            raise SpecError("missing: kind pareto needs it", key="sizes.mean_bytes")
        if self.mean_bytes >= self.max_bytes:
            raise SpecError(f"must be below max_bytes = {self.max_bytes:g}", key="sizes.mean_bytes")
        low, high = 1e-9, float(self.mean_bytes)
        for _ in range(200):
            middle = (low + high) / 2
            trial = Sizes(np.array([middle, self.max_bytes]), np.array([0.0, 1.0]), self.shape)
            low, high = (middle, high) if trial.mean < self.mean_bytes else (low, middle)
        return Sizes(np.array([high, self.max_bytes]), np.array([0.0, 1.0]), self.shape)


def read_table(path: Path) -> Sizes:
    """A distribution function from a CSV file. Raises ``SpecError`` (key: sizes.path)."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        scale = 1 if rows and "bytes" in rows[0] else TABLE_PACKET
        column = "bytes" if scale == 1 else "packets"
        size = np.array([float(row[column]) * scale for row in rows])
        cumulative = np.array([float(row["cumulative"]) for row in rows])
    except OSError as error:
        raise SpecError(f"cannot be read: {error.strerror}", key="sizes.path") from error
    except (KeyError, TypeError, ValueError) as error:
        raise SpecError("must have the columns bytes (or packets) and cumulative, numbers", key="sizes.path") from error
    rises = len(size) > 1 and (np.diff(size) >= 0).all() and (np.diff(cumulative) >= 0).all()
    if not (rises and size[0] > 0 and cumulative[0] >= 0 and cumulative[-1] == 1 and np.isfinite(size).all()):
        raise SpecError("sizes and their cumulative shares must rise, the shares to 1", key="sizes.path")
    if cumulative[0] > 0:
        size, cumulative = np.append(size[0], size), np.append(0.0, cumulative)
    return Sizes(size, cumulative)
