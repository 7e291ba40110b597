# SPDX-License-Identifier: Apache-2.0
"""What every metric in a configuration has in common."""

from collections.abc import Sequence
from typing import Any, ClassVar

from flitlab.models.faults import notes_faults, refuse
from flitlab.models.metrics.summary import summary
from flitlab.models.registry import Spec, is_third_party
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.sound import unchanged


class MetricSpec(Spec):
    """A quantity of a topology. A metric adds its parameters and defines :meth:`measure`.

    label: begins the names of its columns, in place of the kind; needed where one kind is asked for twice.
    spoken: whether the names of its values say enough, so that without a label no kind stands before them.
    """

    spoken: ClassVar[bool] = False

    label: str | None = None

    def measure(self, topology: Topology) -> dict[str, Any]:
        """JSON-able values by name; the name '' stands for the metric itself.

        None where a value does not exist for this topology. Raises ``ValueError`` where the metric has no
        meaning.
        """
        raise NotImplementedError

    def columns(self, topology: Topology) -> dict[str, Any]:
        """What is measured, by column name: ``<label>`` or ``<label>_<name>``, the kind for want of a label.

        Raises ``ValueError`` as :meth:`measure`, and ``FaultyError`` for values of a user's own that cannot be written.
        """
        with unchanged(topology, self.measure):
            values = self.measure(topology)
        if is_third_party(self):
            refuse(notes_faults(values, f"values of the metric {self.kind}"))
        if self.spoken and self.label is None:
            return values
        head = self.label or self.kind
        return {f"{head}_{name}" if name else head: value for name, value in values.items()}


def measure_all(topology: Topology, metrics: Sequence[MetricSpec]) -> tuple[dict[str, Any], list[str]]:
    """The summary of a topology, then the columns of every metric; and why some have no meaning for it.

    Raises ``ValueError`` if the topology is not strongly connected.
    """
    found, problems = summary(topology), []
    for metric in metrics:
        try:
            found |= metric.columns(topology)
        except ValueError as error:
            problems.append(str(error))
    return found, problems
