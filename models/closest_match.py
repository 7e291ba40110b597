# SPDX-License-Identifier: Apache-2.0
"""What was probably meant by a word that is none of the choices. Imports nothing heavy."""

import difflib
from collections.abc import Iterable

SIMILARITY_CUTOFF = 0.6
"""Least ratio of ``difflib`` (twice the letters in common, in order, by all letters) of words that are alike."""


def closest_match(word: str, choices: Iterable[str]) -> str | None:
    """The choice that was probably meant, if any: of those alike, the one that fewest edits lead to, most
    likely one that has the same letters.

    >>> near("mfc", ["mmf", "mcf", "mcf_paths"]), near("mh", ["hm", "jm"]), near("MCF", ["mcf"]), near("x", ["mcf"])
    ('mcf', 'hm', 'mcf', None)
    """
    typed = str(word).casefold()
    by_case = {choice.casefold(): choice for choice in choices}
    alike = difflib.get_close_matches(typed, by_case, n=len(by_case) or 1, cutoff=SIMILARITY_CUTOFF)
    mixed = [choice for choice in by_case if sorted(choice) == sorted(typed)]
    alike += [choice for choice in mixed if choice not in alike]
    return (
        by_case[min(alike, key=lambda choice: (edit_distance(typed, choice), choice not in mixed))] if alike else None
    )


def edit_distance(word: str, other: str) -> int:
    """Fewest letters to put in, take out or replace, or neighbours to exchange, that make one word of the other.

    No letter is edited twice (the restricted distance of Damerau, 1964).

    >>> edits("mfc", "mcf"), edits("mfc", "mmf"), edits("seed", "seeds"), edits("", "ab")
    (1, 2, 1, 2)
    """
    before, row = list[int](), list(range(len(other) + 1))
    for i, letter in enumerate(word):
        earlier, before, row = before, row, [i + 1]
        for j, other_letter in enumerate(other):
            best = min(before[j] + (letter != other_letter), before[j + 1] + 1, row[j] + 1)
            if i and j and letter == other[j - 1] and word[i - 1] == other_letter:
                best = min(best, earlier[j - 1] + 1)
            row.append(best)
    return row[-1]
