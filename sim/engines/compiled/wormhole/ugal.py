"""Congestion as ugal sees it."""

import numpy as np

from models.jit import inner
from sim.engines.compiled.wormhole.sets import ONE, U, member_of, slot, words
from sim.engines.compiled.wormhole.state import COUNT, CREDITS, OUTPUT, PRESENT, SETS, at


@inner
def ahead(c, s, here, port, tick):
    """Flits in the buffers whose front packet waits for a channel and of credit in use on it; the switch at its end."""
    output, flits = U(c.ports.out_base[here] + port), np.int64(0)
    for w in range(words(c.size)):
        word = s.sets[slot(c.size, U(here) * U(SETS) + U(PRESENT), w)]
        while word:
            vc = c.first_in[here] + member_of(w, word)
            word &= word - ONE
            if s.vc[at(vc, OUTPUT)] == output:
                flits += np.int64(s.vc[at(vc, COUNT)])
    entry = np.int64(c.ports.out_input[output])
    for v in range(entry * c.vcs, (entry + 1) * c.vcs):
        flits += c.buffer_flits - np.int64(s.vc[at(U(v), CREDITS)])
    return flits, np.int64(c.ports.in_switch[entry])
