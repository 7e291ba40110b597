# SPDX-License-Identifier: Apache-2.0
"""Streams of the draws of sprayed packets, beside those of :mod:`flitlab.models.rules.draw`."""

import numpy as np

TRIM = np.int64(48)  # entity: link, counter: how often it was full before
ECN = np.int64(49)  # entity: link, counter: how often that was drawn before
ROUND_MASK = np.int64(50)  # entity: flow, counter: round
ENTROPY = np.int64(51)  # entity: flow, counter: how many were drawn before
SALT = np.int64(52)  # entity: switch
SWITCH = np.int64(53)  # entity: switch, counter: how much it has drawn before
TRANSPORT = np.int64(55)  # entity: flow
CREDIT_RATE = np.int64(54)  # entity: host, counter: earlier adjustments of its rate
