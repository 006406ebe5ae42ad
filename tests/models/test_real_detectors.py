"""Two published detectors on photos whose class was chosen before anybody looked at a box."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow

from shiftproof.metrics.boxes import box_overlap
from shiftproof.models import load_detector
from shiftproof.models.object_detectors.loaded import LoadedDetector
from shiftproof.types import Found, Image

pytestmark = pytest.mark.real

EXPECTED = {
    "n02391049_zebra": "zebra",
    "n04285008_sports_car": "car",
    "n02690373_airliner": "airplane",
    "n02123045_tabby": "cat",
    "n02099601_golden_retriever": "dog",
    "n04146614_school_bus": "bus",
    "n02389026_sorrel": "horse",
    "n02132136_brown_bear": "bear",
    "n07873807_pizza": "pizza",
    "n07753592_banana": "banana",
    "n04487081_trolleybus": "bus",
    "n02124075_Egyptian_cat": "cat",
}


@pytest.fixture(scope="module")
def detectors(real_data: Path) -> dict[str, LoadedDetector]:
    pytest.importorskip("cv2", reason="opencv is not installed")
    found = {name: load_detector(str(real_data / "models" / f"{name}.onnx")) for name in ("yolox_nano", "FastestDet")}
    assert all(isinstance(detector, LoadedDetector) for detector in found.values())
    return found  # type: ignore[return-value]  # just asked


@pytest.fixture(scope="module")
def photos(real_data: Path) -> dict[str, Image]:
    folder = real_data / "ilsvrc-sample-1000"
    return {name: np.asarray(Pillow.open(folder / f"{name}.jpg").convert("RGB")) for name in EXPECTED}


def find(detector: LoadedDetector, images: list[Image]) -> list[Found]:
    inputs: NDArray[np.generic] = np.stack([detector.preprocessing.from_image(image) for image in images])
    return detector.detect(inputs, [(image.shape[0], image.shape[1]) for image in images])


def test_the_surest_box_is_of_the_class_in_the_photo(detectors: dict[str, LoadedDetector], photos: dict[str, Image]) -> None:
    for name, least in (("yolox_nano", 12), ("FastestDet", 10)):
        detector = detectors[name]
        assert detector.classes is not None
        said = [detector.classes.names[found.classes[0]] for found in find(detector, list(photos.values()))]
        right = sum(ours == expected for ours, expected in zip(said, EXPECTED.values(), strict=True))
        assert right >= least, dict(zip(EXPECTED, said, strict=True))


def test_boxes_lie_inside_the_photo_surest_first(detectors: dict[str, LoadedDetector], photos: dict[str, Image]) -> None:
    for detector in detectors.values():
        for image, found in zip(photos.values(), find(detector, list(photos.values())), strict=True):
            height, width = image.shape[:2]
            assert found.boxes.min() >= 0
            assert (found.boxes[:, 2:] <= [width, height]).all()
            assert (found.boxes[:, 2:] > found.boxes[:, :2]).all()
            assert (np.diff(found.scores) <= 0).all()
            assert found.scores[-1] >= 0.01
            assert len(found.scores) <= 100


def test_two_networks_with_nothing_in_common_put_the_object_in_the_same_place(
    detectors: dict[str, LoadedDetector], photos: dict[str, Image]
) -> None:
    places = []
    for detector in detectors.values():
        assert detector.classes is not None
        boxes = []
        for name, found in zip(EXPECTED.values(), find(detector, list(photos.values())), strict=True):
            mine = np.flatnonzero(found.classes == detector.classes.names.index(name))
            boxes.append(found.boxes[mine[0]])
        places.append(np.stack(boxes))
    shared = box_overlap(places[0], places[1], np.zeros(len(EXPECTED), bool))
    assert (shared > 0.5).sum() >= 11, dict(zip(EXPECTED, shared.round(2), strict=True))


def test_a_batch_finds_what_one_by_one_finds_whatever_the_threads(
    detectors: dict[str, LoadedDetector], photos: dict[str, Image], real_data: Path
) -> None:
    some = list(photos.values())[:4]
    for name, detector in detectors.items():
        together = find(detector, some)
        threaded = load_detector(str(real_data / "models" / f"{name}.onnx"), threads=2)
        assert isinstance(threaded, LoadedDetector)
        assert threaded.ref == detector.ref
        for image, ours in zip(some, together, strict=True):
            for other in (*find(detector, [image]), *find(threaded, [image])):
                assert np.allclose(ours.boxes, other.boxes, atol=1e-3)
                assert np.allclose(ours.scores, other.scores, atol=1e-3)
                assert np.array_equal(ours.classes, other.classes)
