"""What every study of the catalog promises, whatever the predictions hold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from shiftproof import catalog
from shiftproof.datasets.image_list import ImageList
from shiftproof.datasets.label_spaces import Scoring
from shiftproof.judging import Judged
from shiftproof.runs.plan import KnownInputs, measurable
from shiftproof.types import Caution, Classes, Curve, Finding, Gallery, Measurement, Predictions, Sample, Skipped, Study
from studies.contracts import check_number, findings_of, skipped_by

CASES = [
    "ordinary",
    "one image",
    "one class",
    "all skipped",
    "no images",
    "unlabelled",
    "partly labelled",
    "scores",
    "no names",
]


OF_CLASSES = [name for name in catalog.STUDIES if catalog.STUDIES.load(name).needs == "classes"]
"""Studies of boxes have contracts of their own, beside these."""


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, predictions_of: Any) -> tuple[str, Predictions, Predictions]:
    """A name and what two models said."""
    generator = np.random.default_rng(3)
    images = {"one image": 1, "all skipped": 0, "no images": 0}.get(request.param, 40)
    labels = generator.integers(1 if request.param == "one class" else 6, size=images)
    guesses = generator.integers(7, size=(2, images))
    predicted = np.where(generator.random((2, images)) < 0.6, labels, guesses)
    seen = labels.copy()
    seen[: {"unlabelled": images, "partly labelled": 15}.get(request.param, 0)] = -1
    options: dict[str, Any] = {
        "gives": "scores" if request.param == "scores" else "logits",
        "skipped_images": 0 if request.param == "no images" else 3,
        "with_logits": True,
        "facts": {"site": generator.choice(["pier", "dune"], size=images).tolist(), "width": list(range(images))},
    }
    if request.param == "no names":
        options["classes"] = None
    first, second = (predictions_of(seen, row, generator.uniform(0.3, 1, size=images), **options) for row in predicted)
    return request.param, first, second


FOUND: dict[tuple[str, str], list[Finding]] = {}
"""By study and case: what the first test finds twice alike is not measured again by those after it."""


def found_by(name: str, case: Any, stored: Any) -> list[Finding]:
    title, first, second = case
    if (name, title) not in FOUND:
        store = stored(first=first, second=second)
        FOUND[name, title] = findings_of(catalog.STUDIES.load(name).load_study()(store.models, store.dataset), store.load)
    return FOUND[name, title]


@pytest.mark.parametrize("name", OF_CLASSES)
def test_a_study_names_its_runs_first_reads_no_others_and_repeats(name: str, case: Any, stored: Any) -> None:
    title, first, second = case
    store = stored(first=first, second=second)
    study = catalog.STUDIES.load(name).load_study()(store.models, store.dataset)
    runs = study.runs()
    assert isinstance(catalog.STUDIES.load(name).load_study()(store.models, store.dataset), Study)
    assert store.asked == []
    findings, again = [*study.measure(store.load)], [*study.measure(store.load)]
    assert set(store.asked) <= set(runs)
    assert repr(findings) == repr(again)
    assert any(not isinstance(found, Caution) for found in findings)
    FOUND[name, title] = [found for found in findings if not isinstance(found, (Skipped, Caution))]


@pytest.mark.parametrize("name", OF_CLASSES)
def test_every_number_says_what_it_is_of_how_many_images_and_by_which_convention(name: str, case: Any, stored: Any) -> None:
    title, first, _ = case
    for found in found_by(name, case, stored):
        assert found.about["dataset"] == "photos"
        if isinstance(found, Gallery):
            assert {item.id for item in found.items} <= set(first.ids)
            continue
        assert 1 <= found.images <= len(first)
        assert found.convention["classes"] == "all 7"
        assert found.convention["picture"]
        assert found.convention["skipped images"] == f"3 of {len(first) + 3}"
        assert ("without label" in found.convention) == (title == "partly labelled")
        if isinstance(found, Measurement):
            check_number(found)
        if isinstance(found, Curve):
            assert found.counts is not None
            # the points of a curve share the images out, or have all of them each, or more and more until they have all
            growing = list(found.counts) == sorted(found.counts) and found.counts[-1] == found.images
            assert sum(found.counts) == found.images or growing


@pytest.mark.parametrize("name", OF_CLASSES)
def test_a_verdict_has_words_for_every_number_that_may_be_a_weakness(name: str, case: Any, stored: Any) -> None:
    judge, findings = catalog.STUDIES.load(name).load_verdict(), found_by(name, case, stored)
    judged = Judged("first", [found for found in findings if found.about.get("model") == "first"])
    for candidate in judge.candidates(judged) if judge else ():
        assert candidate.section
        assert candidate.say(judged, candidate.found).sentence


@pytest.mark.parametrize("name", OF_CLASSES)
def test_nothing_read_is_nothing_measured_and_the_reason_is_given(name: str, predictions_of: Any, stored: Any) -> None:
    nothing = predictions_of([], [], skipped_images=4)
    store = stored(first=nothing, second=nothing)
    study = catalog.STUDIES.load(name).load_study()(store.models, store.dataset)
    assert findings_of(study, store.load) == []
    assert any("photos" in reason for reason in skipped_by(study, store.load))


@pytest.mark.parametrize("name", OF_CLASSES)
def test_without_labels_the_reason_is_given(name: str, predictions_of: Any, stored: Any) -> None:
    unlabelled = predictions_of([-1, -1], [0, 1])
    store = stored(first=unlabelled, second=unlabelled)
    study = catalog.STUDIES.load(name).load_study()(store.models, store.dataset)
    needing = study.needs_labels
    assert any("needs labels" in reason for reason in skipped_by(study, store.load)) == needing


@pytest.mark.parametrize("name", OF_CLASSES)
def test_what_a_study_foresees_is_what_happens(name: str, case: Any, stored: Any) -> None:
    title, first, second = case
    store = stored(first=first, second=second)
    study = catalog.STUDIES.load(name).load_study()(store.models, store.dataset)
    samples = [Sample(key, () if row[0] < 0 else (int(row[0]),)) for key, row in zip(first.ids, first.labels, strict=True)]
    classes = first.classes or Classes(tuple("abcdefg"))
    images = ImageList("photos", samples, classes, lambda _: None)  # type: ignore[arg-type, return-value]
    known = KnownInputs(lambda _: images, [first.classes, second.classes], Scoring())
    foreseen, found = measurable([study], known)[1], found_by(name, case, stored)
    assert not (foreseen and found)
    if title == "unlabelled":
        assert bool(foreseen) == (not found), "nothing will be measured, and nobody was told"
        assert set(foreseen) <= set(skipped_by(study, store.load)) or not study.runs()


@pytest.mark.parametrize("name", catalog.STUDIES)
def test_a_study_takes_objects_that_have_a_ref_and_holds_only_the_ref(name: str, stored: Any) -> None:
    class Referred:
        published = cut = None
        preprocessing = SimpleNamespace(describe=dict)

        def __init__(self, ref: Any) -> None:
            self.ref = ref

    store = stored(first=None, second=None)
    study = catalog.STUDIES.load(name).load_study()
    by_object = study([Referred(model) for model in store.models], Referred(store.dataset))
    assert by_object == study(store.models, store.dataset)
    assert hash(by_object) == hash(study(store.models, store.dataset))
