# SPDX-License-Identifier: Apache-2.0
"""What was probably meant by a word that is none of the choices. Imports nothing heavy."""

import difflib
import re
from collections.abc import Iterable

SIMILARITY_CUTOFF = 0.6
"""Least ratio of ``difflib`` (twice the letters in common, in order, by all letters) of words that are alike."""


def closest_match(word: str, choices: Iterable[str]) -> str | None:
    """Return the choice that was probably meant; None if no choice is similar.

    Among similar choices: the one at the least edit distance, preferably one with the same letters. Without any, the
    only choice that is a part of the word between underscores or hyphens.

    >>> closest_match("mfc", ["mmf", "mcf", "mcf_paths"]), closest_match("mh", ["hm", "jm"])
    ('mcf', 'hm')
    >>> closest_match("MCF", ["mcf"]), closest_match("x", ["mcf"])
    ('mcf', None)
    >>> closest_match("adaptive_escape", ["any", "hop", "escape"]), closest_match("any_hop_count", ["any", "hop"])
    ('escape', None)
    """
    typed = str(word).casefold()
    by_case = {choice.casefold(): choice for choice in choices}
    alike = difflib.get_close_matches(typed, by_case, n=len(by_case) or 1, cutoff=SIMILARITY_CUTOFF)
    mixed = [choice for choice in by_case if sorted(choice) == sorted(typed)]
    alike += [choice for choice in mixed if choice not in alike]
    if not alike:
        parts = [choice for choice in by_case if choice in re.split("[-_ ]", typed)]
        return by_case[parts[0]] if len(parts) == 1 else None
    return by_case[min(alike, key=lambda choice: (edit_distance(typed, choice), choice not in mixed))]


def edit_distance(word: str, other: str) -> int:
    """Count the edits between two words: insertions, deletions, replacements, and exchanges of neighbouring letters.

    No letter is edited twice: the restricted distance of Damerau, Communications of the ACM 7, 1964,
    doi:10.1145/363958.363994.

    >>> edit_distance("mfc", "mcf"), edit_distance("mfc", "mmf")
    (1, 2)
    >>> edit_distance("seed", "seeds"), edit_distance("", "ab")
    (1, 2)
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
