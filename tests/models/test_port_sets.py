# SPDX-License-Identifier: Apache-2.0
"""Sets of ports come out as they were packed, whatever the degree."""

import numpy as np
import pytest

from flitlab.models.rules.port_sets import pack_ports, ports_towards


@pytest.mark.parametrize("degree", [0, 1, 8, 9, 24, 25, 63, 64])
def test_sets_are_those_that_were_packed(degree):
    ports = np.random.default_rng(degree).integers(0, 2**degree, (5, 5), np.uint64)
    ports[4, 4] = 2**degree - 1
    sets = pack_ports(ports)
    assert sets.width == max(1, -(-degree // 8)) and len(sets.bytes) == 25 * sets.width + 7
    assert [[ports_towards(sets, target, here) for here in range(5)] for target in range(5)] == ports.tolist()


def test_forms_without_sets_have_none():
    assert len(pack_ports(np.zeros((0, 0), np.uint64)).bytes) == 7
