# SPDX-License-Identifier: Apache-2.0
"""The form in which the built-in switching modes enter content hashes."""

from flitlab.models.mappings import Fields

ABSENT = {
    "vcs": 1, "buffer_flits": 0, "shared_input": False, "iterations": 1, "header": 0, "switch": 1, "link": 1,
    "injection": 1, "ejection": 1, "credit": 1, "hold_packets": 0, "slotted": False, "allow_deadlock": False,
    "half_duplex": False,
}  # fmt: skip
"""Field -> its value in the hash of vct, wormhole, deflection, datagram and flow, where a mode lacks the field.

These five share a form, so that earlier results keep their names. Other modes hash their own fields.
"""

FLOW_ABSENT = {"vcs": 4, "shared_input": True}
"""Field -> its value in the hash of flow, where that differs from :data:`ABSENT`.

Its ``buffer_flits`` are two packets of the greatest length.
"""


def common_form(mode: str, fields: Fields) -> Fields:
    """The hashed form of a built-in mode: its name, and a value for every field of :data:`ABSENT`.

    fields: values of the mode by name; names that ABSENT lacks are ignored.
    """
    return {"mode": mode, **{name: fields.get(name, absent) for name, absent in ABSENT.items()}}
