"""Every way into shiftproof that a stranger's file can take: small valid files, and what reads them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tarfile
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as Pillow

from fuzz.bench import Reader, Wrong
from fuzz.cases import Documents, Seed
from fuzz.decision_files import (
    baseline_seeds,
    document_seeds,
    guard_seeds,
    read_baseline,
    read_document,
    read_guard,
    read_text_embeddings,
    text_seeds,
)
from fuzz.documents import jsons, texts
from fuzz.own_files import (
    PLACES,
    alike_seeds,
    command_seeds,
    onnx_seeds,
    profile_seeds,
    project_seeds,
    read_alike,
    read_command,
    read_merged,
    read_onnx,
    read_profile,
    read_project,
    read_store,
    read_tflite,
    read_trained,
    read_weights,
    store_seeds,
    tflite_seeds,
    trained_seeds,
    weight_seeds,
)
from fuzz.small_files import (
    COCO,
    array_bytes,
    clip_bytes,
    image_bytes,
    photos,
    pixels,
    with_png_checksums,
    with_tar_checksums,
)
from shiftproof.errors import UnreadableImage
from shiftproof.types import Classes, Decoder, Image

# ---- rules that every result must keep


def _checked_pixels(image: Image) -> Image:
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape:
        raise Wrong(f"pixels: {image.dtype} {image.shape}")
    return image


def _read_set(location: Path, **options: Any) -> object:
    """Opens a set and its first images; labels must be places in the classes, and boxes finite and not empty."""
    from shiftproof.datasets import open_dataset
    from shiftproof.datasets.image_list import decoded

    images = open_dataset(location, **options)
    classes = len(images.classes or ())
    if len({sample.id for sample in images.samples}) != len(images.samples):
        raise Wrong("two images with one id")
    for sample in images.samples:
        if not all(isinstance(label, int) and 0 <= label < classes for label in sample.labels):
            raise Wrong(f"labels outside the classes: {sample.labels} of {classes}")
        if sample.boxes is not None:
            left, top, right, bottom = np.asarray(sample.boxes).reshape(-1, 4).T
            if not np.isfinite(sample.boxes).all() or (right <= left).any() or (bottom <= top).any():
                raise Wrong(f"boxes that are none: {sample.boxes}")
    str(images.ref)
    for sample in images.samples[:4]:
        image = decoded(images.source(sample))
        if not isinstance(image, str):
            _checked_pixels(image)
    return len(images.samples)


# ---- images


def _image_seeds(*forms: str) -> list[Seed]:
    picture = Pillow.fromarray(pixels())
    clear = Pillow.fromarray(np.dstack([pixels(), pixels()[:, :, 0]]))
    exif = Pillow.Exif()
    exif[0x0112] = 6
    files = {
        "jpeg": image_bytes("JPEG", exif=exif),
        "jpeg-progressive": image_bytes("JPEG", picture, progressive=True),
        "jpeg-grey": image_bytes("JPEG", picture.convert("L")),
        "jpeg-cmyk": image_bytes("JPEG", picture.convert("CMYK")),
        "png": image_bytes("PNG"),
        "png-alpha": image_bytes("PNG", clear),
        "png-palette": image_bytes("PNG", picture.quantize(7), transparency=2),
        "png-16": image_bytes("PNG", Pillow.fromarray(pixels()[:, :, 0].astype(np.uint16) * 257)),
        "gif": image_bytes("GIF", save_all=True, append_images=[picture.rotate(180)]),
        "bmp": image_bytes("BMP"),
        "tiff": image_bytes("TIFF", exif=exif),
        "tiff-lzw": image_bytes("TIFF", picture, compression="tiff_lzw"),
        "webp": image_bytes("WEBP"),
        "webp-alpha": image_bytes("WEBP", clear, lossless=True),
    }
    seeds = [Seed(name, {"image": data}, "image") for name, data in files.items() if not forms or name.startswith(forms)]
    sound = [
        Seed(f"{seed.name}-sound", seed.files, "image", None, seed.content, with_png_checksums)
        for seed in seeds
        if seed.name.startswith("png")
    ]
    return [*seeds, *sound, *_real_photos()]


def _real_photos() -> list[Seed]:
    """Small real photos, where there are some."""
    data = os.environ.get("SHIFTPROOF_TEST_DATA")
    photos = sorted(Path(data, "ilsvrc-sample-1000").glob("*"), key=lambda path: path.stat().st_size)[:2] if data else []
    return [Seed(f"photo{number}", {"image": photo.read_bytes()}, "image") for number, photo in enumerate(photos)]


def _read_image(folder: Path, *, decoder: Decoder) -> object:
    from shiftproof.datasets.decoding import decode_image

    return _checked_pixels(decode_image((folder / "image").read_bytes(), decoder=decoder)).shape


def _read_by_both(folder: Path) -> object:
    """The size by OpenCV, which must be that by Pillow: one must not read what the other refuses."""
    sizes: list[object] = []
    for decoder in ("pillow", "opencv"):
        try:
            sizes.append(_read_image(folder, decoder=decoder))
        except UnreadableImage as refusal:
            sizes.append(refusal)
    if isinstance(sizes[1], UnreadableImage):
        raise sizes[1]
    if isinstance(sizes[0], tuple) and sizes[0] != sizes[1]:
        raise Wrong(f"decoders differ: {sizes}")
    return sizes[1]


# ---- tables and annotations

TABLE = b"path,label,site,night\na.png,cat,5,0.5\nb.jpg,dog,7,\n"
LINES = b'{"path": "a.png", "labels": ["cat"], "site": 5}\n{"path": "b.jpg", "labels": ["dog", "cat"], "night": true}\n'


def _parquet() -> bytes:
    import pyarrow
    from pyarrow import parquet

    buffer = io.BytesIO()
    table = pyarrow.table({"path": ["a.png", "b.jpg"], "label": ["cat", "dog"], "site": [5, 7], "day": [1.5, None]})
    parquet.write_table(table, buffer)
    return buffer.getvalue()


def _manifest_seeds(target: str, content: bytes, documents: Documents | None) -> list[Seed]:
    return [Seed(Path(target).suffix[1:], {**photos(), target: content}, target, documents)]


def _image_table_seeds() -> list[Seed]:
    """Pictures inside tables, as Hugging Face's `datasets` keeps them."""
    import pyarrow
    from pyarrow import ipc, parquet

    told = {"info": {"features": {"image": {"_type": "Image"}, "label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}}
    table = pyarrow.table(
        {
            "image": [{"bytes": data, "path": name} for name, data in photos().items()],
            "label": [number % 2 for number in range(len(photos()))],
            "site": ["north"] * len(photos()),
        }
    ).replace_schema_metadata({"huggingface": json.dumps(told)})
    columns, stream = io.BytesIO(), io.BytesIO()
    parquet.write_table(table, columns)
    with ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return [
        Seed("parquet", {"images.parquet": columns.getvalue()}, "images.parquet"),
        Seed("arrow", {"images.arrow": stream.getvalue()}, "images.arrow"),
    ]


def _read_image_table(folder: Path) -> object:
    return _read_set(next(folder.glob("images.*")), kind="hf-dataset")


RESULTS = [
    {"image_id": 1, "category_id": 3, "bbox": [1, 2, 4, 3], "score": 0.9},
    {"image_id": 2, "category_id": 7, "bbox": [0, 0, 9, 9], "score": 0.1},
]
VOC = b"""<annotation><folder>f</folder><filename>a.png</filename>
<size><width>12</width><height>9</height><depth>3</depth></size>
<object><name>cat</name><difficult>0</difficult>
<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>5</xmax><ymax>7.5</ymax></bndbox></object>
</annotation>"""
YOLO = b"0 0.5 0.5 0.25 0.5\n1 0.25 0.5 0.5 1\n"


def _coco_seeds() -> list[Seed]:
    return [Seed("coco", {**photos(), "boxes.json": json.dumps(COCO).encode()}, "boxes.json", jsons)]


def _results_seeds() -> list[Seed]:
    files = {**photos(), "boxes.json": json.dumps(COCO).encode(), "found.json": json.dumps(RESULTS).encode()}
    return [Seed("results", files, "found.json", jsons), Seed("annotations", files, "boxes.json", jsons)]


def _read_results(folder: Path) -> object:
    from shiftproof.datasets import open_dataset
    from shiftproof.models import load_detector

    images = open_dataset(folder)
    detector: Any = load_detector(f"results:{folder}/found.json?annotations={folder}/boxes.json")
    found = detector.detections_in(images)
    if not np.isfinite(found.boxes).all() or not np.isfinite(found.scores).all():
        raise Wrong("boxes or scores that are no numbers")
    return len(found.scores)


def _voc_seeds() -> list[Seed]:
    files = {"JPEGImages/a.png": photos()["a.png"], "Annotations/a.xml": VOC}
    split = {**files, "ImageSets/Main/val.txt": b"a 1\n"}
    encoded = [
        Seed(f"xml-{code}", {**files, "Annotations/a.xml": _declared(code)}, "Annotations/a.xml")
        for code in ("utf-16", "latin-1", "gb2312", "shift_jis")
    ]
    return [Seed("xml", files, "Annotations/a.xml", texts), Seed("split", split, "ImageSets/Main/val.txt", texts), *encoded]


def _declared(code: str) -> bytes:
    name = {"gb2312": "猫", "shift_jis": "ネコ"}.get(code, "cat")  # of several bytes where the encoding has such
    return f'<?xml version="1.0" encoding="{code}"?>{VOC.decode().replace("cat", name)}'.encode(code)


def _read_voc(folder: Path) -> object:
    options = {"split": "val"} if (folder / "ImageSets").exists() else {}
    return _read_set(folder, kind="voc", **options)


def _yolo_seeds() -> list[Seed]:
    files = {"images/a.png": photos()["a.png"], "labels/a.txt": YOLO, "classes.txt": b"cat\ndog\n"}
    return [
        Seed("boxes", files, "labels/a.txt", texts),
        Seed("names", files, "classes.txt", texts),
        Seed("picture", files, "images/a.png", None, files["images/a.png"], with_png_checksums),
    ]


def _label_seeds() -> list[Seed]:
    ways: list[tuple[str, bytes, Documents | None]] = [
        ("labels.txt", b"cat\ndog\n", texts),
        ("labels.json", b"[[3], [1, 2]]", jsons),
        ("labels.npy", array_bytes(np.array([3, 1])), None),
    ]
    return [Seed(Path(name).suffix[1:], {**photos(), name: data}, name, documents) for name, data, documents in ways]


def _read_labels(folder: Path) -> object:
    return _read_set(folder, kind="folder", labels=str(next(folder.glob("labels.*"))))


def _class_seeds() -> list[Seed]:
    ways: list[tuple[str, bytes, Documents]] = [
        ("classes.txt", b"n01440764 tench\nn01443537\tgoldfish\n", texts),
        ("names.txt", b"cat\ndog\n", texts),
        ("classes.json", b'{"0": ["n01440764", "tench"], "1": ["n01443537", "goldfish"]}', jsons),
        ("names.json", b'["cat", "dog"]', jsons),
        ("class_to_idx.json", b'{"dog": 1, "cat": 0, "eel": 2}', jsons),
    ]
    return [
        Seed(Path(name).stem + "-" + Path(name).suffix[1:], {name: data}, name, documents) for name, data, documents in ways
    ]


def _read_classes(folder: Path) -> object:
    from shiftproof.datasets.classes import classes_from
    from shiftproof.datasets.label_spaces import match_classes

    classes = classes_from(next(folder.iterdir()))
    if not len(classes):
        raise Wrong("a list without classes")
    return len(match_classes(classes, classes, outputs=len(classes)).classes)


def _cluster_seeds() -> list[Seed]:
    ways = {"clusters": b"id,cluster\na.png,one\nb.jpg,two\n", "duplicates": b"id,other,distance\na.png,b.jpg,0.5\n"}
    return [Seed(name, {"clusters.csv": data}, "clusters.csv", texts) for name, data in ways.items()]


def _read_clusters(folder: Path) -> object:
    from shiftproof.datasets.clusters import clustering
    from shiftproof.types import Sample

    clusters = clustering(str(folder / "clusters.csv")).of([Sample("a.png"), Sample("b.jpg")])
    return None if clusters is None else clusters.keys


def _table_seeds() -> list[Seed]:
    """Files that options name: classes to leave out, usual shares, groups of classes, an exported threshold, frames."""
    ways: dict[str, tuple[bytes, Documents]] = {
        "left-out.csv": (b"wnid,reason\nn01440764,unclear\nn01443537,other\n", texts),
        "shares.csv": (b"wnid,share\nn01440764,0.5\nn01443537,0.25\n", texts),
        "groups.json": (b'{"fish": ["n01440764", "goldfish"], "dog": ["n02085620"]}', jsons),
        "class-map.json": (b'{"kitty": "tabby", "eels": "eel"}', jsons),
        "threshold.json": (_json(_exported_threshold()), jsons),
    }
    frames = {"clips/a/0001.jpg": photos()["b.jpg"], "clips/a/0002.jpg": photos()["b.jpg"]}
    info = {**frames, "clips/a/info.json": b'{"fps": 25, "anchor": 1}'}
    return [
        *(Seed(Path(name).stem, {name: data}, name, documents) for name, (data, documents) in ways.items()),
        Seed("frames", info, "clips/a/info.json", jsons),
    ]


def _exported_threshold() -> dict[str, Any]:
    share = {"value": 0.1, "low": 0.05, "high": None, "images": 20}
    expected = {"judged": "others", "false_alarms": share, "found": share, "cost": 0.5, "sets": {"out": {"found": share}}}
    texts_of = ("ood_detector", "preset", "model", "model_fingerprint", "goal", "chosen", "made")
    return {
        "rule": "scores at or above it are flagged",
        **dict.fromkeys(texts_of, "a"),
        **dict.fromkeys(("threshold", "false_alarm_cost", "miss_cost", "ood_share"), 0.5),
        "parameters": {"temperature": 1.0},
        "expected": expected,
        "where_picked": expected,
        "datasets": [{"name": "photos", "fingerprint": "00", "images": 20, "skipped_images": 0}],
        "notes": ["a note"],
        "versions": {"numpy": "2"},
    }


def _read_tables(folder: Path) -> object:
    from shiftproof.curation.boxes import load_shares
    from shiftproof.curation.filtering import choose_some, load_left_out
    from shiftproof.datasets.classes import classes_from
    from shiftproof.datasets.label_spaces import Scoring, merge_classes
    from shiftproof.datasets.subsets import load_class_map, load_groups
    from shiftproof.studies.threshold.exported import ExportedThreshold

    path = next(folder.iterdir())
    match path.stem:
        case "left-out":
            return len(choose_some(classes_from("ilsvrc2012"), left_out=load_left_out(path)).classes)
        case "shares":
            return len(load_shares(path).classes)
        case "groups":
            return len(merge_classes(load_groups(path)).classes)
        case "class-map":
            images = Classes(("kitty", "eels", "tench"))
            scoring = Scoring(class_map=load_class_map(str(path)), unmatched="unlabelled")
            return scoring.space(images, classes_from("ilsvrc2012"), outputs=1000).label_of
        case "threshold":
            exported = ExportedThreshold.from_json(path.read_text(encoding="utf-8", errors="surrogateescape"))
            return bool(exported.flags(np.array([0.7]))[0]), len(exported.to_json())
    return _read_set(path, kind="frames")


# ---- archives, arrays and clips


def _tar_seeds() -> list[Seed]:
    buffer = io.BytesIO()
    members = {"x/a.png": photos()["a.png"], "x/a.cls": b"3", "x/a.json": b'{"site": 5}', "x/b.jpg": photos()["b.jpg"]}
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    files = {"shard.tar": buffer.getvalue()[:6144]}
    return [
        Seed("tar", files, "shard.tar"),
        Seed("tar-sound", files, "shard.tar", None, files["shard.tar"], with_tar_checksums),
    ]


def _array_seeds() -> list[Seed]:
    files = {"set.npy": array_bytes(np.stack([pixels()] * 3)), "set_labels.npy": array_bytes(np.array([0, 2, 1]))}
    corrupted = {"fog.npy": array_bytes(np.stack([pixels(4, 4)] * 5)), "labels.npy": array_bytes(np.array([1]))}
    headers = [
        Seed(f"{Path(name).stem}-header", files, name, texts, data[10:128], partial(_npy, array=data))
        for name, data in files.items()
    ]
    return [
        Seed("images", files, "set.npy"),
        Seed("labels", files, "set_labels.npy"),
        Seed("corrupted", corrupted, "fog.npy"),
        *headers,
    ]


def _npy(header: bytes, *, array: bytes) -> bytes:
    """The header of an array at its length, before the same numbers."""
    return array[:8] + (len(header) % 65536).to_bytes(2, "little") + header + array[128:]


def _clip_seeds() -> list[Seed]:
    clips = {
        "mpeg4.mp4": ("mpeg4", "mp4"),
        "h264.mp4": ("libx264", "mp4"),
        "mjpeg.avi": ("mjpeg", "avi"),
        "vp8.webm": ("libvpx", "webm"),
    }
    made = []
    for name, (codec, form) in clips.items():
        with contextlib.suppress(ValueError):  # builds of ffmpeg differ in what they can write
            clip = clip_bytes(codec, form)
            beside = {f"clips/{name}": clip, "clips/z.mp4": clip_bytes("mpeg4", "mp4")}
            made += [Seed(Path(name).stem, beside, f"clips/{name}"), Seed(f"{Path(name).stem}-alone", {name: clip}, name)]
    return made


def _read_clips(folder: Path) -> object:
    """Of several clips the sound one stays, whatever is wrong with the other."""
    if not (folder / "clips").exists():
        return _read_set(next(folder.iterdir()))
    return _read_set(folder / "clips")


def _published_seeds() -> list[Seed]:
    """The files that explain released sets, and the record beside arrays that we wrote."""
    photo = photos()["b.jpg"]
    frame, beside = "val/a/000012.JPEG", "val/a/000013.JPEG"
    vid = {frame: photo, "metadata/pmsets.json": _json({frame: [beside]}), "metadata/labels.json": _json({frame: [3, 7]})}
    words = {"labels": ["good", "unsure", "bad"], "annotations": [{"key": "a_1/frame-30.jpg", "notes": "", "labels": [0]}]}
    ytbb = {
        "a_1/frame-30.jpg": photo,
        "metadata/anchor_labels.json": _json(words),
        "metadata/ytbb_robustness_test_anchors_full.csv": b"ytid,time_ms,label\na,1,7\n",
    }
    objectnet = {
        "images/air_freshener/a.png": photos()["a.png"],
        "mappings/folder_to_objectnet_label.json": _json({"air_freshener": "Air freshener"}),
        "mappings/objectnet_to_imagenet_1k.json": _json({"Alarm clock": "analog clock; digital clock"}),
    }
    boxes = {
        "videos/x/1000.jpg": photo,
        "table.csv": b"x,1000,0,person,1,present,0.1,0.5,0.2,0.9\nx,1000,1,bird,0,absent,-1,-1,-1,-1\n",
    }
    record = {
        "shiftproof": "0.1",
        "layout": "cifar-c",
        "source": {"name": "photos"},
        "seed": 0,
        "images": ["a"],
        "set_aside": [],
        "classes": {"names": ["cat", "dog"], "wnids": None},
        "picture": "image",
    }
    written = {"fog.npy": array_bytes(np.stack([pixels(4, 4)] * 5)), "labels.npy": array_bytes(np.array([1]))}
    tiny = {"images/a.png": photos()["a.png"], "val_annotations.txt": b"a.png\tn01440764\t0\t0\t5\t5\n"}
    listed = {"n01440764/b.jpg": photo, "imagenetood.txt": b"n01440764/b.jpg\n"}
    open_dataset = {"test/b.jpg": photo, "openimage_o.txt": b"b.jpg -1\n"}
    return [
        Seed("vid-robust", vid, "metadata/pmsets.json", jsons),
        Seed("vid-labels", vid, "metadata/labels.json", jsons),
        Seed("ytbb-robust", ytbb, "metadata/anchor_labels.json", jsons),
        Seed("ytbb-anchors", ytbb, "metadata/ytbb_robustness_test_anchors_full.csv", texts),
        Seed("objectnet", objectnet, "mappings/folder_to_objectnet_label.json", jsons),
        Seed("youtube-bb", boxes, "table.csv", texts),
        Seed("record", {**written, "manifest.json": _json(record)}, "manifest.json", jsons),
        Seed("tiny-imagenet", tiny, "val_annotations.txt", texts),
        Seed("imagenet-ood", listed, "imagenetood.txt", texts),
        Seed("openimage-o", open_dataset, "openimage_o.txt", texts),
    ]


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _read_published(folder: Path) -> object:
    if (folder / "table.csv").exists():
        return _read_set(folder / "videos", kind="youtube-bb", table=str(folder / "table.csv"))
    lists = {"imagenetood.txt": "imagenet-ood", "openimage_o.txt": "openimage-o"}
    return _read_set(folder, kind=next((kind for name, kind in lists.items() if (folder / name).exists()), None))


READERS: Sequence[Reader] = (
    Reader("image-pillow", _image_seeds, partial(_read_image, decoder="pillow"), share=2),
    Reader("image-opencv", partial(_image_seeds, "jpeg", "png"), _read_by_both, share=2),
    Reader(
        "manifest-csv",
        partial(_manifest_seeds, "manifest.csv", TABLE, texts),
        lambda folder: _read_set(folder / "manifest.csv"),
    ),
    Reader("manifest-jsonl", partial(_manifest_seeds, "manifest.jsonl", LINES, jsons), lambda folder: _read_set(folder)),
    Reader(
        "manifest-parquet", lambda: _manifest_seeds("manifest.parquet", _parquet(), None), lambda folder: _read_set(folder)
    ),
    Reader("image-table", _image_table_seeds, _read_image_table, share=0.5),
    Reader("labels", _label_seeds, _read_labels),
    Reader("classes", _class_seeds, _read_classes),
    Reader("clusters", _cluster_seeds, _read_clusters),
    Reader("tables", _table_seeds, _read_tables, share=0.5),
    Reader("tar", _tar_seeds, lambda folder: _read_set(folder / "shard.tar")),
    Reader("arrays", _array_seeds, lambda folder: _read_set(folder)),
    Reader("coco", _coco_seeds, lambda folder: _read_set(folder / "boxes.json", images=str(folder))),
    Reader("voc", _voc_seeds, _read_voc),
    Reader("yolo", _yolo_seeds, lambda folder: _read_set(folder, kind="yolo")),
    Reader("results", _results_seeds, _read_results),
    Reader("published", _published_seeds, _read_published),
    Reader("clips", _clip_seeds, _read_clips, share=0.1),
    Reader("onnx", onnx_seeds, read_onnx, share=0.3),
    *([Reader("tflite", tflite_seeds, read_tflite, share=0.3)] if find_spec("ai_edge_litert") else []),
    Reader("trained", trained_seeds, read_trained, share=0.3),
    Reader("weights", weight_seeds, read_weights, share=0.5),
    Reader("store", store_seeds, read_store, checked=True),
    Reader("merge", store_seeds, read_merged, share=0.5, checked=True),
    Reader("alike", alike_seeds, read_alike, share=0.2),
    Reader("profile", profile_seeds, read_profile, share=0.2),
    Reader("project", project_seeds, read_project, share=0.5),
    Reader("guard", guard_seeds, read_guard, share=0.5),
    Reader("gate", baseline_seeds, read_baseline, share=0.5),
    Reader("document", document_seeds, read_document, share=0.3),
    Reader("text", text_seeds, read_text_embeddings, share=0.3),
    Reader("command", command_seeds, read_command, share=0.3, may_write=PLACES),
)
