# SPDX-License-Identifier: Apache-2.0
"""The form in which the disciplines of flitlab enter content hashes."""

from typing import Any

ABSENT = {
    "vcs": 1, "buffer_flits": 0, "shared_input": False, "iterations": 1, "header": 0, "switch": 1, "link": 1,
    "injection": 1, "ejection": 1, "credit": 1, "hold_packets": 0, "slotted": False, "allow_deadlock": False,
    "half_duplex": False,
}  # fmt: skip
"""Field -> what stands for it in the hash of vct, wormhole, deflection, datagram and flow, where they have none.

These five share a form, so that the results that there are of them are found again. Others hash their own fields.
"""

FLOW_ABSENT = {"vcs": 4, "shared_input": True}
"""Field -> what stands for it in the hash of flow, where that is not as in :data:`ABSENT`.

Its ``buffer_flits`` are two packets of the greatest length.
"""


def common_form(mode: str, fields: dict[str, Any]) -> dict[str, Any]:
    """What is hashed of a discipline of flitlab: its mode, and for every field of :data:`ABSENT` a value.

    fields: values of the discipline by name; names that ABSENT does not have are left out.
    """
    return {"mode": mode, **{name: fields.get(name, absent) for name, absent in ABSENT.items()}}
