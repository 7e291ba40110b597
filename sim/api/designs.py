# SPDX-License-Identifier: Apache-2.0
"""Which fabric to build: the search of ``simrun design``, in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flitlab.models.mappings import Keys
from flitlab.models.signals import interruptible
from flitlab.sim.api.inputs import plain

if TYPE_CHECKING:  # these take long to import
    import pandas as pd
    from matplotlib.figure import Figure

    from flitlab.sim.design.outcome import Design


@dataclass(frozen=True, eq=False)
class NetworkDesign:
    """The answer of :func:`design`.

    Attributes
    ----------
    answer : Design
        The search, its points and their proofs.
    """

    answer: "Design"

    @property
    def front(self) -> "pd.DataFrame":
        """The points of the front by cost, as in front.csv."""
        from flitlab.sim.design.files import front_rows

        return _frame(front_rows(self.answer))

    @property
    def candidates(self) -> "pd.DataFrame":
        """Every candidate, its upper ends, and what dominates it, as in candidates.csv."""
        from flitlab.sim.design.files import candidate_rows

        return _frame(candidate_rows(self.answer))

    @property
    def sentences(self) -> list[str]:
        """What is proven of all that is not on the front."""
        return [*self.answer.sentences(), *self.answer.orders]

    def configuration(self, point: int) -> Keys:
        """The configuration of a point, to be run.

        Parameters
        ----------
        point : int
            Its number, from 1.
        """
        from flitlab.sim.design.files import configuration

        return configuration(self.answer, self.answer.front[point - 1])

    def plot(self) -> "Figure":
        """The figure of cost over throughput."""
        from flitlab.sim.report.figures.design import figure_of

        return figure_of(self.answer)

    def __repr__(self) -> str:
        return "\n".join([f"<Design of {len(self.answer.front)} points>", *self.sentences])


def _frame(rows: Any) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(list(rows))


@interruptible()
def design(hosts: int, switches: int | Mapping[str, object] | Sequence[object], **keys: object) -> NetworkDesign:
    """Find the networks that no other of the same price beats, with proofs of what is left out.

    Parameters
    ----------
    hosts
        Number of hosts.
    switches
        Ports of the switch, a mapping with its ``ports``, ``split``, ``price`` and ``watts``, or a list of them.
    keys
        Further keys of a design file: ``demands``, ``limits``, ``planes``, ``families``, ``prices``, ...

    Raises
    ------
    ConfigError
        With everything that is wrong, one line each; also where no network can meet the limits.
    """
    from flitlab.sim.design.outcome import design as search
    from flitlab.sim.design.reader import design_of

    one = [switches] if isinstance(switches, int | Mapping) else list(switches)
    listed = [{"ports": sku} if isinstance(sku, int) else sku for sku in one]
    return NetworkDesign(search(design_of(plain({"hosts": hosts, "switches": listed, **keys}))))
