"""Which phonemes of a sentence belong to which word.

A voice pronounces a sentence as a whole: words run together ("of the"), vowels weaken. So the phonemes of each word
said alone are aligned with those of the sentence by edit distance, and every sentence phoneme gets a word.
"""

from __future__ import annotations

from collections.abc import Sequence

_VOWELS = frozenset("aeiouyæɑɐʌäɒɛœɨɪəɘɤɯɵʏɔøɞʊʉɜɚɝ")
_MARKS = frozenset(" ˈˌːˑ.,;:!?^$_'\"-—…()，。！？；、‿|\u0303\u0329\u032f\u02b2\u02b0\u0361")
_GAP = 0.7
_SAME_KIND = 0.6
_OTHER_KIND = 1.3


def is_sound(phoneme: str) -> bool:
    """Whether `phoneme` is a sound of its own: not a stress or length mark, a pause or punctuation."""
    return bool(phoneme) and phoneme not in _MARKS


def assign_words(words: Sequence[Sequence[str]], sentence: Sequence[str]) -> list[int | None]:
    """Return for each phoneme of `sentence` the index of its word, None for pauses and punctuation.

    `words` are the phonemes of each word alone. Indexes never go down. Marks in front of a sound go with it
    (stress), marks behind a sound stay with it (length).
    """
    alone = [(phoneme, index) for index, word in enumerate(words) for phoneme in word if is_sound(phoneme)]
    sounds = [place for place, phoneme in enumerate(sentence) if is_sound(phoneme)]
    owners: list[int | None] = [None] * len(sentence)
    if not alone or not sounds:
        return owners
    matched = _align([phoneme for phoneme, _ in alone], [sentence[place] for place in sounds])
    labels = _fill([alone[match][1] if match is not None else None for match in matched])
    for place, label in zip(sounds, labels, strict=True):
        owners[place] = label
    _give_marks(sentence, owners)
    return owners


def _align(left: list[str], right: list[str]) -> list[int | None]:
    """Return for each item of `right` the index in `left` it is aligned with, None where it has no counterpart."""
    columns = len(left)
    costs = [[_GAP * column for column in range(columns + 1)]]
    for row, sound in enumerate(right, start=1):
        above = costs[-1]
        line = [_GAP * row]
        is_vowel = sound in _VOWELS
        for column in range(columns):
            other = left[column]
            change = 0.0 if other == sound else _SAME_KIND if (other in _VOWELS) == is_vowel else _OTHER_KIND
            line.append(min(above[column] + change, above[column + 1] + _GAP, line[column] + _GAP))
        costs.append(line)
    matched: list[int | None] = [None] * len(right)
    row, column = len(right), columns
    while row and column:
        cost = costs[row][column]
        same, other = right[row - 1], left[column - 1]
        change = 0.0 if other == same else _SAME_KIND if (other in _VOWELS) == (same in _VOWELS) else _OTHER_KIND
        if cost == costs[row - 1][column - 1] + change:
            row, column = row - 1, column - 1
            matched[row] = column
        elif cost == costs[row - 1][column] + _GAP:
            row -= 1
        else:
            column -= 1
    return matched


def _fill(labels: list[int | None]) -> list[int]:
    """Give sounds without a counterpart the word before them (the first word at the front)."""
    first = next((label for label in labels if label is not None), 0)
    filled: list[int] = []
    current = first
    for label in labels:
        current = max(current, label) if label is not None else current
        filled.append(current)
    return filled


def _give_marks(sentence: Sequence[str], owners: list[int | None]) -> None:
    for place, phoneme in enumerate(sentence):
        if owners[place] is not None or phoneme not in "ːˑʲʰ\u0303\u0329\u032f\u0361":
            continue
        if place and owners[place - 1] is not None:
            owners[place] = owners[place - 1]
    for place in range(len(sentence) - 2, -1, -1):
        if owners[place] is None and sentence[place] in "ˈˌ":
            owners[place] = owners[place + 1]
