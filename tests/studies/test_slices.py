"""Facts to groups of images."""

from __future__ import annotations

import numpy as np

from shiftproof.studies.accuracy.study import all_slices, slices_by


def test_texts_and_truths_are_groups_as_they_are() -> None:
    slices = slices_by("night", [True, False, True])
    assert slices.names == ("False", "True")
    assert slices.groups.tolist() == [1, 0, 1]


def test_a_number_of_few_values_is_a_group_each_in_their_order() -> None:
    slices = slices_by("severity", [10, 2, 2, 1])
    assert slices.names == ("1", "2", "10")
    assert slices.groups.tolist() == [2, 1, 1, 0]


def test_a_number_of_many_values_is_cut_into_ranges_of_about_as_many_images() -> None:
    values = np.random.default_rng(0).exponential(size=1000).tolist()
    slices = slices_by("exposure", values, ranges=4)
    assert np.bincount(slices.groups).tolist() == [250, 250, 250, 250]
    highest = [max(np.array(values)[slices.groups == group]) for group in range(4)]
    assert highest == sorted(highest)
    assert slices.names[0].endswith(f"to {highest[0]:.6g}")


def test_a_number_on_the_edge_belongs_to_the_lower_range() -> None:
    assert slices_by("width", list(range(11)), ranges=2).names == ("0 to 5", "6 to 10")


def test_equal_numbers_never_fall_into_two_ranges() -> None:
    slices = slices_by("width", [640] * 80 + list(range(20)), ranges=4)
    assert len(set(slices.groups[:80].tolist())) == 1
    assert set(slices.groups.tolist()) == set(range(len(slices.names)))


def test_what_is_not_given_is_a_group_of_its_own() -> None:
    assert slices_by("width", [1, None, float("nan"), 2]).groups.tolist() == [0, 2, 2, 1]
    assert slices_by("width", [1, None, 2]).names == ("1", "2", "not given")
    assert slices_by("site", ["pier", "", None]).names == ("not given", "pier")


def test_mixed_values_are_read_as_text() -> None:
    assert slices_by("batch", [1, "1b", 2.5]).names == ("1", "1b", "2.5")


def test_a_fact_of_one_value_divides_nothing() -> None:
    assert all_slices({"site": ["pier", "pier"], "camera": [None, None]}, ranges=4) == []


def test_too_many_groups_to_look_at_are_useless_and_say_so() -> None:
    slices = slices_by("sequence", [f"{place % 1500}" for place in range(6000)])
    assert "1500 groups" in (slices.why_useless or "")
