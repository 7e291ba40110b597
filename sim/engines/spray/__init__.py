# SPDX-License-Identifier: Apache-2.0
"""What runs of sprayed packets have in common, in either engine."""
