# SPDX-License-Identifier: Apache-2.0
"""A program on the hosts of a network."""

from dataclasses import asdict, dataclass, field
from functools import cached_property

from flitlab.models.application.messages import Messages
from flitlab.models.application.program import Program
from flitlab.models.arrays import Ints
from flitlab.models.hashing import content_hash
from flitlab.models.mappings import Notes


@dataclass(frozen=True, eq=False)
class Workload:
    """The work of a :class:`~flitlab.models.scenario.Scenario` whose hosts run a program instead of drawing packets.

    host: int64 [ranks], the host of each rank, all different. notes: on the placement.
    """

    program: Program
    host: Ints
    messages: Messages
    notes: Notes = field(default_factory=dict)

    @cached_property
    def content_hash(self) -> str:
        """Hash of everything that results depend on."""
        messages = asdict(self.messages) | {"tick_ns": str(self.messages.tick_ns)}
        for rule in ("confirmed", "await_receive", "notice"):  # older results, without these rules, keep their names
            if not messages[rule]:
                del messages[rule]
        return content_hash(self.program.content_hash, self.host, messages)
