"""Object detectors of every kind: what is asked, where boxes end up, and what is said where something does not fit."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow

import shiftproof as sp
from shiftproof.errors import BadInput, ClassMismatch, UnknownName
from shiftproof.models.object_detectors.loaded import LoadedDetector
from shiftproof.types import Inputs, ObjectDetector, RecordedDetector

Table = NDArray[np.floating]
NAMES = ["square", "round"]
ROWS = np.array([[16.0, 16, 8, 8, 0.9, 0.1, 0.8], [17, 16, 8, 8, 0.8, 0.2, 0.7], [40, 8, 16, 16, 0.7, 0.6, 0.1]])
"""Middle, sides, objectness and two classes of three boxes in an input of 32 x 64; the first two share 7 of 9 parts."""


@pytest.fixture
def make_detector(tmp_path: Path) -> Callable[..., Path]:
    """Writes a network that knows a table of numbers by heart, dimmed by how dark the image is, whatever its size."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    helper, numpy_helper, kind = onnx.helper, onnx.numpy_helper, onnx.TensorProto.FLOAT

    def make(table: Table = ROWS, *, batch: int | str = "batch", name: str = "found.onnx", **metadata: str) -> Path:
        still, dimmed = table[None].copy(), np.zeros((1, *table.shape))
        still[..., 4], dimmed[..., 4] = 0, table[:, 4]
        constants = {"still": still, "dimmed": dimmed}
        nodes = [
            helper.make_node("ReduceMean", ["images"], ["mean"], axes=[1, 2, 3], keepdims=0),
            helper.make_node("Unsqueeze", ["mean", "last"], ["light"]),
            helper.make_node("Mul", ["light", "dimmed"], ["dim"]),
            helper.make_node("Add", ["still", "dim"], ["output"]),
        ]
        graph = helper.make_graph(
            nodes,
            "found",
            [helper.make_tensor_value_info("images", kind, [batch, 3, 32, 64])],
            [helper.make_tensor_value_info("output", kind, [batch, *table.shape])],
            [
                *(numpy_helper.from_array(value.astype(np.float32), key) for key, value in constants.items()),
                numpy_helper.from_array(np.array([1, 2]), "last"),
            ],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        helper.set_model_props(model, metadata)
        onnx.save(model, tmp_path / name)
        return tmp_path / name

    return make


def load(spec: Path | str, **options: Any) -> LoadedDetector:
    detector = sp.load_detector(str(spec), **{"classes": NAMES, **options})
    assert isinstance(detector, LoadedDetector)
    return detector


def lights(*levels: float) -> Inputs:
    return np.stack([np.full((3, 32, 64), level, np.float32) for level in levels])


def test_boxes_are_read_suppressed_and_put_back_into_the_original(make_detector: Any) -> None:
    detector = load(make_detector(), layout="yolov5", preprocess="unit,resize=squash", several=False)
    assert isinstance(detector, ObjectDetector)
    (found,) = detector.detect(lights(1), [(320, 320)])  # ten times as high, five times as wide
    assert found.boxes.tolist() == [[60, 120, 100, 200], [160, 0, 240, 160]]
    assert found.scores == pytest.approx([0.72, 0.42])
    assert found.classes.tolist() == [1, 0]


def test_a_letterbox_is_taken_off_again(make_detector: Any) -> None:
    detector = load(make_detector(), layout="yolov5", preprocess="unit,resize=letterbox", several=False)
    # 64 x 64 fits as 32 x 32 with 16 columns of padding on each side, at half the size
    found = detector.detect(lights(1), [(64, 64)])[0]
    assert found.boxes.tolist() == [[0, 24, 8, 40], [32, 0, 64, 32]]  # the first reached into the padding
    assert found.scores[0] == pytest.approx(0.72)


def test_a_box_in_the_padding_alone_is_none(make_detector: Any) -> None:
    padding = np.array([[4.0, 16, 8, 8, 0.9, 1, 0]])
    detector = load(make_detector(padding), layout="yolov5", preprocess="unit,resize=letterbox")
    assert len(detector.detect(lights(1), [(64, 64)])[0].scores) == 0


@pytest.mark.parametrize("batch", [1, 3, "batch"])
def test_batches_of_any_size_find_what_each_image_holds(make_detector: Any, batch: int | str) -> None:
    detector = load(make_detector(batch=batch), layout="yolov5")
    levels = [1.0, 0.5, 0.01, 0.25]
    together = detector.detect(lights(*levels), [(32, 64)] * 4)
    assert [len(found.scores) for found in together] == [4, 4, 0, 4]
    for level, ours in zip(levels, together, strict=True):
        (alone,) = detector.detect(lights(level), [(32, 64)])
        assert all(np.allclose(one, other) for one, other in zip(ours, alone, strict=True))
    assert detector.detect(lights(1)[:0], []) == []


def test_what_is_not_said_is_usual_for_the_layout_and_noted(make_detector: Any) -> None:
    rows = np.zeros((32 // 8 * 8 + 2 * 4 + 1 * 2, 7))
    detector = load(make_detector(rows))
    assert detector.preprocessing.describe()["resize"] == "letterbox"
    assert detector.preprocessing.channels == "bgr"
    assert any("read as yolox" in note for note in detector.notes)
    assert any("preprocessing is yolox" in note for note in detector.notes)
    quiet = load(make_detector(rows), layout="yolox", preprocess="yolox")
    assert quiet.notes == ()
    assert (detector.rules.nms_iou, detector.rules.score_threshold, detector.rules.max_detections) == (0.65, 0.01, 100)


def test_a_layout_that_another_fits_better_is_taken_and_doubted(make_detector: Any) -> None:
    detector = load(make_detector(np.zeros((42, 7))), layout="yolov5", preprocess="yolov5")
    assert detector.notes == ("outputs (batch, 42, 7) are read as yolov5, as asked, but look like yolox",)


def test_outputs_of_no_known_shape_ask_for_their_layout(make_detector: Any) -> None:
    with pytest.raises(BadInput, match=r"how are boxes laid out in \(batch, 3, 7\)\? say --boxes with one of yolox"):
        load(make_detector())
    with pytest.raises(UnknownName, match="did you mean yolov5"):
        load(make_detector(), layout="yolo5")


@pytest.mark.parametrize(
    ("table", "layout", "answer"),
    [
        (np.zeros((42, 7)), "yolov8", r"outputs \(batch, 42, 7\) are not laid out as yolov8; they look like yolox"),
        (np.zeros((42, 7)), "fastestdet", r"are not laid out as fastestdet; they look like yolox"),
        (np.zeros((9, 7)), "fastestdet", r"are not laid out as fastestdet; if it is a classifier, leave --boxes out"),
    ],
)
def test_a_layout_that_the_outputs_cannot_have_is_refused_at_once(
    make_detector: Any, table: Table, layout: str, answer: str
) -> None:
    with pytest.raises(BadInput, match=answer):
        load(make_detector(table), layout=layout)


def test_every_choice_that_changes_boxes_changes_the_fingerprint(make_detector: Any) -> None:
    path = make_detector()
    choices: list[dict[str, Any]] = [
        {},
        {"score_threshold": 0.3},
        {"nms_iou": 0.9},
        {"max_detections": 1},
        {"several": False},
        {"preprocess": "unit,resize=squash"},
        {"layout": "yolox-decoded"},
    ]
    prints = [load(path, **{"layout": "yolov5", **choice}).ref.fingerprint for choice in choices]
    assert len(set(prints)) == len(choices)
    assert load(path, layout="yolov5").ref.fingerprint == prints[0]
    one = load(path, layout="yolov5", max_detections=1, several=False).detect(lights(1), [(32, 64)])[0]
    assert one.scores == pytest.approx([0.72])


def test_classes_come_from_the_file_the_user_or_coco_and_must_fit(make_detector: Any) -> None:
    named = sp.load_detector(str(make_detector(names="{0: 'ant', 1: 'bee'}")), layout="yolov5")
    assert named.classes is not None
    assert named.classes.names == ("ant", "bee")
    coco = sp.load_detector(str(make_detector(np.zeros((3, 85)))), layout="yolov5")
    assert coco.classes is not None
    assert coco.classes.names[:2] == ("person", "bicycle")
    with pytest.raises(ClassMismatch, match="2 scores an image but 3 classes"):
        load(make_detector(), layout="yolov5", classes=list("abc"))


def test_a_class_beyond_the_named_ones_is_told() -> None:
    def far(inputs: Inputs) -> Any:
        return [([[0, 0, 8, 8]], [0.5], [2])] * len(inputs)

    detector = sp.wrap_detector(far, name="far", version="1", class_names=NAMES, size=(32, 64))
    with pytest.raises(ClassMismatch, match="class 2, counted from 0, but 2 classes are named"):
        detector.detect(lights(1), [(32, 64)])


def test_a_detector_is_not_taken_for_a_classifier(make_detector: Any) -> None:
    rows = np.zeros((42, 7))
    with pytest.raises(
        BadInput, match=r"looks like an object detector \(\(batch, 42, 7\)\), not a classifier; say --boxes yolox"
    ):
        sp.load_model(str(make_detector(rows)))


def test_kinds_and_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no object detector called 'yolox'; say onnx:FILE"):
        sp.load_detector("yolox")
    with pytest.raises(UnknownName, match="did you mean onnx"):
        sp.load_detector("onxn:file")
    with pytest.raises(BadInput, match="there is no file"):
        sp.load_detector(str(tmp_path / "none.onnx"))


def test_a_function_becomes_a_detector_of_images_of_any_size() -> None:
    def bright(inputs: Inputs) -> Any:
        for image in inputs:
            rows, columns = np.nonzero(image[0] > 0.5)
            box = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
            yield [box], [float(image.max())], [1]

    detector = sp.wrap_detector(bright, name="bright", version="1", class_names=NAMES, size=None)
    image = np.zeros((30, 50, 3), np.uint8)
    image[4:9, 20:33] = 255
    (found,) = detector.detect(detector.preprocessing.from_image(image)[None], [image.shape[:2]])
    assert found.boxes.tolist() == [[20, 4, 33, 9]]
    boxed = sp.wrap_detector(bright, name="bright", version="1", class_names=NAMES, size=(60, 60))
    (found,) = boxed.detect(boxed.preprocessing.from_image(image)[None], [image.shape[:2]])
    assert found.boxes[0] == pytest.approx([20, 4, 33, 9], abs=0.9)
    assert boxed.ref.fingerprint != detector.ref.fingerprint


@pytest.fixture
def torch_file(tmp_path: Path) -> str:
    pytest.importorskip("torch", reason="torch is not installed")
    path = tmp_path / "finders.py"
    path.write_text(f"""
import torch

class Lists(torch.nn.Module):
    def forward(self, images):
        return [
            dict(
                boxes=torch.tensor([[1.0, 2, 5, 9], [0, 0, 4, 4]]),
                labels=torch.tensor([1, 0]),
                scores=torch.stack([image.mean(), image.mean() / 2]),
            )
            for image in images
        ]

class Rows(torch.nn.Module):
    def forward(self, images):
        rows = torch.tensor({ROWS.tolist()})
        return rows[None].repeat(len(images), 1, 1), torch.zeros(len(images), 2, 3, 4)

class Named(torch.nn.Module):
    def forward(self, images):
        logits = torch.tensor([[[2.0, -9, 0], [-9, -9, 9]]]).repeat(len(images), 1, 1)
        return dict(logits=logits, pred_boxes=torch.tensor([[[0.5, 0.5, 0.25, 0.5]] * 2]).repeat(len(images), 1, 1))
""")
    return str(path)


def test_lists_of_dictionaries_are_read_as_torchvisions_detectors_give_them(torch_file: str) -> None:
    detector = load(f"torch:{torch_file}:Lists")
    assert detector.preprocessing.size is None
    dark, light = detector.detect(lights(0.25, 1.0), [(32, 64)] * 2)
    assert light.boxes.tolist() == [[1, 2, 5, 9], [0, 0, 4, 4]]
    assert light.scores.tolist() == [1, 0.5]
    assert dark.scores.tolist() == [0.25, 0.125]
    assert light.classes.tolist() == [1, 0]


def test_arrays_of_a_torch_module_are_read_in_the_layout_that_is_named(torch_file: str, make_detector: Any) -> None:
    same = {"layout": "yolov5", "preprocess": "unit,resize=squash,size=32x64"}
    ours = load(f"torch:{torch_file}:Rows", **same).detect(lights(1), [(100, 200)])[0]
    theirs = load(make_detector(), **same).detect(lights(1), [(100, 200)])[0]
    assert all(np.allclose(one, other) for one, other in zip(ours, theirs, strict=True))
    with pytest.raises(BadInput, match="a dictionary of boxes, scores and labels per image"):
        load(f"torch:{torch_file}:Rows")


def test_named_tensors_of_a_torch_module_are_found_by_name(torch_file: str) -> None:
    detector = load(f"torch:{torch_file}:Named", layout="detr", preprocess="unit,resize=squash,size=32x64")
    (found,) = detector.detect(lights(1), [(64, 64)])
    assert found.boxes == pytest.approx(np.array([[24, 16, 40, 48]]))
    assert found.scores == pytest.approx(np.exp(2) / (np.exp(2) + np.exp(-9) + 1))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A results file of COCO about two images, and the annotations whose numbers it uses."""
    (tmp_path / "images").mkdir()
    for name in ("one.png", "two.png"):
        Pillow.fromarray(np.zeros((32, 64, 3), np.uint8)).save(tmp_path / "images" / name)
    entries = [
        {"image_id": 8, "category_id": 18, "bbox": [10, 4, 20, 8], "score": 0.5},
        {"image_id": 7, "category_id": 1, "bbox": [0, 0, 5, 5], "score": 0.25},
    ]
    annotations = {
        "images": [{"id": 7, "file_name": "one.png"}, {"id": 8, "file_name": "two.png"}],
        "categories": [{"id": 18, "name": "dog"}, {"id": 1, "name": "person"}],
        "annotations": [],
    }
    (tmp_path / "annotations.json").write_text(json.dumps(annotations))
    (tmp_path / "results.json").write_text(json.dumps(entries))
    return tmp_path / "results.json"


def test_results_of_another_tool_are_answers_by_image(results: Path, tmp_path: Path) -> None:
    detector = sp.load_detector(f"results:{results}?annotations={tmp_path / 'annotations.json'}")
    assert isinstance(detector, RecordedDetector)
    assert detector.classes is not None
    assert detector.classes.names == ("person", "dog")
    answers = detector.detections_in(sp.open_dataset(tmp_path / "images"))
    found = {answers.ids[image]: box for image, box in zip(answers.image, answers.boxes.tolist(), strict=True)}
    assert found == {"two.png": [10, 4, 30, 12], "one.png": [0, 0, 5, 5]}
    assert answers.classes.tolist() == [1, 0]
    with pytest.raises(BadInput, match="a file of results: it has detections only for its own images, unchanged"):
        detector.detect(lights(1), [(32, 64)])


def test_results_are_stored_like_the_boxes_of_a_detector_that_was_asked(results: Path, tmp_path: Path) -> None:
    detector = sp.load_detector(f"results:{results}?annotations={tmp_path / 'annotations.json'}")
    found = sp.predict(detector, sp.open_dataset(tmp_path / "images"), store=tmp_path / "runs")
    named = [found.classes.names[place] for place in found.detections.classes]
    assert dict(zip(named, found.detections.boxes.tolist(), strict=True)) == {"dog": [10, 4, 30, 12], "person": [0, 0, 5, 5]}


def test_results_without_annotations_use_the_numbers_of_coco(results: Path, tmp_path: Path) -> None:
    entries = [{**entry, "image_id": {7: "one", 8: "two"}[entry["image_id"]]} for entry in json.loads(results.read_text())]
    results.write_text(json.dumps(entries))
    detector = sp.load_detector(f"results:{results}")
    assert isinstance(detector, RecordedDetector)
    assert detector.classes is not None
    answers = detector.detections_in(sp.open_dataset(tmp_path / "images"))
    assert [detector.classes.names[place] for place in answers.classes] == ["dog", "person"]
    assert any("those of COCO" in note for note in getattr(detector, "notes", ()))


def test_results_are_taken_as_they_are(results: Path) -> None:
    with pytest.raises(BadInput, match="a file of results takes no score_threshold"):
        sp.load_detector(f"results:{results}", score_threshold=0.5)
    with pytest.raises(BadInput, match="has one option, annotations; got truths"):
        sp.load_detector(f"results:{results}?truths=a.json")
    with pytest.raises(BadInput, match=r"there is no file .*none\.json"):
        sp.load_detector(f"results:{results}?annotations=none.json")
    before = sp.load_detector(f"results:{results}").ref.fingerprint
    results.write_text(results.read_text().replace("0.25", "0.3"))
    assert sp.load_detector(f"results:{results}").ref.fingerprint != before
