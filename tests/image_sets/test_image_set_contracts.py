"""What every image set in the catalog promises."""

from __future__ import annotations

import io
import json
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shiftproof import catalog
from shiftproof.image_sets import open_images
from shiftproof.types import ImageSet

Draw = Callable[..., Path]
Example = tuple[str | Path, dict[str, Any]]


def _folder(root: Path, draw: Draw) -> Example:
    draw(root / "cat" / "a.png")
    draw(root / "dog" / "b.jpg")
    return root, {}


def _manifest(root: Path, draw: Draw) -> Example:
    draw(root / "a.png")
    (root / "list.csv").write_text("path,label,site\na.png,cat,north\n")
    return root / "list.csv", {}


def _arrays(root: Path, draw: Draw) -> Example:
    np.save(root / "fog.npy", np.arange(10 * 4 * 5 * 3, dtype=np.uint8).reshape(10, 4, 5, 3))
    np.save(root / "labels.npy", np.array([1, 0] * 5))
    return root, {}


def _tar(root: Path, draw: Draw) -> Example:
    picture = draw(root / "a.png").read_bytes()
    with tarfile.open(root / "set.tar", "w") as archive:
        for name, data in (("x.png", picture), ("x.cls", b"1")):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return root / "set.tar", {}


def _imagenet_c(root: Path, draw: Draw) -> Example:
    draw(root / "fog" / "3" / "n01440764" / "a.png")
    return root, {}


def _imagenet_p(root: Path, draw: Draw) -> Example:
    from shiftproof.image_sets.video_files import to_video

    clip = root / "tilt" / "n01440764" / "a.mp4"
    clip.parent.mkdir(parents=True)
    clip.write_bytes(to_video(np.zeros((3, 16, 16, 3), np.uint8), "smoothed"))
    return root, {}


def _clips(root: Path, draw: Draw) -> Example:
    from shiftproof.image_sets.video_files import to_video

    clip = root / "cat" / "a.mp4"
    clip.parent.mkdir(parents=True)
    clip.write_bytes(to_video(np.zeros((5, 16, 16, 3), np.uint8), "smoothed"))
    return root, {"k": 1, "every": 2}


def _frames(root: Path, draw: Draw) -> Example:
    for number in range(5):
        draw(root / "a" / f"frame-{number}.png")
    return root, {"k": 1, "every": 2}


def _vid_robust(root: Path, draw: Draw) -> Example:
    first, second = "val/a/000003.JPEG", "val/a/000005.JPEG"
    draw(root / first)
    draw(root / second)
    (root / "metadata").mkdir()
    (root / "metadata" / "pmsets.json").write_text(json.dumps({first: [second]}))
    (root / "metadata" / "labels.json").write_text(json.dumps({first: [3, 29], second: [3]}))
    return root, {}


def _ytbb_robust(root: Path, draw: Draw) -> Example:
    draw(root / "a_b_100" / "frame-3.jpg")
    draw(root / "a_b_100" / "frame-4.jpg")
    said = {"labels": ["good", "dog"], "annotations": [{"key": "a_b_100/frame-3.jpg", "notes": "", "labels": [0, 1]}]}
    (root / "anchor_labels.json").write_text(json.dumps(said))
    (root / "ytbb_robustness_test_anchors_full.csv").write_text("ytid,time_ms,label\na_b,100,22\n")
    return root, {}


def _imagenet_v2(root: Path, draw: Draw) -> Example:
    draw(root / "7" / "a.png")
    return root, {}


def _objectnet(root: Path, draw: Draw) -> Example:
    draw(root / "images" / "alarm_clock" / "a.png")
    (root / "mappings").mkdir()
    (root / "mappings" / "folder_to_objectnet_label.json").write_text(json.dumps({"alarm_clock": "Alarm clock"}))
    return root, {}


def _tiny_imagenet(root: Path, draw: Draw) -> Example:
    draw(root / "images" / "val_0.JPEG")
    (root / "val_annotations.txt").write_text("val_0.JPEG\tn01440764\t0\t0\t1\t1\n")
    return root, {}


def _file_list(root: Path, draw: Draw) -> Example:
    draw(root / "n02666943" / "a.png")
    (root / "list.txt").write_text("n02666943/a.png\n")
    return root, {"list_file": root / "list.txt"}


def _perturbed(root: Path, draw: Draw) -> Example:
    draw(root / "cat" / "a.png")
    return root, {"perturbation": "rotate", "edition": "cifar-32"}


def _coco(root: Path, draw: Draw) -> Example:
    draw(root / "a.png")
    box = {"image_id": 7, "category_id": 3, "bbox": [1, 2, 3, 4], "area": 9.5, "iscrowd": 0}
    listed = {"images": [{"id": 7, "file_name": "a.png", "width": 12, "height": 8}], "annotations": [box, box]}
    (root / "boxes.json").write_text(json.dumps(listed | {"categories": [{"id": 3, "name": "cat"}]}))
    return root / "boxes.json", {}


def _boxed(root: Path, draw: Draw) -> Example:
    file, _ = _coco(root, draw)
    return root, {"boxes": str(file)}


def _crop_sources(root: Path, draw: Draw) -> Example:
    file, _ = _coco(root, draw)
    return f"crops:{file}", {}


def _voc(root: Path, draw: Draw) -> Example:
    draw(root / "JPEGImages" / "a.jpg")
    (root / "Annotations").mkdir()
    (root / "Annotations" / "a.xml").write_text(XML)
    return root, {}


def _ilsvrc(root: Path, draw: Draw) -> Example:
    draw(root / "Data" / "val" / "000003.JPEG")
    (root / "Annotations" / "val").mkdir(parents=True)
    (root / "Annotations" / "val" / "000003.xml").write_text(XML.replace("cat", "n01440764"))
    return root, {}


def _yolo(root: Path, draw: Draw) -> Example:
    draw(root / "images" / "a.png")
    (root / "labels").mkdir()
    (root / "labels" / "a.txt").write_text("1 0.5 0.5 0.5 0.25\n")
    return root, {}


def _youtube_bb(root: Path, draw: Draw) -> Example:
    draw(root / "AAA" / "1000.jpg")
    (root / "boxes.csv").write_text("AAA,1000,7,cat,0,present,0.25,0.5,0.5,1.0\n")
    return root, {"table": root / "boxes.csv"}


XML = (
    "<annotation><size><width>12</width><height>8</height></size><object><name>cat</name>"
    "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>5</xmax><ymax>6</ymax></bndbox></object></annotation>"
)

EXAMPLES = {
    "folder": _folder,
    "manifest": _manifest,
    "arrays": _arrays,
    "tar": _tar,
    "imagenet-c": _imagenet_c,
    "imagenet-p": _imagenet_p,
    "clips": _clips,
    "frames": _frames,
    "vid-robust": _vid_robust,
    "ytbb-robust": _ytbb_robust,
    "imagenet-v2": _imagenet_v2,
    "objectnet": _objectnet,
    "tiny-imagenet": _tiny_imagenet,
    "imagenet-ood": _file_list,
    "openimage-o": _file_list,
    "coco": _coco,
    "voc": _voc,
    "ilsvrc-loc": _ilsvrc,
    "imagenet-vid": _ilsvrc,
    "yolo": _yolo,
    "youtube-bb": _youtube_bb,
    "perturbed": _perturbed,
    "crops": _coco,
    "crop-sources": _crop_sources,
    "boxed": _boxed,
}


@pytest.mark.parametrize("kind", catalog.IMAGE_SETS)
def test_an_image_set_repeats_has_unique_ids_and_gives_pixels_in_another_process(
    kind: str, tmp_path: Path, draw: Draw
) -> None:
    location, options = EXAMPLES[kind](tmp_path, draw)
    images = open_images(location, kind=kind, **options)
    again = open_images(location, kind=kind, **options)
    assert isinstance(images, ImageSet)
    assert images.samples
    assert list(images.samples) == list(again.samples)
    assert images.ref == again.ref
    assert len({sample.id for sample in images.samples}) == len(images.samples)
    assert all(not sample.id.startswith("/") and ".." not in sample.id.split("/") for sample in images.samples)
    highest = max((label for sample in images.samples for label in sample.labels), default=-1)
    assert highest < (len(images.classes) if images.classes else 0)
    for sample in images.samples:
        source = pickle.loads(pickle.dumps(images.source(sample)))
        decoded = source.decode(source.read())
        assert decoded.dtype == np.uint8
        assert decoded.ndim == 3
        assert decoded.shape[2] == 3
        assert source.stamp() == images.source(sample).stamp()


@pytest.mark.parametrize("kind", catalog.IMAGE_SETS)
def test_the_location_of_a_set_opens_it_again(kind: str, tmp_path: Path, draw: Draw) -> None:
    location, options = EXAMPLES[kind](tmp_path, draw)
    images = open_images(location, kind=kind, **options)
    assert images.ref.location is not None
    assert open_images(images.ref.location).ref == images.ref


@pytest.mark.parametrize("kind", ["folder", "manifest", "arrays", "tar", "tiny-imagenet"])
def test_a_set_is_found_in_the_only_folder_of_a_folder(kind: str, tmp_path: Path, draw: Draw) -> None:
    inner = tmp_path / "download" / "data"
    inner.mkdir(parents=True)
    location, _ = EXAMPLES[kind](inner, draw)
    if kind == "manifest":
        Path(location).rename(inner / "manifest.csv")
    if kind == "tar":
        (inner / "a.png").unlink()
    direct, from_above = open_images(inner), open_images(tmp_path / "download")
    assert from_above.ref.fingerprint == direct.ref.fingerprint
    assert from_above.source(from_above.samples[0]).read()


@pytest.mark.parametrize(
    "kind",
    ["folder", "manifest", "arrays", "tar", "imagenet-c", "imagenet-p", "objectnet", "tiny-imagenet", "coco", "voc", "yolo"],
)
def test_the_kind_is_recognised_from_the_location_alone(kind: str, tmp_path: Path, draw: Draw) -> None:
    location, options = EXAMPLES[kind](tmp_path, draw)
    named = open_images(location, kind=kind, **options)
    recognised = open_images(location)
    assert recognised.ref.fingerprint == named.ref.fingerprint
    assert recognised.ref.location == str(location)
