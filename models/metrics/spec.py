# SPDX-License-Identifier: Apache-2.0
"""The base class of metrics."""

from collections.abc import Sequence
from typing import ClassVar

from flitlab.models.mappings import Row
from flitlab.models.metrics.summary import summary
from flitlab.models.registry import Spec, is_third_party
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.validation import unchanged
from flitlab.models.validation import notes_errors, raise_errors


class MetricSpec(Spec):
    """A quantity of a topology. A metric adds its parameters and defines :meth:`measure`.

    Where one kind occurs twice, a ``label`` is required. unprefixed: whether column names without a label have no
    prefix.
    """

    unprefixed: ClassVar[bool] = False

    label: str | None = None
    """Prefix of the columns, in place of the kind."""

    def measure(self, topology: Topology) -> Row:
        """Return JSON-able values by name; the name '' stands for the metric itself.

        None where a value does not exist for this topology. Raises ``ValueError`` where the metric is not defined.
        """
        raise NotImplementedError

    def columns(self, topology: Topology) -> Row:
        """Return the measured values by column name: ``<label>`` or ``<label>_<name>``, with the kind in place of a
        missing label.

        Raises ``ValueError`` as :meth:`measure`, and ``FaultyError`` for third-party values that cannot be written.
        """
        with unchanged(topology, self.measure):
            values = self.measure(topology)
        if is_third_party(self):
            raise_errors(notes_errors(values, f"values of the metric {self.kind}"))
        if self.unprefixed and self.label is None:
            return values
        prefix = self.label or self.kind
        return {f"{prefix}_{name}" if name else prefix: value for name, value in values.items()}


def measure_all(topology: Topology, metrics: Sequence[MetricSpec]) -> tuple[Row, list[str]]:
    """Measure a topology: its summary, then the columns of every metric.

    Parameters
    ----------
    topology: the network.
    metrics: metrics to compute.

    Returns
    -------
    Values by column name, and the errors of metrics that are not defined for it.
    """
    columns, errors = summary(topology), []
    for metric in metrics:
        try:
            columns |= metric.columns(topology)
        except ValueError as error:
            errors.append(str(error))
    return columns, errors
