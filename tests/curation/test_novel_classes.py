"""Novel classes: small cases by hand, and the counts of the published lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from shiftproof.curation.novel_classes import (
    ORGANISM,
    IDClasses,
    Selection,
    noun_named,
    select_novel_classes,
    sister_pairs,
    wnids_from,
)
from shiftproof.datasets.wordnet import WordNet, wordnet
from shiftproof.errors import BadInput
from shiftproof.reference import ilsvrc_classes, wnids_of

ILSVRC = ilsvrc_classes().keys
PUBLISHED = wnids_of("imagenet_ood_classes")

ENTITY, TOOL, CUTTER, KNIFE, BREAD_KNIFE, AXE, SAW, HANDSAW, BEAST, CAT = (f"n{place:08}" for place in range(10))
NAMES = ("entity", "tool", "cutter", "knife", "bread knife", "axe", "saw", "handsaw", "beast", "cat")
ABOVE = {TOOL: ENTITY, CUTTER: TOOL, KNIFE: CUTTER, BREAD_KNIFE: KNIFE, AXE: CUTTER, SAW: TOOL, HANDSAW: SAW}
ABOVE |= {BEAST: ENTITY, CAT: BEAST}


@pytest.fixture(scope="module")
def tools() -> WordNet:
    """entity - (tool - (cutter - (knife - bread knife, axe), saw - handsaw), beast - cat)."""
    wnids = (ENTITY, TOOL, CUTTER, KNIFE, BREAD_KNIFE, AXE, SAW, HANDSAW, BEAST, CAT)
    return WordNet({wnid: f"{ABOVE.get(wnid, '')}\t\t{name}" for wnid, name in zip(wnids, NAMES, strict=True)})


def reasons(selection: Selection) -> dict[str, tuple[str, str | None]]:
    return {removal.wnid: (removal.reason, removal.cause) for removal in selection.removed}


def left(selection: Selection) -> list[int]:
    return [step.left for step in selection.steps]


def test_every_class_that_goes_has_its_reason_and_its_cause(tools: WordNet) -> None:
    candidates = [TOOL, CUTTER, KNIFE, BREAD_KNIFE, AXE, SAW, HANDSAW, BEAST, CAT]
    found = select_novel_classes([KNIFE], candidates, subtrees=[BEAST], tree=tools)
    assert found.classes == (AXE, SAW, HANDSAW)
    assert left(found) == [9, 8, 5, 3]
    assert reasons(found) == {
        KNIFE: ("is an ID class", KNIFE),
        TOOL: ("is a hypernym of knife", KNIFE),
        CUTTER: ("is a hypernym of knife", KNIFE),
        BREAD_KNIFE: ("is a hyponym of knife", KNIFE),
        BEAST: ("lies under beast", BEAST),
        CAT: ("lies under beast", BEAST),
    }


def test_sisters_stand_right_beside_an_inside_class(tools: WordNet) -> None:
    found = select_novel_classes([KNIFE], [AXE, SAW, HANDSAW], subtrees=[], sisters_only=True, tree=tools)
    assert found.classes == (AXE,)
    assert reasons(found)[SAW] == ("is no sister of an ID class", None)
    assert sister_pairs([KNIFE, SAW], [AXE, HANDSAW, CUTTER], tree=tools) == [(AXE, KNIFE), (CUTTER, SAW)]


def test_the_boundary_widens_a_class_as_far_as_it_meets_no_other(tools: WordNet) -> None:
    # the knife can be any cutter, the cat any beast: above both is the entity, which holds the two
    inside = IDClasses(tools, frozenset([KNIFE, CAT]))
    assert inside.boundary == {TOOL: KNIFE, BEAST: CAT}
    found = select_novel_classes([KNIFE, HANDSAW], [AXE, CAT], subtrees=[], boundary="before", tree=tools)
    assert found.classes == (CAT,)
    assert reasons(found)[AXE] == ("lies under cutter, which holds no ID class but knife", CUTTER)


def test_before_and_after_differ_in_their_steps_and_reasons_alone(tools: WordNet) -> None:
    candidates: list[str] = [AXE, SAW, CAT]
    options: dict[str, Any] = {"subtrees": [], "sisters_only": True, "tree": tools}
    before = select_novel_classes([KNIFE, HANDSAW], candidates, boundary="before", **options)
    after = select_novel_classes([KNIFE, HANDSAW], candidates, boundary="after", **options)
    assert before.classes == after.classes == ()
    assert (left(before), left(after)) == ([3, 3, 2, 1, 0], [3, 3, 2, 1, 0])
    assert (reasons(before)[CAT][0], reasons(after)[AXE][0]) == (
        "is no sister of an ID class",
        "lies under cutter, which holds no ID class but knife",
    )


def test_every_candidate_is_kept_or_removed_once_and_duplicates_count_once(tools: WordNet) -> None:
    candidates = [AXE, AXE, KNIFE, CAT]
    found = select_novel_classes([KNIFE], candidates, subtrees=[BEAST], tree=tools)
    assert Counter([*found.classes, *(removal.wnid for removal in found.removed)]) == Counter(set(candidates))
    assert left(found)[0] == 3


def test_a_persons_choice_is_a_step_like_the_others(tools: WordNet) -> None:
    found = select_novel_classes([KNIFE], [AXE, SAW], subtrees=[], chosen={SAW}, tree=tools)
    assert found.classes == (SAW,)
    assert reasons(found) == {AXE: ("was not chosen", None)}


@pytest.mark.parametrize(
    ("inside", "candidates", "told"),
    [
        ([], [AXE], "there are no ID classes"),
        ([KNIFE], [], "there are no candidates"),
        ([KNIFE], [AXE, "n99999999"], "1 of 2 candidates are not in WordNet 3.0: n99999999"),
    ],
)
def test_empty_and_unknown_lists_are_refused(
    tools: WordNet, inside: Sequence[str], candidates: Sequence[str], told: str
) -> None:
    with pytest.raises(BadInput, match=told):
        select_novel_classes(inside, candidates, tree=tools)


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "counts", "pairs"),
    [
        ("imagenet21k_miil_synsets", [11_221, 10_230, 8_946, 4_922, 1_783], 4_187),
        ("imagenet21k_miil_w21_synsets", [10_450, 9_459, 8_187, 4_922, 1_783], 4_187),
        # 3 fewer than by kinds alone: Genet, Munro and Stoker are examples of diplomats and writers, and so organisms
        ("imagenet22k_synsets", [21_841, 20_842, 18_836, 9_187 - 3, 2_990], 6_804),
    ],
)
def test_the_steps_leave_what_others_counted(real_data: Path, name: str, counts: list[int], pairs: int) -> None:
    found = select_novel_classes(ILSVRC, wnids_from(real_data / "lists" / f"{name}.txt"), sisters_only=True)
    assert left(found) == counts
    assert len(sister_pairs(ILSVRC, found.classes)) == pairs


@pytest.mark.real
@pytest.mark.parametrize(("boundary", "counts"), [("before", [4_922, 3_411, 585]), ("after", [4_922, 600, 585])])
def test_the_boundary_comes_before_or_after_the_choice_of_the_published_classes(
    real_data: Path, boundary: Any, counts: list[int]
) -> None:
    candidates = wnids_from(real_data / "lists" / "imagenet21k_miil_synsets.txt")
    found = select_novel_classes(ILSVRC, candidates, boundary=boundary, chosen=frozenset(PUBLISHED))
    assert left(found)[3:] == counts


def test_the_boundary_of_ilsvrc_has_1036_nodes() -> None:
    inside = IDClasses(wordnet(), frozenset(ILSVRC))
    assert len(inside.boundary) == 1_036
    assert set(inside.boundary.values()) == set(ILSVRC)
    for node, own in inside.boundary.items():
        assert [wnid for wnid in ILSVRC if node in wordnet().steps_up(wnid)] == [own]


def test_600_of_the_637_published_classes_stay_and_these_37_go() -> None:
    tree, found = wordnet(), select_novel_classes(ILSVRC, PUBLISHED)
    assert len(found.classes) == 600
    by_reason = {removal.reason: [one for one in found.removed if one.reason == removal.reason] for removal in found.removed}
    assert {reason: len(gone) for reason, gone in by_reason.items()} == {
        "is a hyponym of bubble": 1,
        "is a hypernym of hand blower": 1,
        "is a hypernym of sewing machine": 1,
        "lies under organism": 34,
    }
    related = [tree.name(one.wnid) for one in found.removed if one.cause != ORGANISM]
    assert sorted(related) == ["blower", "shaving cream", "textile machine"]
    organisms = [one.wnid for one in by_reason["lies under organism"]]
    persons = {tree.name(wnid) for wnid in organisms if noun_named("person") in tree.ancestors(wnid)}
    assert persons == {
        *("astronaut", "ballet dancer", "beekeeper", "cheerleader", "fireman", "nurse", "referee", "reporter", "weatherman")
    }
    assert sum("n00017222" in tree.ancestors(wnid) for wnid in organisms) == 25  # plants


@pytest.mark.real
def test_428_of_the_600_are_sisters(real_data: Path) -> None:
    found = select_novel_classes(ILSVRC, PUBLISHED, sisters_only=True)
    assert left(found)[-2:] == [600, 428]
