"""How bad mistakes are, on predictions small enough to look up in WordNet by hand."""

from __future__ import annotations

import dataclasses
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from shiftproof.datasets.wordnet import wordnet
from shiftproof.metrics import clopper_pearson
from shiftproof.reference import ilsvrc_classes
from shiftproof.studies.accuracy import study as mistakes
from shiftproof.studies.accuracy.study import GENERAL, AccuracyStudy, severity
from shiftproof.types import Classes, DatasetRef, Gallery, Measurement, ModelRef, Predictions
from studies.contracts import findings_of

TABBY, EGYPTIAN_CAT, TENCH, SHUTTLE, PIZZA = 0, 1, 2, 3, 4
CLASSES = Classes(
    ("tabby", "Egyptian cat", "tench", "space shuttle", "pizza"),
    ("n02123045", "n02124075", "n01440764", "n04266014", "n07873807"),
)


def found_in(predictions: Predictions) -> dict[str, Any]:
    study = AccuracyStudy([ModelRef("toy", "1")], DatasetRef("photos", "2"))
    found = findings_of(study, lambda run: predictions)
    return {one.metric if isinstance(one, Measurement) else one.name: one for one in found if "class" not in one.about}


def apart(predicted: int, *labels: int, classes: Classes = CLASSES) -> tuple[int, bool]:
    found = severity(classes.keys, np.array([labels]), np.array([predicted]), np.array([0]))
    return int(found.steps[0]), bool(found.egregious[0])


def test_a_cat_for_a_cat_is_near_and_a_shuttle_for_a_fish_is_egregious() -> None:
    assert apart(TABBY, EGYPTIAN_CAT) == (2, False)
    assert apart(SHUTTLE, TENCH) == (19, True)  # they meet in the whole, 13 steps above the tench
    assert apart(PIZZA, SHUTTLE)[1]
    assert not apart(TABBY, TENCH)[1]  # both are animals


def test_of_several_labels_the_nearest_counts() -> None:
    assert apart(TABBY, SHUTTLE, EGYPTIAN_CAT) == (2, False)
    assert apart(TABBY, EGYPTIAN_CAT, -1) == (2, False)


def test_the_mean_and_the_share_are_over_wrong_answers_alone(predictions_of: Any) -> None:
    predictions = predictions_of([TABBY, TABBY, TENCH, PIZZA], [TABBY, EGYPTIAN_CAT, SHUTTLE, PIZZA], classes=CLASSES)
    found = found_in(predictions)
    assert (found["mistake_distance"].value, found["mistake_distance"].images) == ((2 + 19) / 2, 2)
    assert (found["egregious_share"].value, found["egregious_share"].images) == (0.5, 2)
    assert found["egregious_share"].ends == clopper_pearson(1, 2)
    assert found["mistake_distance"].convention["misclassifications"] == "2 of 4 images"


def test_the_gallery_shows_the_egregious_mistakes_the_surest_first(predictions_of: Any) -> None:
    predictions = predictions_of(
        [TABBY, TENCH, TABBY], [EGYPTIAN_CAT, SHUTTLE, PIZZA], [0.99, 0.7, 0.8], classes=CLASSES, ids=["a", "b", "c"]
    )
    gallery = found_in(predictions)["egregious_mistakes"]
    assert isinstance(gallery, Gallery)
    assert [item.id for item in gallery.items] == ["c", "b"]
    assert gallery.items[1].caption == "predicted space shuttle 70 %, labelled tench, 19 steps away"


def test_chance_is_what_the_pairs_of_all_classes_say(predictions_of: Any) -> None:
    """A guess of 2,000 pairs beside the mean over all of them."""
    classes = ilsvrc_classes()
    found = found_in(predictions_of([0], [1], classes=classes))
    some = classes.keys[::9]
    steps = [wordnet().distance(one, other) for one in some for other in some if one != other]
    told, unit = found["mistake_distance"].convention["by chance"].split()
    assert unit == "steps"
    assert float(told) == pytest.approx(np.mean(steps), abs=0.5)
    egregious = [
        apart(0, 1, classes=Classes(pair, pair))[1] for pair in pairwise(np.random.default_rng(0).permutation(some))
    ]
    assert float(found["egregious_share"].convention["by chance"].split()[0]) == pytest.approx(
        100 * np.mean(egregious), abs=15
    )


def test_one_mistake_has_no_interval_of_the_mean_and_none_has_no_numbers(predictions_of: Any) -> None:
    assert found_in(predictions_of([TABBY], [TENCH], classes=CLASSES))["mistake_distance"].ends is None
    faultless = found_in(predictions_of([TABBY, TENCH], [TABBY, TENCH], classes=CLASSES))
    assert not {"mistake_distance", "egregious_share", "egregious_mistakes"} & set(faultless)


def test_mistakes_that_are_all_near_have_no_gallery(predictions_of: Any) -> None:
    found = found_in(predictions_of([TABBY], [EGYPTIAN_CAT], classes=CLASSES))
    assert found["egregious_share"].value == 0
    assert "egregious_mistakes" not in found


def test_without_wnids_nothing_is_said_of_distance(predictions_of: Any) -> None:
    plain = Classes(CLASSES.names)
    assert "mistake_distance" not in found_in(predictions_of([0, 1], [1, 2], classes=plain))
    assert "mistake_distance" not in found_in(predictions_of([0, 1], [1, 2], classes=None))


def test_classes_outside_the_tree_are_left_out_and_counted(predictions_of: Any) -> None:
    classes = Classes(("background", *CLASSES.names), ("background", *CLASSES.keys))
    found = found_in(predictions_of([1, 1, 1], [0, 2, 3], classes=classes))["mistake_distance"]
    assert found.images == 2
    assert found.convention["not in WordNet"] == "1 of 3 misclassifications, left out"
    strange = Classes(("a", "b"), ("background", "foreground"))
    assert "mistake_distance" not in found_in(predictions_of([0], [1], classes=strange))


def test_what_counts_as_general_is_above_a_third_of_all_nouns_and_nothing_else_is() -> None:
    tree = wordnet()
    assert {wnid: tree.name(wnid) for wnid in GENERAL} == GENERAL
    below = Counter(above for wnid in tree.rows for above in tree.steps_up(wnid))
    assert {wnid for wnid, nouns in below.items() if 3 * nouns > len(tree)} == set(GENERAL)


def test_classes_that_are_mixed_up_often_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    labels, answers = generator.integers(20, size=(2, 50_000))
    wrong = np.flatnonzero(labels != answers)
    looked_up: Counter[str] = Counter()
    apart = mistakes._apart
    monkeypatch.setattr(mistakes, "_apart", lambda tree, *pair: looked_up.update([str(pair)]) or apart(tree, *pair))
    found = severity(ilsvrc_classes().keys, labels[:, None], answers, wrong)
    assert len(found.rows) == len(wrong) > 45_000
    assert len(looked_up) == 20 * 19
    assert set(looked_up.values()) == {1}


def test_unlabelled_images_are_no_mistakes(predictions_of: Any) -> None:
    predictions = dataclasses.replace(predictions_of([0, 0], [1, 3], classes=CLASSES), labels=np.array([[TABBY], [-1]]))
    assert found_in(predictions)["mistake_distance"].images == 1
