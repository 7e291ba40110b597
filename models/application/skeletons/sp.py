# SPDX-License-Identifier: Apache-2.0
"""NPB SP: scalar pentadiagonal solver."""

from typing import ClassVar

from flitlab.models.application.skeletons.multipartition import Multipartition
from flitlab.models.registry import register


@register("application", "sp")
class Sp(Multipartition):
    """NPB SP on q x q ranks, n^3 points in a multipartition.

    An iteration: faces as those of BT; then in each direction q - 1 messages forth, of 22 words a point of a cell's
    face, and q - 1 back, of 10 words. A face has (n / q)^2 points. Operations: 881.174 n^3 - 4683.91 n^2 + 11484.5 n -
    19272.4 an iteration, a fifth of them for the right-hand side, the others equally for the directions, a fifth of a
    direction's on the way back.

    Example: ``application: {kind: sp, class: B, ranks: 256, iterations: 3}``

    Source: NPB 3.3, SP (``copy_faces.f``, ``x_solve.f``).
    """

    loop: ClassVar[dict[str, int]] = {"S": 100, "W": 400, "A": 400, "B": 400, "C": 400, "D": 500}
    points: ClassVar[dict[str, int]] = {"S": 12, "W": 36, "A": 64, "B": 102, "C": 162, "D": 408}
    backward: ClassVar[float] = 0.2

    def operations(self, points: int) -> float:
        return 881.174 * points**3 - 4683.91 * points**2 + 11484.5 * points - 19272.4

    def messages(self, points: int, side: int) -> tuple[float, float]:
        face = (points / side) ** 2
        return 8 * 22 * face, 8 * 10 * face
