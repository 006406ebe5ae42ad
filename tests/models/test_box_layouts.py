"""Known boxes are written down as each kind of network would, and read back."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shiftproof.catalog import BOX_LAYOUTS
from shiftproof.errors import BadInput, UnknownName
from shiftproof.models.object_detectors.box_layouts import class_count, guess_layout, layout_of
from shiftproof.models.object_detectors.loaded import BatchShape, BoxRules, Candidates, batch_shape

BATCH = BatchShape(2, 96, 160)
OBJECTS: list[list[tuple[tuple[float, ...], float, int, float]]] = [  # by image: corners, objectness, class, its share
    [((10.0, 20, 50, 60), 0.9, 2, 0.8), ((100, 4, 156, 90), 0.6, 0, 0.5)],
    [((64, 64, 80, 96), 0.7, 1, 0.9)],
]
CLASSES = 3
BOXES = 2  # the longest list


def logit(share: float) -> float:
    return float(np.log(share / (1 - share)))


def middle(box: Sequence[float]) -> tuple[float, float, float, float]:
    left, top, right, bottom = box
    return (left + right) / 2, (top + bottom) / 2, right - left, bottom - top


def dense(decoded: bool) -> NDArray[Any]:
    """As YOLOX: one row for each cell of three grids, an object in the cell of the middle grid that its middle lies in."""
    rows = np.zeros((2, 12 * 20 + 6 * 10 + 3 * 5, 5 + CLASSES), np.float32)
    for image, objects in enumerate(OBJECTS):
        for box, sure, place, share in objects:
            x, y, width, height = middle(box)
            column, row = int(x // 16), int(y // 16)
            numbers = [x, y, width, height]
            if not decoded:
                numbers = [x / 16 - column, y / 16 - row, np.log(width / 16), np.log(height / 16)]
            cell = rows[image, 12 * 20 + row * 10 + column]
            cell[:4], cell[4], cell[5 + place] = numbers, sure, share
    return rows


def fastestdet() -> NDArray[Any]:
    maps = np.zeros((2, 5 + CLASSES, 6, 10))
    for image, objects in enumerate(OBJECTS):
        for box, sure, place, share in objects:
            x, y, width, height = middle(box)
            column, row = int(x // 16), int(y // 16)
            cell = maps[image, :, row, column]
            cell[0], cell[5 + place] = sure, share
            cell[1:3] = np.arctanh([x / 16 - column, y / 16 - row])
            cell[3:5] = [logit(width / 160), logit(height / 96)]
    return maps


def listed(kind: str) -> dict[str, NDArray[Any]]:
    boxes, scores, classes = np.zeros((2, BOXES, 4)), np.zeros((2, BOXES)), np.zeros((2, BOXES), int)
    for image, objects in enumerate(OBJECTS):
        for place, (box, sure, kind_of, share) in enumerate(objects):
            boxes[image, place], scores[image, place], classes[image, place] = box, sure * share, kind_of
    counts = np.array([[2], [1]])
    if kind == "rows of 7":
        rows = [
            (image, *boxes[image, place], classes[image, place], scores[image, place])
            for image in (0, 1)
            for place in range(counts[image, 0])
        ]
        return {"output": np.array(rows)}
    if kind == "rows of 6":
        return {"output0": np.concatenate([boxes, scores[..., None], classes[..., None]], axis=2)}
    if kind == "score behind the corners":
        return {"dets": np.concatenate([boxes, scores[..., None]], axis=2), "labels": classes}
    if kind == "without names":
        return {"1": counts, "2": boxes, "3": scores, "4": classes}
    if kind == "ssd":
        shares = boxes[..., [1, 0, 3, 2]] / [96, 160, 96, 160]
        names = ("raw_detection_boxes", "detection_boxes", "detection_scores", "detection_classes", "num_detections")
        return dict(zip(names, (shares * 0, shares, scores, classes.astype(float), counts[:, 0] * 1.0), strict=True))
    return {"num_dets": counts, "det_boxes": boxes, "det_scores": scores, "det_classes": classes}


def detr(*, softmax: bool) -> dict[str, NDArray[Any]]:
    boxes, logits = np.full((2, 5, 4), 0.5), np.full((2, 5, CLASSES + softmax), -30.0)
    logits[..., -1] += 30 * softmax  # no object
    for image, objects in enumerate(OBJECTS):
        for place, (box, sure, kind_of, share) in enumerate(objects):
            boxes[image, 2 * place] = np.divide(middle(box), (160, 96, 160, 96))
            # against nothing alone, a softmax is a sigmoid
            logits[image, 2 * place, kind_of] = logit(sure * share)
    return {"logits": logits, "pred_boxes": boxes}


WRITTEN: list[tuple[str, dict[str, NDArray[Any]]]] = [
    ("yolox", {"output": dense(False)}),
    ("yolox-decoded", {"output": dense(True)}),
    ("yolov5", {"output": dense(True), "more": np.zeros((2, 3, 4, 5))}),
    ("fastestdet", {"758": fastestdet()}),
    *(
        ("end2end", listed(kind))
        for kind in ("rows of 7", "rows of 6", "score behind the corners", "without names", "apart")
    ),
    ("ssd", listed("ssd")),
    ("detr", detr(softmax=True)),
    ("rtdetr", detr(softmax=False)),
]


@pytest.mark.parametrize(("layout", "outputs"), WRITTEN)
def test_a_layout_gives_back_the_boxes_that_were_written_in_it(layout: str, outputs: dict[str, NDArray[Any]]) -> None:
    proposed = layout_of(layout)(outputs, BATCH)
    assert len(proposed) == 2
    for candidates, objects in zip(proposed, OBJECTS, strict=True):
        found = BoxRules(score_threshold=0.05, nms_iou=None).found_among(candidates)
        ordered = sorted(objects, key=lambda one: -one[1] * one[3])
        assert found.classes.tolist() == [place for _, _, place, _ in ordered]
        assert found.boxes == pytest.approx(np.array([box for box, *_ in ordered]), abs=1e-3)
        by_name = {"fastestdet": [sure**0.6 * share**0.4 for _, sure, _, share in ordered]}
        assert found.scores == pytest.approx(by_name.get(layout, [sure * share for _, sure, _, share in ordered]), abs=1e-6)


@pytest.mark.parametrize(("layout", "kind"), [("end2end", "apart"), ("end2end", "without names"), ("ssd", "ssd")])
def test_what_fills_a_list_up_to_the_longest_is_no_box(layout: str, kind: str) -> None:
    assert [len(candidates.boxes) for candidates in layout_of(layout)(listed(kind), BATCH)] == [2, 1]


@pytest.mark.parametrize("layout", ["detr", "rtdetr"])
def test_logits_are_found_by_their_name_behind_another_output(layout: str) -> None:
    outputs = detr(softmax=layout == "detr")
    plain, beside = (layout_of(layout)(some, BATCH) for some in (outputs, {"hidden": np.ones((2, 5, 8)), **outputs}))
    assert all(np.array_equal(one.scores, other.scores) for one, other in zip(plain, beside, strict=True))


def test_without_objectness_the_classes_speak_alone() -> None:
    rows = dense(True)
    outputs = {"output0": np.delete(rows, 4, axis=2).transpose(0, 2, 1)}
    (first, _) = layout_of("yolov8")(outputs, BATCH)
    found = BoxRules(nms_iou=None).found_among(first)
    assert found.scores == pytest.approx([0.8, 0.5])
    assert found.boxes[0] == pytest.approx([10, 20, 50, 60], abs=1e-3)


def test_boxes_of_one_image_need_no_axis_of_images() -> None:
    outputs = {"boxes": np.array([[1.0, 2, 3, 4]]), "labels": np.array([5]), "scores": np.array([0.25])}
    (candidates,) = layout_of("end2end")(outputs, BatchShape(1, 96, 160))
    expected = Candidates(*outputs.values())._replace(scores=outputs["scores"], classes=outputs["labels"])
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(candidates, expected, strict=True))  # type: ignore[arg-type]


def test_every_layout_is_tested() -> None:
    assert {layout for layout, _ in WRITTEN} | {"yolov8"} == set(BOX_LAYOUTS.built_in)


def test_a_decoded_export_is_not_read_as_cells_of_a_grid() -> None:
    with pytest.raises(BadInput, match="say yolox-decoded"):
        layout_of("yolox")({"output": dense(True)}, BATCH)
    with pytest.raises(BadInput, match="should give 315 boxes of 96x160 inputs, got 7"):
        layout_of("yolox")({"output": np.zeros((2, 7, 8))}, BATCH)


@pytest.mark.parametrize(
    ("layout", "shape", "answer"),
    [
        ("yolov5", (2, 8), "no output has 3 axes"),
        ("end2end", (2, 8), "should be \\(boxes, 7\\)"),
        ("ssd", (2, 8), "by name or by form"),
        ("detr", (2, 5, 4), "wants logits"),
    ],
)
def test_outputs_of_another_layout_are_told(layout: str, shape: tuple[int, ...], answer: str) -> None:
    with pytest.raises(BadInput, match=answer):
        layout_of(layout)({"output": np.zeros(shape)}, BATCH)


def test_a_slip_in_the_name_of_a_layout_is_answered() -> None:
    with pytest.raises(UnknownName, match="did you mean yolox"):
        layout_of("yolo-x")


@pytest.mark.parametrize(
    ("shapes", "size", "layout"),
    [
        ({"output": (1, 3549, 85)}, (416, 416), "yolox"),
        ({"output": ("batch", 8400, 85)}, (640, 640), "yolox"),
        ({"output0": (1, 25200, 85)}, (640, 640), "yolov5"),
        ({"output0": (1, 84, 8400)}, (640, 640), "yolov8"),
        ({"output0": (1, 116, 8400), "output1": (1, 32, 160, 160)}, (640, 640), "yolov8"),
        ({"output0": (1, 300, 6)}, (640, 640), "end2end"),
        ({"758": (1, 85, 22, 22)}, (352, 352), "fastestdet"),
        ({"num_dets": ("n", 1), "det_boxes": ("n", 100, 4), "det_classes": ("n", 100)}, (640, 640), "end2end"),
        ({"boxes": ("n", 4), "labels": ("n",), "scores": ("n",)}, None, "end2end"),
        ({"detection_boxes": (1, 100, 4), "detection_classes": (1, 100)}, None, "ssd"),
        ({"logits": (1, 100, 92), "pred_boxes": (1, 100, 4)}, (800, 800), "detr"),
        ({"logits": (1, 300, 80), "pred_boxes": (1, 300, 4)}, (640, 640), "rtdetr"),
        ({"logits": (1, 100, 12), "pred_boxes": (1, 100, 4)}, (800, 800), None),
        ({"logits": (1, 1000)}, (224, 224), None),
        ({"scores": ("n", 7)}, (224, 224), None),
        ({"logits": (1, 1000), "features": (1, 1280)}, (224, 224), None),
        ({"maps": (1, 21, 224, 224)}, (224, 224), None),
        ({"output": (1, "n", 85)}, None, None),
    ],
)
def test_shapes_tell_a_layout_or_none(shapes: Any, size: Any, layout: str | None) -> None:
    assert guess_layout(shapes, size) == layout


def test_a_graph_that_suppresses_or_takes_powers_says_so_itself() -> None:
    assert guess_layout({"output": ("n", 7)}, (640, 640), suppresses=True) == "end2end"
    assert guess_layout({"output": (1, 3549, 85)}, (416, 416), decodes=True) == "yolox-decoded"


@pytest.mark.parametrize(
    ("layout", "shapes", "count"),
    [
        ("yolox", {"output": (1, 3549, 85)}, 80),
        ("yolov8", {"output0": (1, 84, 8400), "output1": (1, 32, 160, 160)}, 80),
        ("fastestdet", {"758": (1, 25, 22, 22)}, 20),
        ("detr", {"pred_boxes": (1, 100, 4), "logits": (1, 100, 4)}, 3),
        ("end2end", {"output": ("n", 7)}, None),
        ("yolox", {"output": (1, 3549, "numbers")}, None),
    ],
)
def test_classes_are_counted_where_shapes_tell(layout: str, shapes: Any, count: int | None) -> None:
    assert class_count(layout, shapes) == count


def test_inputs_are_measured_in_their_own_order_of_axes() -> None:
    assert batch_shape(np.zeros((2, 3, 96, 160)), "nchw") == batch_shape(np.zeros((2, 96, 160, 3)), "nhwc") == BATCH
