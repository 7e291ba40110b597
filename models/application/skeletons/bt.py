# SPDX-License-Identifier: Apache-2.0
"""NPB BT: block-tridiagonal solver."""

from typing import ClassVar

from flitlab.models.application.skeletons.multipartition import Multipartition
from flitlab.models.registry import register


@register("application", "bt")
class Bt(Multipartition):
    """NPB BT on q x q ranks, n^3 points in a multipartition.

    An iteration: faces of two layers of 5 words to six neighbours, 80 (q - 1) (n / q)^2 bytes each; then in each
    direction q - 1 messages forth, of 30 words a point of a cell's face, and q - 1 back, of 5 words. A face has
    (n div q + 1)^2 points. Operations: 3478.8 n^3 - 17655.7 n^2 + 28023.7 n an iteration, a fifth of them for the
    right-hand side, the others equally for the directions, a tenth of a direction's on the way back.

    Example: ``application: {kind: bt, class: B, ranks: 256, iterations: 3}``

    Source: NPB 3.3, BT (``copy_faces.f``, ``x_solve.f``).
    """

    loop: ClassVar[dict[str, int]] = {"S": 60, "W": 200, "A": 200, "B": 200, "C": 200, "D": 250}
    points: ClassVar[dict[str, int]] = {"S": 12, "W": 24, "A": 64, "B": 102, "C": 162, "D": 408}
    backward: ClassVar[float] = 0.1

    def operations(self, points: int) -> float:
        return 3478.8 * points**3 - 17655.7 * points**2 + 28023.7 * points

    def messages(self, points: int, side: int) -> tuple[float, float]:
        face = (points // side + 1) ** 2
        return 8 * 30 * face, 8 * 5 * face
