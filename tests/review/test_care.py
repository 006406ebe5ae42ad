"""Signs of careless work: each has its rule, and most people have none."""

from __future__ import annotations

import numpy as np
import pytest

from shiftproof.review.care import signs_of
from shiftproof.review.database import Reviewer
from shiftproof.review.summary import Person


def person(number: int, *, seconds: float = 3.0, right: int = 10, known: int = 10, answered: int = 100) -> Person:
    who = Reviewer(number, f"person {number}", "reviewer", consented=False, trained=False, qualified=None)
    return Person(who, answered, answered, known, right, seconds, {}, np.zeros((2, 2), int), 0)


def choices(letters: str) -> list[str]:
    return [{"k": "keep", "r": "reject"}[letter] for letter in letters]


def test_careful_people_have_no_signs() -> None:
    people = [person(1), person(2, seconds=4.0, right=9)]
    assert signs_of(people, {1: choices("kkrkr" * 10), 2: choices("krkkr" * 10)}) == {}


@pytest.mark.parametrize(("seconds", "sign"), [(1.0, "fast"), (9.0, "slow"), (1.1, None), (8.9, None)])
def test_three_times_the_pace_of_the_others_is_a_sign(seconds: float, sign: str | None) -> None:
    found = signs_of([person(1, seconds=seconds), person(2), person(3)], {})
    expected = {1: [f"{sign}: {seconds:.1f} s an answer, where others take 3.0 s"]} if sign else {}
    assert found == expected


def test_nothing_is_said_of_the_pace_of_who_has_hardly_begun() -> None:
    assert signs_of([person(1, seconds=0.2, answered=19), person(2), person(3)], {}) == {}


@pytest.mark.parametrize(("right", "known", "is_sign"), [(3, 10, True), (5, 10, False), (0, 2, False), (0, 5, True)])
def test_known_answers_are_a_sign_where_chance_does_not_explain_them(right: int, known: int, is_sign: bool) -> None:
    """Of 10 known answers up to 4 may be right by chance with 80 % care: the upper end of the exact interval decides."""
    found = signs_of([person(1, right=right, known=known)], {})
    assert found == ({1: [f"{right} of {known} known answers are right"]} if is_sign else {})


def test_a_run_is_a_sign_where_everybodys_answers_do_not_explain_it() -> None:
    """Half of all answers keep: 20 in a row come by chance in 1 of 10^5 such reviews; 5 in a row always."""
    mixed = "krrkkrkrrrkkkrkrrkkr" * 2
    found = signs_of([person(1), person(2)], {1: choices("k" * 20), 2: choices(mixed + "r" * 20)})
    assert found[1] == ["20 times “keep” in a row"]
    assert signs_of([person(1), person(2)], {1: choices(mixed), 2: choices(mixed)}) == {}
    nine = "k" * 9 + "rkrr" * 7 + "krr"  # so long a run comes to about 1 of 25 careful people
    assert signs_of([person(1), person(2)], {1: choices(nine), 2: choices(mixed)}) == {}
