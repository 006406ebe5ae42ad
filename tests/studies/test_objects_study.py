"""Objects in their images, alone and enlarged, worked by hand."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from shiftproof.datasets import ImageList, open_dataset
from shiftproof.datasets.boxed.crops import crops
from shiftproof.datasets.subsets import View
from shiftproof.metrics.accuracy import to_top5
from shiftproof.models import wrap_model
from shiftproof.options import PredictionSettings
from shiftproof.runs.predict import fill_studies
from shiftproof.runs.store import Store
from shiftproof.studies.measure import measure
from shiftproof.studies.objects import scales as object_scales
from shiftproof.studies.objects.scales import largest_factors
from shiftproof.studies.objects.study import ObjectStudy, share_findings
from shiftproof.types import (
    Curve,
    Dataset,
    DatasetRef,
    Finding,
    Gallery,
    Inputs,
    Logits,
    Measurement,
    ModelRef,
    Predictions,
    Run,
)
from studies.contracts import findings_of, skipped_by

MODEL = ModelRef("net", "m")

# larger sides of 0.8, 0.35, 0.4, then 0.2 and 0.025 of the image's: factors 1, 1/2, 1/2, 1/4 and 1/16
IMAGES = {"a.png": [(0, [0, 0, 400, 200])], "b.png": [(1, [10, 10, 175, 100])], "c.png": [(0, [0, 0, 200, 30])]}
IMAGES |= {"d.png": [(1, [100, 100, 100, 50]), (0, [3, 3, 5, 10])]}
SIZE = (500, 400)

# by object: right in the image, cut out, alone, enlarged
RIGHT = {
    "a.png/000": (True, True, True, True),
    "b.png/000": (False, True, True, True),
    "c.png/000": (False, False, False, True),
    "d.png/000": (True, True, False, False),
    "d.png/001": (True, False, False, True),
}


def boxed_file(folder: Path, name: str = "boxes", sizes: bool = True) -> ImageList:
    numbers = {image: number for number, image in enumerate(IMAGES)}
    size = {"width": SIZE[0], "height": SIZE[1]} if sizes else {}
    images = [{"id": number, "file_name": image, **size} for image, number in numbers.items()]
    boxes = [
        {"image_id": numbers[image], "category_id": label, "bbox": box}
        for image, objects in IMAGES.items()
        for label, box in objects
    ]
    categories = [{"id": 0, "name": "cat"}, {"id": 1, "name": "dog"}]
    (folder / "a.png").touch()  # nobody opens it
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"images": images, "annotations": boxes, "categories": categories}))
    return open_dataset(path)


def answers_to(images: Dataset, right: Sequence[bool]) -> Predictions:
    labels = np.array([(*sample.labels, -1)[:2] for sample in images.samples])
    logits = np.zeros((len(right), 3))
    logits[np.arange(len(right)), np.where(right, labels[:, 0], 2)] = 2
    facts = {
        name: tuple(sample.facts.get(name) for sample in images.samples)
        for name in dict.fromkeys(name for sample in images.samples for name in sample.facts)
    }
    ids = tuple(sample.id for sample in images.samples)
    return Predictions(ids, labels, "logits", to_top5(logits, "logits"), images.classes, facts=facts)


class Answers:
    """What the model says of each view, and the sets themselves."""

    def __init__(self, whole: ImageList, views: dict[str, ImageList], beside: Sequence[ImageList] = ()) -> None:
        in_image = {one.rpartition("/")[0]: verdicts[0] for one, verdicts in RIGHT.items()}
        self.sets = {one.ref: one for one in (whole, *views.values(), *beside)}
        self.answers = {whole.ref: answers_to(whole, [in_image[sample.id] for sample in whole.samples])}
        for place, view in enumerate(("crop", "alone", "enlarged"), start=1):
            if view in views:
                verdicts = [RIGHT[sample.id][place] for sample in views[view].samples]
                self.answers[views[view].ref] = answers_to(views[view], verdicts)

    def __call__(self, run: Run) -> Predictions:
        return self.answers[run.dataset]

    def images(self, ref: DatasetRef) -> Dataset:
        return self.sets[ref]


def views_of(images: ImageList) -> dict[str, ImageList]:
    return {view: crops(images, view=view) for view in ("crop", "alone", "enlarged")}


@pytest.fixture
def findings(tmp_path: Path) -> list[Finding]:
    images = boxed_file(tmp_path)
    views = views_of(images)
    study = ObjectStudy([MODEL], images, views=views)  # type: ignore[arg-type]
    return findings_of(study, Answers(images, views))


def numbers(findings: Sequence[Finding], metric: str, **about: str) -> dict[tuple[str | int, ...], Measurement]:
    """By what tells them apart beside the model and the set."""
    return {
        tuple(value for key, value in one.about.items() if key not in ("model", "dataset", *about)): one
        for one in findings
        if isinstance(one, Measurement) and one.metric == metric and about.items() <= dict(one.about).items()
    }


def test_accuracy_in_each_look_is_that_of_the_objects(findings: list[Finding]) -> None:
    found = {view: (one.value, one.images) for (view,), one in numbers(findings, "object_accuracy").items()}
    # d.png is right in its image, and so are both objects in it
    assert found == {"image": (3 / 5, 5), "crop": (3 / 5, 5), "alone": (2 / 5, 5), "enlarged": (4 / 5, 5)}
    (stated,) = {one.convention["objects"] for one in numbers(findings, "object_accuracy").values()}
    assert stated == "5 in 4 images"


def test_an_object_that_was_not_read_in_one_look_counts_in_none(tmp_path: Path) -> None:
    images = boxed_file(tmp_path)
    views = views_of(images)
    answers = Answers(images, views)
    alone = answers.answers[views["alone"].ref]
    answers.answers[views["alone"].ref] = alone.take(np.array([key != "b.png/000" for key in alone.ids]))
    study = ObjectStudy([MODEL], images, views=views)  # type: ignore[arg-type]
    found = numbers(findings_of(study, answers), "object_accuracy")
    assert {view: (one.value, one.images) for (view,), one in found.items()} == {
        "image": (3 / 4, 4), "crop": (2 / 4, 4), "alone": (1 / 4, 4), "enlarged": (3 / 4, 4),
    }  # fmt: skip
    assert found[("image",)].convention["left out"] == "1 of 5 objects"


def test_the_share_of_a_class_is_that_of_its_objects_in_images_of_known_size(tmp_path: Path) -> None:
    objects = crops(boxed_file(tmp_path))
    samples = [dataclasses.replace(one, facts={}) if one.id == "a.png/000" else one for one in objects.samples]
    findings = list(share_findings(dataclasses.replace(objects, samples=samples), of="boxes", beside=None))
    cat = numbers(findings, "class_object_share")[("cat",)]
    assert cat.images == 2
    assert cat.value == pytest.approx((200 * 30 + 5 * 10) / 2 / (500 * 400))


def test_removing_the_background_and_enlarging_are_told_apart_and_add_up(findings: list[Finding]) -> None:
    found = {effect: one.value for (effect,), one in numbers(findings, "object_difference").items()}
    # alone: b is won, both of d are lost; enlarged from there: c and the second of d are won
    assert found == {
        "background removed": pytest.approx(-1 / 5),
        "object enlarged": pytest.approx(2 / 5),
        "both": pytest.approx(1 / 5),
        "cropped": 0.0,
    }
    assert found["background removed"] + found["object enlarged"] == pytest.approx(found["both"])
    # five objects in four images are four cases, too few to tell how images differ
    assert not numbers(findings, "object_difference_p")
    for one in numbers(findings, "object_difference").values():
        assert (one.ends, one.images, one.clusters) == (None, 5, 4)
        assert one.how_sure == "too few: 4 source images, and each is one cluster; at least 5 are needed"


def test_objects_stand_in_the_bin_of_their_larger_side_in_the_whole_image(findings: list[Finding]) -> None:
    found = numbers(findings, "scale_factor_accuracy", view="enlarged")
    assert {key: (one.value, one.images) for key, one in found.items()} == {
        ("1", 224): (1.0, 1),  # a: 400 of 500
        ("1/2", 112): (1.0, 2),  # b: 175 of 500; c: 200 of 500
        ("1/4", 56): (0.0, 1),  # the first of d: 100 of 500
        ("1/16", 14): (1.0, 1),  # the second of d: 10 of 400
    }
    alone = numbers(findings, "scale_factor_accuracy", view="alone")
    assert alone["1/2", 112].value == 1 / 2
    assert "count twice" in alone["1/2", 112].convention["scale factor"]


def test_shares_of_scale_factors_sum_to_the_accuracy_overall(findings: list[Finding]) -> None:
    for (view,), overall in numbers(findings, "object_accuracy").items():
        bins = numbers(findings, "scale_factor_accuracy", view=str(view)).values()
        assert sum(one.value * one.images for one in bins) == pytest.approx(overall.value * overall.images)
        assert sum(one.images for one in bins) == overall.images


def test_the_share_of_a_class_is_the_mean_over_its_objects(findings: list[Finding]) -> None:
    found = {name: one.value for (name,), one in numbers(findings, "class_object_share").items()}
    area = SIZE[0] * SIZE[1]
    assert found["cat"] == pytest.approx((400 * 200 + 200 * 30 + 5 * 10) / area / 3, abs=1e-6)
    assert found["dog"] == pytest.approx((175 * 100 + 100 * 50) / area / 2, abs=1e-6)


def test_shares_are_counted_beside_those_of_another_set(tmp_path: Path) -> None:
    images = boxed_file(tmp_path)
    views, beside = views_of(images), crops(boxed_file(tmp_path, "others"), name="others")
    study = ObjectStudy([MODEL], images, views=views, beside=beside)  # type: ignore[arg-type]
    found = findings_of(study, Answers(images, views, [beside]))
    own, other = (one for one in found if isinstance(one, Curve))
    assert (own.about["objects_of"], other.about["objects_of"]) == ("boxes", "others")
    assert own.y == other.y
    # 0.4 in bin 8; 0.0875 in bin 1; 0.03, 0.025 and 0.00025 in the first: counted by hand, each bin 0.05 wide
    assert own.counts == (3, 1, *[0] * 6, 1, *[0] * 11)
    (overlap,) = numbers(found, "object_share_overlap").values()
    assert overlap.value == pytest.approx(1.0)
    assert overlap.images == 10


def test_objects_right_in_one_look_only_are_shown_in_their_box_and_enlarged(findings: list[Finding]) -> None:
    enlarged, in_image = (one for one in findings if isinstance(one, Gallery))
    assert (enlarged.name, in_image.name) == ("right_only_enlarged", "right_only_in_image")
    assert [item.id for item in enlarged.items] == ["b.png", "b.png/000", "c.png", "c.png/000"]
    assert [item.id for item in in_image.items] == ["d.png", "d.png/000"]
    (box,) = in_image.items[0].boxes
    assert box.box == pytest.approx((100 / 500, 100 / 400, 200 / 500, 150 / 400))
    assert (box.kind, box.caption) == ("truth", "dog")
    assert in_image.items[0].caption.startswith("dog; in its image: cat")  # any class of the image is right
    assert in_image.items[1].dataset is not None
    assert in_image.items[1].dataset.name == "objects enlarged of boxes"


def test_a_set_without_boxes_is_skipped_with_its_reason() -> None:
    study = ObjectStudy([MODEL], DatasetRef("photos", "p"))
    stored: dict[Run, Predictions] = {}
    nothing = stored.__getitem__
    assert study.runs() == []
    assert findings_of(study, nothing) == []
    assert skipped_by(study, nothing) == ["photos: objects and background are told apart by boxes, and the dataset has none"]


def test_without_the_sizes_of_images_there_are_no_scale_factors_and_no_shares(tmp_path: Path) -> None:
    images = boxed_file(tmp_path, sizes=False)
    views = views_of(images)
    study = ObjectStudy([MODEL], images, views=views)  # type: ignore[arg-type]
    found = findings_of(study, Answers(images, views))
    assert {one.metric for one in found if isinstance(one, Measurement)} == {
        "object_accuracy",
        "object_difference",
    }
    assert "scale factors need the sizes of the images" in skipped_by(study, Answers(images, views))[0]
    assert not any(item.boxes for one in found if isinstance(one, Gallery) for item in one.items)


def test_an_image_has_the_factor_of_its_largest_object(tmp_path: Path) -> None:
    assert largest_factors(boxed_file(tmp_path)) == {"a.png": 1.0, "b.png": 0.5, "c.png": 0.5, "d.png": 0.25}
    assert largest_factors(boxed_file(tmp_path, "unknown", sizes=False)) == {}


def test_crops_of_each_scale_are_shown_at_that_times_224_and_448_and_pooled_over_images(tmp_path: Path) -> None:
    """Worked by hand: right at SF x 224 a and d/001; at SF x 448 all but c, of 1, 2, 1 and 1 crops."""
    images = boxed_file(tmp_path)
    views = views_of(images)
    load = Answers(images, views)
    bins = {
        factor: View(views["crop"], images.classes, some, f"crops {factor}")
        for factor, some in object_scales.samples_by_factor(views["crop"]).items()
    }
    right = {224: {"a.png/000", "d.png/001"}, 448: {"a.png/000", "b.png/000", "d.png/000", "d.png/001"}}
    scaled = [
        object_scales.ScaledCrops(factor, times, ModelRef(f"net at {round(factor * times)}", str(times)), some)
        for times in right
        for factor, some in bins.items()
    ]

    def loaded(run: Run) -> Predictions:
        found = next((one for one in scaled if one.run == run), None)
        if found is None:
            return load(run)
        of_factor = bins[found.factor]
        return answers_to(of_factor, [sample.id in right[found.times] for sample in of_factor.samples])

    study = ObjectStudy(
        [MODEL],
        images,
        views=views,  # type: ignore[arg-type]
        scaled={"net": scaled},
        factors=tuple(bins),
        crop_sizes=(224, 448),
    )
    assert len(study.runs()) == 4 + 8
    found = findings_of(study, loaded)
    rows = {key: (one.value, one.images) for key, one in numbers(found, "scaled_crop_accuracy").items()}
    assert rows == {
        ("1", 224, 224): (1.0, 1), ("1/2", 224, 112): (0.0, 2), ("1/4", 224, 56): (0.0, 1), ("1/16", 224, 14): (1.0, 1),
        ("1", 448, 448): (1.0, 1), ("1/2", 448, 224): (0.5, 2), ("1/4", 448, 112): (1.0, 1), ("1/16", 448, 28): (1.0, 1),
    }  # fmt: skip
    totals = {key: (one.value, one.images) for key, one in numbers(found, "scaled_crop_total").items()}
    assert totals == {(224,): (2 / 5, 5), (448,): (4 / 5, 5)}, "plain means of the rows would be 2/4 and 3.5/4"
    assert not any("no crops at" in one for one in skipped_by(study, loaded))
    without_one = dataclasses.replace(study, scaled={"net": scaled[:-1]})
    assert set(numbers(findings_of(without_one, loaded), "scaled_crop_total")) == {(224,)}, "no total without all crops"
    assert any("no crops at 1/16 x 448" in one for one in skipped_by(without_one, loaded))


def test_an_image_without_objects_has_no_scale_factor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(IMAGES, "empty.png", [])
    images = boxed_file(tmp_path)
    assert "empty.png" in {sample.id for sample in images.samples}
    assert "empty.png" not in largest_factors(images)


def redness(inputs: Inputs) -> Logits:
    """Scores of red and blue, by the mean colour."""
    return np.asarray(np.asarray(inputs, np.float32).mean(axis=(2, 3))[:, [0, 2]])


def test_a_model_that_goes_by_the_background_gains_when_it_is_removed(tmp_path: Path) -> None:
    """Red things on blue ground, a sixteenth of the image each: only the thing alone is redder than blue."""
    image = np.full((64, 64, 3), (0, 0, 255), np.uint8)
    image[16:32, 16:32] = (255, 0, 0)
    for name in ("a.png", "b.png"):
        Pillow.fromarray(image).save(tmp_path / name)
    images = [{"id": place, "file_name": name, "width": 64, "height": 64} for place, name in enumerate(("a.png", "b.png"))]
    boxes = [{"image_id": place, "category_id": 0, "bbox": [16, 16, 16, 16]} for place in range(2)]
    categories = [{"id": 0, "name": "red"}, {"id": 1, "name": "blue"}]
    (tmp_path / "boxes.json").write_text(json.dumps({"images": images, "annotations": boxes, "categories": categories}))
    model = wrap_model(
        redness, name="hue", version="1", class_names=["red", "blue"], size=(32, 32), preprocess="squash,mean=0,std=1"
    )
    opened = open_dataset(tmp_path / "boxes.json")
    views = views_of(opened)
    study = ObjectStudy([model], opened, views=views)  # type: ignore[arg-type]
    sets = [opened, *views.values()]
    fill_studies(model, [study], sets, store=Store(tmp_path / "runs"), settings=PredictionSettings(workers=0))
    results = measure(study, store=tmp_path / "runs", datasets=sets)
    accuracy = {view: one.value for (view,), one in numbers(results.shown, "object_accuracy").items()}
    assert accuracy == {"image": 0.0, "crop": 1.0, "alone": 1.0, "enlarged": 1.0}
    assert results.skipped == ()
