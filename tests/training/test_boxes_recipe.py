"""The recipe for object detectors without torchvision: its presets, boxes in mirrored pictures, what it refuses."""

from __future__ import annotations

import csv
import json
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shiftproof as sp
from boxed_toys import NAMES, draw_scenes
from shiftproof.datasets import open_dataset
from shiftproof.datasets.clusters import Clustering
from shiftproof.errors import BadInput, MissingExtra, UnknownName
from shiftproof.models import names_detector
from shiftproof.models.object_detectors.box_layouts import end2end
from shiftproof.models.object_detectors.loaded import BatchShape
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.options import ModelSettings
from shiftproof.runs.store import Store
from shiftproof.training.detectors.recipe import PRESETS, is_mirrored, mirror_at_random, mirrored
from shiftproof.training.detectors.targets import targets_of, to_input
from shiftproof.training.job import Job
from shiftproof.training.networks import schedule
from shiftproof.training.options import TrainOptions
from shiftproof.training.pictures import views
from shiftproof.training.recipe import chosen_recipes
from shiftproof.training.trainings import Request, checked_recipes, jobs_of, with_published
from shiftproof.types import Classes, Sample, Truths

INPUT = ImagePreprocessing(size=(60, 80), rule="letterbox", pad="corner")


def test_a_box_is_mirrored_with_its_picture() -> None:
    picture = np.zeros((10, 20, 3), np.uint8)
    picture[3:8, 2:6] = 255  # rows 3 to 8, columns 2 to 6
    for seed in range(8):
        rng = np.random.default_rng(seed)
        shown = mirror_at_random(picture, rng, [], flip=0.5)
        boxes = np.array([[2.0, 3, 6, 8]])
        if np.random.default_rng(seed).random() < 0.5:
            boxes = mirrored(boxes, 20)
            assert boxes.tolist() == [[14, 3, 18, 8]]
        ((left, top, right, bottom),) = boxes.astype(int).tolist()
        inside = np.zeros((10, 20), bool)
        inside[top:bottom, left:right] = True
        assert np.array_equal(shown[..., 0] > 0, inside)


def test_boxes_know_which_pictures_are_mirrored() -> None:
    picture = np.arange(300, dtype=np.uint16).astype(np.uint8).reshape(10, 10, 3)
    for recipe in ("boxes", "boxes?flip=0.9+noise", "boxes?flip=0+noise"):
        chosen = chosen_recipes(recipe)
        flip = float(chosen[0].settings["flip"])
        for epoch in range(12):
            (shown,) = views(picture, chosen[:1], [], key="a.png", epoch=epoch, seed=3)
            expected = picture[:, ::-1] if is_mirrored("a.png", epoch, 3, flip) else picture
            assert np.array_equal(shown, expected)


def filled(options: TrainOptions, images: int, *, preset: str, from_file: bool = False) -> TrainOptions:
    """The options with what the recipe brings to a training on so many images."""
    architecture = "torchvision:fasterrcnn_resnet50_fpn"
    return with_published(options, chosen_recipes(f"boxes:{preset}"), architecture, images=images, from_file=from_file)


def test_the_preset_of_vid_robust_is_the_published_one() -> None:
    text = resources.files("shiftproof.reference").joinpath("vid_robust_detector_training.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        preset = PRESETS["vid-robust"]
        assert preset.learning_rate == float(row["base_learning_rate"])
        assert preset.batch_size == int(row["batch_size"])
        assert preset.iterations == int(row["iterations"].replace("k", "000"))
        drops = [1000 * int(one.strip("k")) for one in row["learning_rate_schedule"].removeprefix("Step ").split(", ")]
        for images in (8000, 1_000_000):
            options = filled(TrainOptions(level="network"), images, preset="vid-robust")
            assert options.schedule == "step"
            steps = min(images // 8, 2500)
            assert options.epochs * steps == preset.iterations
            rates = schedule.Rates(options, steps, options.epochs)
            assert [rates.at(at, []) for one in drops for at in (one - 1, one)] == pytest.approx([1, 0.1, 0.1, 0.01])


def test_the_preset_of_a_plus_is_the_published_one_and_the_user_has_the_last_word() -> None:
    options = filled(TrainOptions(level="network"), 88_000, preset="a-plus", from_file=True)
    assert (options.learning_rate, options.batch_size, options.epochs, options.momentum) == (0.02, 16, 11, 0.9)
    assert (options.optimizer, options.schedule, options.milestones) == ("sgd", "step", (8, 10))
    assert options.freeze == ("first-block",)
    rates = schedule.Rates(options, 5500, 11)
    assert [rates.at(5500 * epoch, []) for epoch in (7, 8, 9, 10)] == pytest.approx([1, 0.1, 0.1, 0.01])
    assert filled(TrainOptions(level="network"), 88_000, preset="a-plus").freeze == ()  # random weights would stay so
    chosen = TrainOptions(level="network", epochs=22, learning_rate=0.3, schedule="step", batch_size=4)
    options = filled(chosen, 100, preset="a-plus")
    assert (options.epochs, options.milestones) == (22, (16, 20))
    assert (options.learning_rate, options.batch_size) == (0.3, 4)
    assert filled(TrainOptions(level="network", schedule="plateau"), 100, preset="a-plus").milestones == ()


def test_without_a_preset_the_rate_grows_with_the_batch() -> None:
    assert filled(TrainOptions(level="network", batch_size=4), 100, preset="").learning_rate == 0.005
    options = filled(TrainOptions(level="network"), 3, preset="")
    assert options.batch_size == 3
    assert options.learning_rate == pytest.approx(0.00375)
    assert (options.weight_decay, options.warmup, options.epochs) == (1e-4, 1.0, 10)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ("boxes:yolo", "no preset of boxes called 'yolo'"),
        ("boxes?flip=2", "flip should be a probability"),
        ("boxes?regions=0", "regions should be how many"),
        ("boxes?unlabelled=maybe", "no way to count classes that were not annotated called 'maybe'"),
    ],
)
def test_settings_that_cannot_be_trained_with_are_told(recipe: str, message: str) -> None:
    with pytest.raises((BadInput, UnknownName), match=message):
        chosen_recipes(recipe)


def test_recipes_that_move_objects_or_change_labels_are_not_joined_with_boxes() -> None:
    for other in ("augmix", "cutout", "mixup", "lp-ft", "linear-probe", "subset:imagenet-a", "balanced"):
        with pytest.raises(BadInput, match=r"is a recipe for classifiers|both change the"):
            checked_recipes(TrainOptions(level="network", recipe=f"boxes+{other}"), outliers=False)
    for other in ("noise", "corrupted:fog", "clahe", "ema", "wise-ft"):
        assert len(checked_recipes(TrainOptions(level="network", recipe=f"boxes+{other}"), outliers=False)) == 2
    with pytest.raises(BadInput, match="boxes is done at network level"):
        checked_recipes(TrainOptions(recipe="boxes"), outliers=False)


def truths(*rows: tuple[tuple[float, float, float, float], int, bool, bool]) -> Truths:
    boxes, classes, crowd, ignored = (np.array(column) for column in zip(*rows, strict=True))
    return Truths(("a",), np.zeros(len(rows), int), boxes.astype(float), classes, crowd, ignored, np.ones(len(rows)))


def test_boxes_lie_in_the_input_where_the_preprocessing_puts_them() -> None:
    assert to_input(np.array([[20.0, 40, 100, 200]]), (240, 320), INPUT).tolist() == [[5, 10, 25, 50]]
    # twice as wide as high: it fills the width, and the lower part of the input is empty
    assert to_input(np.array([[0.0, 0, 200, 100]]), (100, 200), INPUT).tolist() == [[0, 0, 80, 40]]
    image = np.zeros((100, 200, 3), np.uint8)
    image[20:60, 50:90] = 255
    ((left, top, right, bottom),) = to_input(np.array([[50.0, 20, 90, 60]]), (100, 200), INPUT).tolist()
    rows, columns = np.nonzero(INPUT.cut(image)[..., 0] > 200)
    assert (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1) == (left, top, right, bottom)


def test_boxes_are_clipped_and_those_without_area_crowds_and_ignored_objects_take_no_part() -> None:
    found = targets_of(
        [Sample("a", (0,))],
        [(240, 320)],
        truths(
            ((-40, 40, 100, 200), 0, False, False),
            ((400, 10, 500, 20), 1, False, False),  # outside
            ((10, 10, 12, 200), 1, False, False),  # half a pixel wide in the input
            ((0, 0, 100, 100), 1, True, False),
            ((0, 0, 100, 100), 1, False, True),
        ),
        Classes(("cat", "dog")),
        INPUT,
    )
    (objects,) = found.objects
    assert objects.boxes.tolist() == [[0, 10, 25, 50]]
    assert (objects.classes.tolist(), objects.unlabelled.tolist()) == ([0], [])
    assert found.notes == (
        "boxes outside of their image or under a pixel in the input, which took no part: 2",
        "crowds and ignored objects, which took no part: 2",
    )


def test_classes_that_were_not_annotated_in_an_image_are_known() -> None:
    classes, one = Classes(("cat", "dog", "owl")), truths(((20, 40, 100, 200), 1, False, False))

    def unlabelled(told: str | None, **options: bool) -> list[int]:
        facts = {} if told is None else {"annotated": told}
        found = targets_of([Sample("a", (1,), facts)], [(240, 320)], one, classes, INPUT, **options)
        return [int(place) for place in found.objects[0].unlabelled]

    assert unlabelled(None) == []
    assert unlabelled("dog") == [0, 2]
    assert unlabelled("dog | owl") == [0]
    assert unlabelled("dog", all_annotated=True) == []
    with pytest.raises(
        BadInput, match="a has boxes of dog, which are not among the classes that were annotated in it, 'cat'"
    ):
        unlabelled("cat")


def job_of(path: Path, folder: Path, **options: Any) -> Job:
    request = Request(
        model="torchvision:fasterrcnn_resnet18_fpn",
        source="",
        model_options=ModelSettings(),
        images=open_dataset(path),
        outliers=None,
        clustering=Clustering(),
        options=TrainOptions(level="network", recipe="boxes", **options),
        folder=folder / "out",
    )
    (job,) = jobs_of(request, Store(folder / "runs"))
    return job


def test_a_job_has_the_objects_of_each_split_and_depends_on_the_boxes(tmp_path: Path) -> None:
    red, blue = {"red": (2, 3, 12, 9)}, {"blue": (4, 4, 20, 20), "red": (0, 0, 8, 8)}
    path = draw_scenes(
        tmp_path / "scenes", {f"{number}.png": (red, blue)[number % 2] for number in range(10)} | {"x.png": {}}
    )
    job = job_of(path, tmp_path, validation=0.3)
    sides = [job.training, job.validation]
    assert sum(len(side.samples) for side in sides) == 10  # the one without objects takes no part
    assert all(side.samples for side in sides)
    assert job.classes.names == ("blue", "red")  # no object is green
    for side in sides:
        assert side.truths is not None
        assert side.truths.ids == tuple(sample.id for sample in side.samples)
        for sample in side.samples:
            rows = side.truths.take(side.truths.image == side.truths.ids.index(sample.id))
            names = {job.classes.names[place]: box for place, box in zip(rows.classes, rows.boxes.tolist(), strict=True)}
            scene = (red, blue)[int(sample.id.removesuffix(".png")) % 2]
            assert names == {name: list(map(float, box)) for name, box in scene.items()}
    again = job_of(path, tmp_path, validation=0.3)
    assert again.key == job.key
    told = json.loads(path.read_text())
    told["annotations"][0]["bbox"][0] += 1
    path.write_text(json.dumps(told))
    assert job_of(path, tmp_path, validation=0.3).key != job.key


def test_one_class_is_enough_and_photos_that_share_none_are_split_all_the_same(tmp_path: Path) -> None:
    path = draw_scenes(tmp_path / "one", {f"{number}.png": {"red": (2, 3, 12, 9)} for number in range(5)})
    assert job_of(path, tmp_path).classes.names == ("red",)
    alone = {name: {name: (2, 3, 12, 9)} for name in NAMES}
    path = draw_scenes(tmp_path / "alone", {f"{name}.png": scene for name, scene in alone.items()})
    job = job_of(path, tmp_path)
    assert (len(job.training.samples), len(job.validation.samples)) == (2, 1)


def test_a_dataset_without_boxes_is_told(tmp_path: Path) -> None:
    draw_scenes(tmp_path / "scenes")
    with pytest.raises(BadInput, match="scenes has no boxes, which an object detector is trained on: name a COCO file"):
        job_of(tmp_path / "scenes", tmp_path)
    path = draw_scenes(tmp_path / "empty", {"a.png": {}, "b.png": {}})
    with pytest.raises(BadInput, match=r"no image of boxes has a box of an object|has no boxes"):
        job_of(path, tmp_path)


def test_milestones_are_those_of_steps() -> None:
    with pytest.raises(BadInput, match="--schedule is cosine; say --schedule step too, or leave them out"):
        TrainOptions(level="network", milestones=(3,))
    options = TrainOptions(level="network", schedule="step", milestones=(3, 5))
    rates = schedule.Rates(options, 10, 8)
    assert [rates.at(step, []) for step in (29, 30, 49, 50)] == pytest.approx([1, 0.1, 0.1, 0.01])


def test_milestones_after_the_last_epoch_are_told() -> None:
    options = TrainOptions(level="network", schedule="step", milestones=(3, 5, 8), epochs=5)
    with pytest.raises(BadInput, match="training has 5 epochs, so --milestones 5, 8 would never come"):
        with_published(options, [], "resnet-8")
    # of the preset, which has eleven epochs and not the ten of the default
    late = TrainOptions(level="network", schedule="step", milestones=(10,))
    assert with_published(late, chosen_recipes("boxes:a-plus"), "resnet50", images=100).milestones == (10,)


def test_torchvision_is_asked_for_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("lightning_fabric", reason="lightning-fabric is not installed")
    monkeypatch.setitem(sys.modules, "torchvision", None)
    for name in [one for one in sys.modules if one.startswith("shiftproof.training.detectors.")]:
        monkeypatch.delitem(sys.modules, name)
    path = draw_scenes(tmp_path / "scenes")
    options = TrainOptions(level="network", recipe="boxes")
    with pytest.raises(
        MissingExtra, match=r"training object detectors needs: pip install 'shiftproof\[train,torchvision\]'"
    ):
        sp.train("torchvision:fasterrcnn_resnet18_fpn", path, tmp_path / "out", options=options, store=tmp_path / "runs")


def test_a_graph_that_finds_nothing_has_no_boxes() -> None:
    outputs: dict[str, Any] = {
        "boxes": np.zeros((0, 4), np.float32),
        "scores": np.zeros(0, np.float32),
        "labels": np.zeros(0, np.int64),
    }
    (found,) = end2end(outputs, BatchShape(1, 32, 32))
    assert [len(column) for column in found if column is not None] == [0, 0, 0]


def test_a_folder_is_known_to_hold_an_object_detector(tmp_path: Path) -> None:
    for name, told in {
        "boxes": {"outputs": ["boxes", "scores", "labels"]},
        "logits": {"outputs": ["logits"]},
        "odd": ["boxes"],
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "training.json").write_text(json.dumps(told))
    seeds = tmp_path / "seeds"
    (seeds / "seed-1").mkdir(parents=True)
    (seeds / "training.json").write_text(json.dumps({"chosen": "seed-1", "parts": ["seed-1"], "why": "the best"}))
    (seeds / "seed-1" / "training.json").write_text(json.dumps({"outputs": ["boxes"]}))
    names = ("boxes", "logits", "odd", "seeds")
    assert [names_detector(str(tmp_path / name), boxes=False) for name in names] == [True, False, False, True]


def test_detectors_are_not_compared_as_recipes(tmp_path: Path) -> None:
    path = draw_scenes(tmp_path / "scenes")
    with pytest.raises(BadInput, match="boxes trains object detectors"):
        sp.recipes(
            "lite:0", path, options=sp.GridOptions(level="network", recipes="baseline,boxes"), store=tmp_path / "runs"
        )
