"""Label spaces: set labels and model columns meet by wnid, name, number or order, or the error says why not."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from numpy.typing import NDArray

from shiftproof.datasets.classes import numbered_classes
from shiftproof.datasets.label_spaces import LabelSpace, match_classes, merge_classes, padded_labels
from shiftproof.datasets.labels import classes_of_wnids
from shiftproof.errors import BadInput, ClassMismatch, NotKept
from shiftproof.reference import ilsvrc_all_names, ilsvrc_classes, wnids_of
from shiftproof.types import Classes, Gives, Head, Predictions, Sample, Top5

ILSVRC = ilsvrc_classes()
PETS = Classes(("cat", "dog", "eel"))


def _predictions(
    logits: NDArray[np.floating], labels: list[list[int]], *, gives: Gives = "logits", head: Head | None = None
) -> Predictions:
    order = np.argsort(-logits, axis=1, kind="stable")[:, :5]
    total = np.log(np.exp(logits).sum(axis=1))
    top5 = Top5(order, np.take_along_axis(logits, order, axis=1), total)
    ids = tuple(map(str, range(len(logits))))
    return Predictions(ids, np.array(labels), gives, top5, logits=logits, head=head)


def test_full_only_moves_labels_and_needs_no_logits() -> None:
    space = match_classes(Classes(("dog", "Cat")), PETS, outputs=3)
    kept = _predictions(np.array([[0.1, 0.9, 0.0], [0.8, 0.1, 0.1]]), [[0, -1], [1, 0]])
    projected = space.project(dataclasses.replace(kept, logits=None))
    assert projected.labels.tolist() == [[1, -1], [0, 1]]
    assert projected.top5 is kept.top5
    assert projected.classes == PETS
    assert projected.convention == {"classes": "all 3", "labels": "matched by name"}


def test_a_subset_scores_among_the_classes_of_the_images_alone() -> None:
    space = match_classes(Classes(("eel", "cat")), PETS, outputs=3, scored="subset")
    head = Head(np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0, 3.0]))
    projected = space.project(_predictions(np.array([[1.0, 9.0, 2.0], [3.0, 9.0, 0.0]]), [[0], [1]], head=head))
    assert projected.logits is not None
    assert projected.logits.tolist() == [[2.0, 1.0], [0.0, 3.0]]
    assert projected.top5.classes.tolist() == [[0, 1], [1, 0]]
    assert projected.labels.tolist() == [[0], [1]]
    assert projected.top5.log_total == pytest.approx(np.log(np.exp(projected.logits).sum(axis=1)))
    assert projected.convention["classes"] == "2 of 3"
    assert projected.head is not None
    assert projected.head.weights.tolist() == [[4.0, 5.0], [0.0, 1.0]]


def test_a_class_the_model_lacks_is_not_even_among_the_five_best() -> None:
    space = match_classes(Classes(("eel", "hat", "cat")), PETS, outputs=3, scored="subset", unmatched="wrong")
    projected = space.project(_predictions(np.array([[1.0, 9.0, 2.0]]), [[1]]))
    assert projected.top5.classes.tolist() == [[0, 2]]


def test_a_subset_needs_logits() -> None:
    space = match_classes(Classes(("eel", "cat")), PETS, outputs=3, scored="subset")
    with pytest.raises(NotKept, match="--keep logits"):
        space.project(dataclasses.replace(_predictions(np.ones((1, 3)), [[0]]), logits=None))


def test_the_subset_of_imagenet_a_is_200_of_1000() -> None:
    classes = classes_of_wnids(wnids_of("imagenet_a_classes"))
    for of_model in (ILSVRC, None):
        space = match_classes(classes, of_model, outputs=1000, scored="subset")
        assert space.convention["classes"] == "200 of 1000"
        assert [ILSVRC.keys[columns[0]] for columns in space.columns] == list(classes.keys)


def test_probabilities_of_a_subset_are_those_of_a_softmax_over_it() -> None:
    logits = np.random.default_rng(0).normal(size=(4, 3))
    whole = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    space = match_classes(Classes(("eel", "cat")), PETS, outputs=3, scored="subset")
    projected = space.project(_predictions(whole, [[0]] * 4, gives="probabilities"))
    part = np.exp(logits[:, [2, 0]])
    assert projected.logits == pytest.approx(part / part.sum(axis=1, keepdims=True))


def test_probabilities_that_are_none_are_left_as_they_are() -> None:
    scores = np.array([[-1.0, -2.0, -3.0], [0.0, 1.0, 0.0]])
    space = match_classes(Classes(("eel", "cat")), PETS, outputs=3, scored="subset")
    projected = space.project(_predictions(scores, [[0]] * 2, gives="probabilities"))
    assert projected.logits is not None
    assert projected.logits.tolist() == [[-3.0, -1.0], [0.0, 0.0]]


def test_a_class_the_model_lacks_is_an_error_that_lists_it() -> None:
    with pytest.raises(
        ClassMismatch, match="2 of 3 classes of the images are not among the 3 classes of the model: pants, hat;"
    ):
        match_classes(Classes(("cat", "pants", "hat")), PETS, outputs=3)
    wnids = Classes(("tench", "trousers"), ("n01440764", "n09999999"))
    with pytest.raises(ClassMismatch, match=r"1 of 2 .*: trousers \(n09999999\);"):
        match_classes(wnids, None, outputs=1000)


@pytest.mark.parametrize("scored", ["full", "subset"])
def test_lacking_classes_can_be_left_unlabelled_or_counted_wrong(scored: str) -> None:
    classes = Classes(("cat", "hat"))
    predictions = _predictions(np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]), [[0], [1]])
    left_out = match_classes(classes, PETS, outputs=3, scored=scored, unmatched="unlabelled").project(predictions)  # type: ignore[arg-type]
    assert left_out.labels.tolist() == [[0], [-1]]
    assert left_out.convention["classes the model lacks"] == "1, left unlabelled"
    wrong = match_classes(classes, PETS, outputs=3, scored=scored, unmatched="wrong").project(predictions)  # type: ignore[arg-type]
    assert wrong.labels[0, 0] == 0
    assert wrong.classes is not None
    assert wrong.classes.names[wrong.labels[1, 0]] == "hat"
    assert wrong.logits is not None
    assert np.isneginf(wrong.logits[:, wrong.labels[1, 0]]).all()
    assert wrong.top5.classes[:, 0].tolist() == [0, 0]


def test_names_match_whatever_their_case_underscores_and_spaces() -> None:
    space = match_classes(Classes(("Great_White_Shark", "TINCA  tinca", "n01443537")), None, outputs=1000)
    assert space.label_of == (2, 0, 1)
    assert "taken as ILSVRC-2012" in space.convention["labels"]


def test_every_unambiguous_wordnet_name_leads_to_its_class() -> None:
    names = ilsvrc_all_names()
    firsts = [name[0].casefold() for name in names]
    owners: dict[str, set[int]] = {}
    for place, synonyms in enumerate(names):
        for name in synonyms:
            owners.setdefault(name.casefold(), set()).add(place)
    chosen = {n: p for n, places in owners.items() if len(places) == 1 for p in places if firsts.count(n) <= 1}
    space = match_classes(Classes(tuple(chosen)), ILSVRC, outputs=1000)
    assert space.label_of == tuple(chosen.values())
    assert len(chosen) > 1500


@pytest.mark.parametrize("name", ["crane", "maillot", "Cardigan", "panther"])
def test_an_ambiguous_name_asks_for_wnids(name: str) -> None:
    with pytest.raises(ClassMismatch, match=f"'{name}' is the name of 2 classes of the model; use wnids"):
        match_classes(Classes((name, "tench")), ILSVRC, outputs=1000)


def test_a_first_name_goes_before_another_classes_second_one() -> None:
    space = match_classes(Classes(("missile",)), ILSVRC, outputs=1000)
    assert ilsvrc_all_names()[space.label_of[0]][0] == "missile"


def test_a_model_that_names_ilsvrc_in_order_has_its_wnids() -> None:
    named = Classes(tuple(", ".join(names) for names in ilsvrc_all_names()))
    of_set = classes_of_wnids(["n02012849", "n03126707"])  # the two cranes
    assert match_classes(of_set, named, outputs=1000).label_of == (134, 517)
    with_background = Classes(("background", *ILSVRC.names))
    assert match_classes(of_set, with_background, outputs=1001).label_of == (135, 518)


def test_a_few_named_outputs_meet_wnid_folders_through_wordnet() -> None:
    space = match_classes(classes_of_wnids(["n01440764", "n01443537"]), Classes(("Goldfish", "Tinca tinca")), outputs=2)
    assert space.label_of == (1, 0)


def test_a_nameless_model_of_1001_outputs_has_a_background_first() -> None:
    space = match_classes(classes_of_wnids(["n01440764"]), None, outputs=1001)
    assert space.label_of == (1,)
    assert space.classes.names[0] == "background"
    assert space.convention["labels"].endswith("1001 outputs taken as background and ILSVRC-2012")


def test_a_nameless_model_of_as_many_outputs_is_matched_by_order() -> None:
    space = match_classes(PETS, None, outputs=3)
    assert space.label_of == (0, 1, 2)
    assert space.convention["labels"].startswith("matched by order")
    with pytest.raises(ClassMismatch, match=r"3 classes \(cat, dog, eel\) and the model has 10 outputs without names"):
        match_classes(PETS, None, outputs=10)


def test_numbers_are_columns_unless_there_may_be_a_background() -> None:
    assert match_classes(numbered_classes(7), None, outputs=10).label_of == tuple(range(7))
    assert match_classes(numbered_classes(7), ILSVRC, outputs=1000).label_of == tuple(range(7))
    with pytest.raises(ClassMismatch, match="labels go up to 11 but the model has 10 outputs"):
        match_classes(numbered_classes(12), None, outputs=10)
    with pytest.raises(ClassMismatch, match="may be a background class"):
        match_classes(numbered_classes(1000), None, outputs=1001)


def test_a_model_that_names_another_number_of_classes_is_refused() -> None:
    with pytest.raises(ClassMismatch, match="has 10 outputs but names 3 classes"):
        match_classes(PETS, PETS, outputs=10)
    with pytest.raises(BadInput, match="'full' or 'subset'"):
        match_classes(PETS, PETS, outputs=3, scored="half")  # type: ignore[arg-type]


GROUPS = {"fish": ["tench", "n01443537"], "bird": ["cock", "hen", "ostrich"]}


@pytest.mark.parametrize(
    ("rule", "expected"), [("max", [5.0, 6.0]), ("mean", [3.0, 3.0]), ("sum", [6.0, 9.0]), ("median", [3.0, 2.0])]
)
def test_merged_classes_are_scored_by_the_rule(rule: str, expected: list[float]) -> None:
    space = merge_classes(GROUPS, rule=rule)  # type: ignore[arg-type]
    logits = np.full((1, 1000), 50.0)
    logits[0, [0, 1, 7, 8, 9]] = [1, 5, 1, 6, 2]
    projected = space.project(_predictions(logits, [[1]]))
    assert projected.logits is not None
    assert projected.logits.tolist() == [expected]
    assert projected.labels.tolist() == [[1]]
    assert projected.head is None
    assert projected.convention["classes"] == f"2 merged by {rule} from 5 of 1000"


def test_images_may_be_labelled_by_group_or_by_member() -> None:
    assert merge_classes(GROUPS, of_set=Classes(("Bird", "fish"))).label_of == (1, 0)
    assert merge_classes(GROUPS, of_set=classes_of_wnids(["n01440764", "n01514668", "n01514859"])).label_of == (0, 1, 1)
    with pytest.raises(ClassMismatch, match="1 of 2 classes of the images"):
        merge_classes(GROUPS, of_set=Classes(("bird", "stone")))
    space = merge_classes(GROUPS, of_set=Classes(("stone", "bird")), unmatched="unlabelled")
    assert space.label_of == (-1, 1)
    space = merge_classes(GROUPS, of_set=Classes(("stone", "bird")), unmatched="wrong")
    assert space.label_of == (2, 1)
    assert space.columns[2] == ()
    assert space.classes.names == ("fish", "bird", "stone")


def test_a_group_the_model_lacks_never_wins() -> None:
    space = merge_classes({"toilet": [], "fish": ["tench"]}, unmatched="wrong")
    logits = np.full((1, 1000), -7.0)
    projected = space.project(_predictions(logits, [[0]]))
    assert projected.logits is not None
    assert np.isneginf(projected.logits[0, 0])
    assert projected.top5.classes.tolist() == [[1]]


def test_members_that_are_unknown_or_stand_twice_are_refused() -> None:
    with pytest.raises(ClassMismatch, match="members of the class groups that are not classes of the model: unicorn"):
        merge_classes({"horse": ["unicorn"]})
    with pytest.raises(ClassMismatch, match="are in more than one class group: tench"):
        merge_classes({"fish": ["tench"], "food": ["Tinca tinca"]})
    with pytest.raises(BadInput, match="max, mean, sum, median"):
        merge_classes(GROUPS, rule="min")  # type: ignore[arg-type]


def test_two_classes_of_the_images_that_are_one_of_the_model_cannot_be_a_subset() -> None:
    twice = Classes(("tench", "goldfish", "Tinca_tinca"))
    assert match_classes(twice, ILSVRC, outputs=1000).label_of == (0, 1, 0)
    with pytest.raises(ClassMismatch, match="tench and Tinca_tinca are one class of the model; join them"):
        match_classes(twice, ILSVRC, outputs=1000, scored="subset")


def test_scores_of_another_width_are_refused() -> None:
    space = merge_classes(GROUPS)
    with pytest.raises(ClassMismatch, match="of a model with 1000 outputs, but the scores have 1001"):
        space.project(_predictions(np.zeros((1, 1001)), [[0]]))


def test_an_ambiguous_name_is_no_trouble_where_wnids_decide() -> None:
    of_set = classes_of_wnids(["n02012849", "n01440764"])
    assert of_set.names == ("tench", "crane")
    assert match_classes(of_set, Classes(("crane", "tench")), outputs=2).label_of == (1, 0)
    with pytest.raises(ClassMismatch, match="'crane' is the name of 2 classes of the model; use wnids on both sides"):
        match_classes(of_set, Classes(("tench", "crane", "crane")), outputs=3)


def test_half_precision_scores_are_merged_in_full_precision() -> None:
    logits = np.full((1, 1000), 40_000, np.float16)
    projected = merge_classes(GROUPS, rule="sum").project(_predictions(logits.astype(np.float64) / 1e3, [[0]]))
    assert projected.logits is not None
    half = merge_classes(GROUPS, rule="sum")._scores(logits, "logits")
    assert np.isfinite(half).all()


def test_padded_labels_have_a_row_for_every_sample() -> None:
    assert padded_labels([]).shape == (0, 1)
    assert padded_labels([Sample("a"), Sample("b")]).tolist() == [[-1], [-1]]
    assert padded_labels([Sample("a", (4, 2)), Sample("b", (1,))]).tolist() == [[4, 2], [1, -1]]


def test_a_space_is_a_plain_value() -> None:
    assert match_classes(PETS, PETS, outputs=3) == match_classes(PETS, PETS, outputs=3)
    assert isinstance(match_classes(PETS, PETS, outputs=3), LabelSpace)
