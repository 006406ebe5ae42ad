"""A model among published ones under natural shifts: what compares with them, and effective robustness by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from scipy.stats import linregress, norm

from shiftproof.datasets.image_list import FilesBelow, ImageList
from shiftproof.errors import BadInput
from shiftproof.reference import ilsvrc_classes, load_table, wnids_of
from shiftproof.studies.accuracy.options import AccuracyOptions
from shiftproof.studies.accuracy.study import AccuracyStudy
from shiftproof.types import Classes, Dataset, DatasetRef, Measurement, ModelRef, Predictions, Run, Sample, Top5
from studies.contracts import findings_of, skipped_by

MODEL = ModelRef("mine", "1")
ILSVRC = ilsvrc_classes()
HARD = Classes(tuple(wnids_of("imagenet_a_classes")), tuple(wnids_of("imagenet_a_classes")))


def dataset(published: str | None, classes: Classes, images: int) -> ImageList:
    samples = [Sample(f"{place}.jpg", (place % len(classes),)) for place in range(images)]
    return ImageList(published or "own", samples, classes, FilesBelow("/nowhere"), published=published)


def answers(images: ImageList, right: int, classes: Classes | None = None) -> Predictions:
    """The first so many classified correctly, the others as the next class."""
    labels = np.array([sample.labels for sample in images.samples])
    scored = classes or images.classes
    assert scored is not None
    first = np.where(np.arange(len(labels)) < right, labels[:, 0], (labels[:, 0] + 1) % len(scored))
    top5 = Top5(first[:, None], np.ones((len(labels), 1), np.float32), np.zeros(len(labels), np.float32))
    return Predictions(tuple(sample.id for sample in images.samples), labels, "logits", top5, scored)


@dataclasses.dataclass(frozen=True)
class Loads:
    """Predictions and datasets by name."""

    answers: Mapping[str, Predictions]
    sets: Mapping[str, ImageList]

    def __call__(self, run: Run, /) -> Predictions:
        return self.answers[run.dataset.name]

    def images(self, ref: DatasetRef) -> Dataset:
        return self.sets[ref.name]


def measured(
    images: ImageList, predictions: Predictions, *, imagenet: tuple[ImageList, Predictions] | None = None, **options: Any
) -> tuple[dict[str, Measurement], list[str]]:
    """The numbers of one dataset as a whole by metric, and what was left out."""
    sets = {one.ref.name: one for one in (images, *([imagenet[0]] if imagenet else []))}
    found = {images.ref.name: predictions, **({imagenet[0].ref.name: imagenet[1]} if imagenet else {})}
    study = AccuracyStudy([MODEL], images, imagenet=imagenet[0] if imagenet else None, **options)
    load = Loads(found, sets)
    numbers = [one for one in findings_of(study, load) if isinstance(one, Measurement)]
    return {one.metric: one for one in numbers if set(one.about) == {"model", "dataset"}}, skipped_by(study, load)


V2 = dataset("imagenet-v2", ILSVRC, 2000)


def trend(column: str, least: float = 0.0, most: float = 100.0) -> Any:
    """The probit trend of models trained on ImageNet-1k, of these accuracies on ImageNet, by scipy from the table itself."""
    rows = [row for row in load_table("timm_imagenet_shifts") if row["family"] == "ImageNet-1k"]
    rows = [row for row in rows if least <= float(row["imagenet"]) < most]
    shares = [[float(row[name]) / 100 for row in rows] for name in ("imagenet", column)]
    return linregress(norm.ppf(shares[0]), norm.ppf(shares[1]))


@pytest.mark.parametrize(
    ("published", "original", "line"),
    [
        ("imagenet-v2", 0.75, trend("v2")),
        ("imagenet-a", 0.75, trend("a", most=76.13)),  # less accurate than the ResNet-50 whose errors ImageNet-A holds
        ("imagenet-a", 0.85, trend("a", least=76.13)),
    ],
)
def test_effective_robustness_is_the_distance_above_the_trend(published: str, original: float, line: Any) -> None:
    images = dataset(published, HARD if published == "imagenet-a" else ILSVRC, 2000)
    numbers, _ = measured(images, answers(images, 1300), imagenet_accuracy=original)
    expected = norm.cdf(line.intercept + line.slope * norm.ppf(original))
    robustness = numbers["shift_effective_robustness"]
    assert robustness.value == pytest.approx(0.65 - expected)
    assert robustness.ends is not None
    assert robustness.ends[0] < robustness.value < robustness.ends[1]
    assert numbers["top1_accuracy"].as_published
    assert numbers["imagenet_accuracy"].value == original
    assert numbers["imagenet_accuracy"].interval is None


def test_its_interval_holds_the_images_and_one_more_model_about_the_trend() -> None:
    line, rows = trend("v2"), load_table("timm_imagenet_shifts")
    x = norm.ppf([float(row["imagenet"]) / 100 for row in rows if row["family"] == "ImageNet-1k"])
    y = norm.ppf([float(row["v2"]) / 100 for row in rows if row["family"] == "ImageNet-1k"])
    place = norm.ppf(0.75)
    scatter = ((y - line.intercept - line.slope * x) ** 2).sum() / (len(x) - 2)
    of_models = scatter * (1 + 1 / len(x) + (place - x.mean()) ** 2 / ((x - x.mean()) ** 2).sum())
    of_images = 0.65 * 0.35 / 2000 / norm.pdf(norm.ppf(0.65)) ** 2
    reach = 1.96 * np.sqrt(of_models + of_images)
    height = line.intercept + line.slope * place
    robustness = measured(V2, answers(V2, 1300), imagenet_accuracy=0.75)[0]["shift_effective_robustness"]
    by_hand = 0.65 - norm.cdf(height + reach), 0.65 - norm.cdf(height - reach)
    assert robustness.ends == pytest.approx(by_hand, abs=5e-4)


def test_accuracy_measured_on_imagenet_widens_the_interval() -> None:
    imagenet = dataset("imagenet", ILSVRC, 2000)
    given = measured(V2, answers(V2, 1300), imagenet_accuracy=0.75)[0]
    numbers = measured(V2, answers(V2, 1300), imagenet=(imagenet, answers(imagenet, 1500)))[0]
    assert numbers["imagenet_accuracy"].value == 0.75
    assert numbers["imagenet_accuracy"].images == 2000
    assert numbers["imagenet_accuracy"].interval is not None
    exact, wider = given["shift_effective_robustness"], numbers["shift_effective_robustness"]
    assert exact.value == pytest.approx(wider.value)
    assert exact.ends is not None
    assert wider.ends is not None
    assert np.ptp(wider.ends) > 1.2 * np.ptp(exact.ends)


def test_other_clean_images_are_not_taken_for_imagenet() -> None:
    other = dataset(None, ILSVRC, 2000)
    numbers, skipped = measured(V2, answers(V2, 1300), imagenet=(other, answers(other, 1500)))
    assert "shift_effective_robustness" not in numbers
    assert any("not ImageNet validation" in reason for reason in skipped)


def test_without_an_accuracy_on_imagenet_there_is_only_the_shift() -> None:
    numbers, skipped = measured(V2, answers(V2, 1300))
    assert numbers["top1_accuracy"].as_published
    assert not {"imagenet_accuracy", "shift_effective_robustness"} & numbers.keys()
    assert skipped == []


def test_scored_among_all_classes_imagenet_a_compares_with_no_published_number() -> None:
    hard = dataset("imagenet-a", HARD, 400)
    numbers, skipped = measured(hard, answers(hard, 200, ILSVRC), imagenet_accuracy=0.75)
    assert not numbers["top1_accuracy"].as_published
    assert "shift_effective_robustness" not in numbers
    assert any("among its 200 classes, and 1,000 were scored" in reason for reason in skipped)


def test_several_labels_missing_classes_and_unknown_datasets_compare_with_none() -> None:
    several = dataclasses.replace(V2, samples=[dataclasses.replace(one, labels=(0, 1)) for one in V2.samples])
    for images in (several, dataset("imagenet-v2", ILSVRC, 500), dataset(None, ILSVRC, 2000)):
        numbers, _ = measured(images, answers(images, 300), imagenet_accuracy=0.75)
        assert not numbers["top1_accuracy"].as_published


def test_all_correct_has_no_place_on_probit_axes() -> None:
    numbers, skipped = measured(V2, answers(V2, 2000), imagenet_accuracy=0.75)
    assert "shift_effective_robustness" not in numbers
    assert any("effective robustness" in reason for reason in skipped)


def test_an_accuracy_given_for_several_models_or_other_images_is_refused() -> None:
    context: Any = None
    options = AccuracyOptions(imagenet_accuracy=0.75)
    with pytest.raises(BadInput, match="of one model"):
        options.assemble(AccuracyStudy, [MODEL, ModelRef("other", "2")], V2, context)
    with pytest.raises(BadInput, match="no natural shift of ImageNet"):
        options.assemble(AccuracyStudy, [MODEL], dataset(None, ILSVRC, 10), context)
    with pytest.raises(BadInput, match="imagenet accuracy should be above 0 and below 1"):
        AccuracyOptions(imagenet_accuracy=75.0)
