"""What the compiled disciplines share of ugal."""

import numpy as np

from models.jit import kernel
from models.rules.route import at_target, next_port
from sim.engines.compiled.records import NOBODY, SEQUENCE, SOURCE, TARGET


@kernel
def output_by(c, s, p, way, hop, here):
    """The output by which a packet would leave a switch after ``hop`` channels of a way; NOBODY at its end."""
    source, target = np.int64(s.packet[p, SOURCE]), np.int64(s.packet[p, TARGET])
    there = np.int64(c.host_switch[target])
    if at_target(c.routes, way, hop, here, there):
        return NOBODY
    sequence = np.int64(s.packet[p, SEQUENCE])
    port = next_port(c.routes, way, c.seed, here, there, source, target, c.hosts, sequence, hop)
    return np.int64(c.ports.out_base[here]) + port
