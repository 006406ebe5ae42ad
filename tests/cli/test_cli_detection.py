"""Object detection as it is typed: results of another tool on drawn images, and real networks on real photos and a clip."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

from command import Said, Shiftproof
from scenes import coco_evaluation, coco_mean
from shiftproof.datasets import open_dataset
from shiftproof.metrics.boxes import COCO_OVERLAPS
from shiftproof.runs.load import load_found
from shiftproof.runs.store import Store
from shiftproof.types import Run
from toys import save_colour_network

BOXES = Path(__file__).parents[1] / "boxes"


def numbers(said: Said, metric: str) -> dict[tuple[Any, ...], float]:
    """Values by what they are about, beside model and dataset."""
    assert said.code == 0, said.err
    found = [one for one in json.loads(said.out)["findings"] if one["kind"] == "Measurement" and one["metric"] == metric]
    return {tuple(v for k, v in one["about"].items() if k not in ("model", "dataset")): one["value"] for one in found}


@pytest.fixture
def lamps(tmp_path: Path) -> Path:
    """Four images of a lamp each, and a results file that finds three of them, one of these not quite in place."""
    for number in range(4):
        Pillow.fromarray(np.full((40, 60, 3), 30 * number, np.uint8)).save(tmp_path / f"{number}.png")
    images = [{"id": number, "file_name": f"{number}.png", "width": 60, "height": 40} for number in range(4)]
    lamp = {"category_id": 1, "bbox": [10, 10, 20, 20], "area": 400, "iscrowd": 0}
    truths = [{"id": number, "image_id": number, **lamp} for number in range(4)]
    categories = [{"id": 1, "name": "lamp"}]
    (tmp_path / "boxes.json").write_text(json.dumps({"images": images, "annotations": truths, "categories": categories}))
    # 20 x 16 of 20 x 20 is an overlap of 0.8
    boxes = {0: ([10, 10, 20, 20], 0.9), 1: ([10, 10, 20, 20], 0.8), 2: ([10, 10, 20, 16], 0.7)}
    found = [{"image_id": number, "category_id": 1, "bbox": box, "score": score} for number, (box, score) in boxes.items()]
    (tmp_path / "found.json").write_text(json.dumps(found))
    return tmp_path


def test_results_of_another_tool_are_measured_at_the_overlaps_that_were_typed(shiftproof: Shiftproof, lamps: Path) -> None:
    said = shiftproof("run", "results:found.json?annotations=boxes.json", "boxes.json", "--iou", "0.5,0.9", "--json")
    precision = numbers(said, "mean_average_precision")
    # of COCO's 101 recalls 76 lie up to 3/4, and 51 up to 2/4
    assert precision == {("0.5",): pytest.approx(76 / 101), ("0.9",): pytest.approx(51 / 101)}
    assert (lamps / "report.html").exists()


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("--iou", "0.5,voc"), "--iou should be numbers, coco or ilsvrc"),
        (("--iou", ","), "at least one threshold"),
        (("--iou", "1.5"), "iou should lie above 0"),
        (("--studies", "detection-corruption", "--at", "model-size"), "boxes lie on the image as it is stored"),
        (("--studies", "detection-corruption", "--budget", "50"), "so --budget cannot be asked for; name fewer of them"),
        (("--largest-k", "100000"), "1<=x<=1000"),
        (("--class-groups", "coco"), "so --class-groups cannot be asked for; join or choose classes in the file of boxes"),
        (("--features", "layer", "--half"), "predicts boxes and takes no --features, --half"),
    ],
)
def test_slips_cost_one_sentence(asked: tuple[str, ...], told: str, shiftproof: Shiftproof, lamps: Path) -> None:
    said = shiftproof("run", "results:found.json?annotations=boxes.json", "boxes.json", *asked)
    assert said.code in (1, 2)
    assert told in said.err
    assert "Traceback" not in said.err


def test_a_detector_and_a_classifier_are_not_compared(shiftproof: Shiftproof, lamps: Path) -> None:
    save_colour_network(lamps / "colours.onnx")
    assert shiftproof("predict", "results:found.json?annotations=boxes.json", "boxes.json").code == 0
    assert shiftproof("predict", "colours.onnx", "boxes.json", "--preprocess", "unit").code == 0
    said = shiftproof("compare", "found", "colours", "boxes.json")
    assert said.code == 1
    assert "found predicts boxes and colours classes; compare models that predict the same" in said.err


@pytest.mark.real
def test_precision_of_a_real_network_on_real_photos_is_what_pycocotools_says(
    shiftproof: Shiftproof, real_data: Path, tmp_path: Path
) -> None:
    model = f"onnx:{real_data / 'models' / 'yolox_nano.onnx'}"
    photos = f"coco:{BOXES / 'photos.json'}?images={real_data / 'ilsvrc-sample-1000'}"
    said = shiftproof("run", model, photos, "--boxes", "yolox", "--studies", "detection", "--json", "--quiet")
    store, images = Store(tmp_path / "runs"), open_dataset(photos)
    (stored,) = store.models()
    found = load_found(Run(stored.ref, images.ref), images, store=store)
    assert found.truths is not None
    precision, _ = coco_evaluation(found.detections, found.truths, ious=COCO_OVERLAPS)
    ours = numbers(said, "mean_average_precision")
    assert ours["0.5",] == pytest.approx(coco_mean(precision[:1]), abs=1e-9)
    assert ours["0.75",] == pytest.approx(coco_mean(precision[5:6]), abs=1e-9)
    assert ours["0.5 to 0.95",] == pytest.approx(coco_mean(precision), abs=1e-9)
    assert ours["0.5",] > 0.5  # most objects of these photos are large, and a wrong reading of the outputs finds none
    assert numbers(said, "objects_to_find")[()] == int((~found.truths.crowd & ~found.truths.ignored).sum())
    assert '<svg class="boxes"' in (tmp_path / "report.html").read_text()


@pytest.mark.real
def test_corruption_takes_precision_from_a_real_network(shiftproof: Shiftproof, real_data: Path) -> None:
    model = f"onnx:{real_data / 'models' / 'yolox_nano.onnx'}"
    photos = f"coco:{BOXES / 'photos.json'}?images={real_data / 'ilsvrc-sample-1000'}"
    cells = ("--studies", "detection-corruption", "--corruptions", "gaussian_noise,brightness", "--severities", "5")
    said = shiftproof("run", model, photos, "--boxes", "yolox", *cells, "--json", "--quiet")
    (clean,) = numbers(said, "clean_average_precision").values()
    under = numbers(said, "corrupted_average_precision")
    assert under["gaussian_noise", 5] < 0.5 * clean
    assert under["gaussian_noise", 5] < under["brightness", 5] < clean
    (performance,) = numbers(said, "mean_performance_under_corruption").values()
    (share,) = numbers(said, "relative_performance_under_corruption").values()
    assert performance == pytest.approx(np.mean(list(under.values())))
    assert share == pytest.approx(performance / clean)


@pytest.mark.real
def test_a_real_network_loses_precision_on_the_worst_frames_of_a_real_clip(shiftproof: Shiftproof, real_data: Path) -> None:
    clip = real_data / "video" / "cockatoo.mp4"
    frames = f"boxed:clips:{clip}?anchors=20,185,250?boxes={BOXES / 'cockatoo.json'}"
    model = f"onnx:{real_data / 'models' / 'yolox_nano.onnx'}"
    asked = ("--studies", "detection", "--largest-k", "2", "--json", "--quiet")
    said = shiftproof("run", model, frames, "--boxes", "yolox", *asked)
    anchors, around = numbers(said, "anchor_average_precision"), numbers(said, "pm_k_average_precision")
    for task in ("detection", "localization"):
        assert anchors[task,] >= around[task, 1] >= around[task, 2]
    assert anchors["localization",] > anchors["detection",]  # it sees the bird, and often names it something else
    assert anchors["detection",] > around["detection", 2]
