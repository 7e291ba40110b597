# SPDX-License-Identifier: Apache-2.0
"""What holds in every switching mode, plug-ins included. A mode says itself what it supports; no test names one."""
