# SPDX-License-Identifier: Apache-2.0
"""The spacing of packets by the rate of an RDMA sender."""

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import kernel
from flitlab.models.rules.rdma.layout import Rdma


@kernel
def pace(d: Rdma, i: Int) -> None:
    """Set the earliest tick of the next packet of sender i from the last one and the rate; at line rate it is past.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    """
    flow = d.flow[i]
    flow.next_at = flow.sent_at
    if flow.rate < d.laws[d.kind[i]].line:
        flow.next_at += np.int64(np.ceil(float(flow.sent_size) / flow.rate))
