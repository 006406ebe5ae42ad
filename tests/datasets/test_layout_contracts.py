"""What every layout in the catalog promises, each on the example that it gives of itself."""

from __future__ import annotations

import io
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shiftproof import catalog
from shiftproof.datasets import open_dataset
from shiftproof.datasets.image_list import FilesBelow, ImageList
from shiftproof.datasets.layout import Example, layout, load_layout
from shiftproof.datasets.listing import is_image_name, is_video_name
from shiftproof.errors import BadInput
from shiftproof.types import Classes, Dataset, Sample

Draw = Callable[..., Path]
DOCS = Path(__file__).parents[2] / "docs" / "datasets.md"


def written(kind: str, root: Path, draw: Draw) -> tuple[str, dict[str, Any]]:
    """The location and options of a layout's example, its files written below a folder."""
    example = load_layout(kind).example
    for name, text in example.files.items():
        _write(root / name, text, draw)
    prefix, _, opened = example.opened.rpartition(":")
    if opened.endswith(".tar"):
        _pack(root, example, opened)
    location = f"{prefix}:{root / opened}" if prefix else str(root / opened)
    return location, {option: _below(root, value) for option, value in example.options.items()}


def _write(path: Path, text: str, draw: Draw) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if is_image_name(path.name):
        draw(path)
    elif is_video_name(path.name):
        from shiftproof.datasets.video.video_files import to_video

        path.write_bytes(to_video(np.zeros((5, 16, 16, 3), np.uint8), "smoothed"))
    elif path.suffix == ".npy":
        shape = tuple(map(int, text.split()))
        values = np.arange(np.prod(shape)).reshape(shape)
        np.save(path, values % 2 if len(shape) == 1 else values.astype(np.uint8))
    elif path.suffix == ".parquet":
        _write_table(path, text.split(), draw)
    else:
        path.write_text(text)


def _write_table(path: Path, labels: list[str], draw: Draw) -> None:
    """A table with an image for each of these labels."""
    pyarrow = pytest.importorskip("pyarrow")
    data = draw(path.with_suffix(".png")).read_bytes()
    path.with_suffix(".png").unlink()
    images = [{"bytes": data, "path": f"{label}.png"} for label in labels]
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"image": images, "label": labels}), path)


def _pack(root: Path, example: Example, archive: str) -> None:
    """The files in an archive, and no longer beside it."""
    with tarfile.open(root / archive, "w") as packed:
        for name in example.files:
            data = (root / name).read_bytes()
            (root / name).unlink()
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            packed.addfile(entry, io.BytesIO(data))


def _below(root: Path, value: object) -> object:
    return str(root / value) if isinstance(value, str) and (root / value).exists() else value


def is_recognised(kind: str) -> bool:
    entry = load_layout(kind)
    return bool(entry.endings or entry.recognise or entry.is_fallback)


@pytest.mark.parametrize("kind", catalog.DATASETS)
def test_a_dataset_repeats_has_unique_ids_and_gives_pixels_in_another_process(kind: str, tmp_path: Path, draw: Draw) -> None:
    location, options = written(kind, tmp_path, draw)
    images = open_dataset(location, kind=kind, **options)
    again = open_dataset(location, kind=kind, **options)
    assert isinstance(images, Dataset)
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


@pytest.mark.parametrize("kind", catalog.DATASETS.built_in)  # a layout of a plug-in may read disks alone
def test_a_dataset_at_a_url_is_the_one_on_disk(kind: str, tmp_path: Path, draw: Draw) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    location, options = written(kind, tmp_path, draw)
    url = f"memory://{kind}"
    memory.put(str(tmp_path), f"/{kind}", recursive=True)
    there: dict[str, Any] = {option: _moved(value, tmp_path, url) for option, value in options.items()}
    images = open_dataset(location, kind=kind, **options)
    away = open_dataset(location.replace(str(tmp_path), url), kind=kind, **there)
    assert list(away.samples) == list(images.samples)
    assert (away.classes, away.notes, away.published) == (images.classes, images.notes, images.published)
    assert away.location is not None
    assert url in away.location
    for sample in images.samples:
        here, source = images.source(sample), pickle.loads(pickle.dumps(away.source(sample)))
        assert np.array_equal(source.decode(source.read()), here.decode(here.read()))
        assert source.stamp() == away.source(sample).stamp() != here.stamp()
    memory.rm(f"/{kind}", recursive=True)


def _moved(value: object, root: Path, url: str) -> object:
    return value.replace(str(root), url) if isinstance(value, str) else value


@pytest.mark.parametrize("kind", catalog.DATASETS)
def test_the_location_of_a_set_opens_it_again(kind: str, tmp_path: Path, draw: Draw) -> None:
    location, options = written(kind, tmp_path, draw)
    images = open_dataset(location, kind=kind, **options)
    assert images.ref.location is not None
    assert open_dataset(images.ref.location).ref == images.ref


@pytest.mark.parametrize("kind", ["folder", "manifest", "arrays", "tar", "tiny-imagenet"])
def test_a_set_is_found_in_the_only_folder_of_a_folder(kind: str, tmp_path: Path, draw: Draw) -> None:
    inner = tmp_path / "download" / "data"
    inner.mkdir(parents=True)
    location, _ = written(kind, inner, draw)
    if kind == "manifest":
        Path(location).rename(inner / "manifest.csv")
    direct, from_above = open_dataset(inner), open_dataset(tmp_path / "download")
    assert from_above.ref.fingerprint == direct.ref.fingerprint
    assert from_above.source(from_above.samples[0]).read()


@pytest.mark.parametrize("kind", [kind for kind in catalog.DATASETS if is_recognised(kind)])
def test_a_layout_is_recognised_from_the_location_alone(kind: str, tmp_path: Path, draw: Draw) -> None:
    location, options = written(kind, tmp_path, draw)
    named = open_dataset(location, kind=kind, **options)
    if kind == "imagenet-v2":  # recognised by all its thousand folders
        for number in range(1000):
            (tmp_path / str(number)).mkdir(exist_ok=True)
    recognised = open_dataset(location, **options)
    assert recognised.ref.fingerprint == named.ref.fingerprint
    assert str(recognised.ref.location).startswith(location)


@pytest.mark.parametrize("kind", catalog.DATASETS.built_in)
def test_a_layout_stands_in_the_documentation_as_it_says_of_itself(kind: str) -> None:
    entry = load_layout(kind)
    assert f"| {entry.holds} | `{kind}` | {entry.labels} |" in DOCS.read_text(encoding="utf-8")


@layout(endings=(".names",), recognise=lambda folder: "pictures.names" in folder.files)
def open_named(location: str, *, name: str | None = None, classes: Classes | None = None) -> ImageList:
    """A layout as a plug-in brings it: a file that names its images."""
    file = Path(location, "pictures.names") if Path(location).is_dir() else Path(location)
    samples = [Sample(line) for line in file.read_text().split()]
    return ImageList(name or file.stem, samples, classes, FilesBelow(str(file.parent)))


def test_a_layout_of_a_plug_in_is_recognised_and_opened(tmp_path: Path, draw: Draw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(catalog.DATASETS.plugged_in, "named", f"{__name__}:open_named")
    draw(tmp_path / "a.png")
    draw(tmp_path / "b.png")
    (tmp_path / "pictures.names").write_text("b.png\n")
    for location in (tmp_path, tmp_path / "pictures.names", f"named:{tmp_path}"):
        assert [sample.id for sample in open_dataset(location).samples] == ["b.png"]
    with pytest.raises(BadInput, match="datasets of kind 'named' have no option 'padding'; they have classes, name"):
        open_dataset(tmp_path, padding=1)
