"""Frames of perturbation sequences as images of a set."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from shiftproof import predict
from shiftproof.corruptions import sequences
from shiftproof.corruptions.sequences import Frames, perturb
from shiftproof.datasets import ImageList, open_dataset
from shiftproof.datasets import perturbed as module
from shiftproof.datasets.perturbed import FrameImage, Recent, perturbed
from shiftproof.errors import BadInput, UnknownName, UnreadableImage
from shiftproof.runs.digests import digest_of
from shiftproof.types import Classifier, ImageSource, Sample

SMALL = "cifar-32"


@pytest.fixture
def photos(draw: Callable[..., Path], tmp_path: Path) -> ImageList:
    draw(tmp_path / "photos" / "cat" / "a.png", height=40, width=50)
    draw(tmp_path / "photos" / "dog" / "b.jpg", height=30, width=60)
    return open_dataset(tmp_path / "photos")


def pixels(images: ImageList, sample: Sample) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    source = images.source(sample)
    return source.decode(source.read())


def test_a_frame_is_a_sample_with_its_place_in_the_sequence(photos: ImageList) -> None:
    frames = perturbed(photos, "translate", edition=SMALL)
    assert frames.name == "translate of photos"
    assert len(frames.samples) == 2 * 16
    assert frames.classes == photos.classes
    seventh = frames.samples[16 + 7]
    assert seventh.id == "dog/b.jpg/translate/07"
    assert seventh.labels == photos.samples[1].labels
    assert seventh.facts == {"sequence": "dog/b.jpg", "frame": 7, "perturbation": "translate", "level": 1}
    assert [sample.id for sample in frames.samples] == sorted(sample.id for sample in frames.samples)


def test_facts_of_the_image_stay(photos: ImageList) -> None:
    images = ImageList("one", [Sample("cat/a.png", (0,), {"site": "north"})], photos.classes, photos.find)
    assert perturbed(images, "tilt", edition=SMALL).samples[3].facts["site"] == "north"


def test_higher_levels_are_named_like_the_published_folders(photos: ImageList) -> None:
    frames = perturbed(photos, "shot_noise", level=3, edition=SMALL)
    assert frames.name == "shot_noise_3 of photos"
    assert frames.samples[0].id == "cat/a.png/shot_noise_3/00"


@pytest.mark.parametrize(("name", "level"), [("tilt", 1), ("gaussian_noise", 2), ("snow", 1)])
def test_frames_are_those_of_one_image_alone_in_whatever_order(photos: ImageList, name: str, level: int) -> None:
    frames = perturbed(photos, name, level=level, edition=SMALL, seed=5)
    order = np.random.default_rng(0).permutation(len(frames.samples))
    shuffled = {frames.samples[place].id: pixels(frames, frames.samples[place]) for place in order}
    for sample in photos.samples:
        source = photos.source(sample)
        alone = perturb(source.decode(source.read()), name, level, seed=5, key=sample.id, edition=SMALL)
        together = np.stack([shuffled[frame.id] for frame in frames.samples if frame.facts["sequence"] == sample.id])
        assert np.array_equal(together, alone)


def test_a_sequence_is_made_once_for_all_its_frames(photos: ImageList, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(module, "RECENT", Recent(4))

    def count(*_: object, key: str, **__: object) -> Frames:
        made.append(key)
        return np.zeros((31, 2, 2, 3), np.uint8)

    monkeypatch.setattr(sequences, "perturb", count)
    frames = perturbed(photos, "tilt", edition=SMALL)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda sample: pixels(frames, sample), frames.samples))
    assert sorted(made) == ["cat/a.png", "dog/b.jpg"]


def test_only_the_last_few_sequences_are_kept() -> None:
    recent = Recent(2)
    made: list[str] = []

    def ask(key: str) -> None:
        def make() -> Frames:
            made.append(key)
            return np.zeros((1, 1, 1, 3), np.uint8)

        recent.get(key, make)

    for key in ["a", "b", "a", "c", "a", "b"]:
        ask(key)
    assert made == ["a", "b", "c", "b"]


def test_a_changed_frame_does_not_change_the_next_reader_s(photos: ImageList) -> None:
    frames = perturbed(photos, "tilt", edition=SMALL)
    first = pixels(frames, frames.samples[4])
    kept = first.copy()
    first[:] = 0
    assert np.array_equal(pixels(frames, frames.samples[4]), kept)


def test_bytes_and_stamps_differ_by_everything_that_changes_pixels(photos: ImageList) -> None:
    sets = [
        perturbed(photos, "gaussian_noise", edition=SMALL),
        perturbed(photos, "gaussian_noise", edition=SMALL, level=2),
        perturbed(photos, "gaussian_noise", edition=SMALL, seed=1),
        perturbed(photos, "gaussian_noise", edition="tiny-64"),
        perturbed(photos, "shot_noise", edition=SMALL),
    ]
    sources: list[ImageSource] = [one.source(sample) for one in sets for sample in one.samples]
    sources += [photos.source(sample) for sample in photos.samples]
    assert len({digest_of(source.read()) for source in sources}) == len(sources)
    assert len({source.stamp() for source in sources}) == len(sources)


def test_stamps_follow_the_image(photos: ImageList, tmp_path: Path) -> None:
    frames = perturbed(photos, "tilt", edition=SMALL)
    before = frames.source(frames.samples[0]).stamp()
    assert frames.source(frames.samples[0]).stamp() == before
    file = tmp_path / "photos" / "cat" / "a.png"
    file.write_bytes(file.read_bytes() + b"more")
    assert frames.source(frames.samples[0]).stamp() != before


def test_a_source_without_a_stamp_has_frames_without(photos: ImageList) -> None:
    class Unstamped:
        def stamp(self) -> None:
            return None

    frame = perturbed(photos, "tilt", edition=SMALL).source(Sample("cat/a.png/tilt/00"))
    assert isinstance(frame, FrameImage)
    assert FrameImage(Unstamped(), frame.recipe, "a", 0).stamp() is None  # type: ignore[arg-type]


def test_frames_travel_to_other_processes(photos: ImageList) -> None:
    frames = perturbed(photos, "shear", edition=SMALL)
    source = frames.source(frames.samples[2])
    sent = pickle.loads(pickle.dumps(source))
    assert sent == source
    assert np.array_equal(sent.decode(sent.read()), pixels(frames, frames.samples[2]))


def test_the_location_opens_the_frames_again(photos: ImageList) -> None:
    frames = perturbed(photos, "shot_noise", level=2, edition=SMALL, seed=9, limit=1)
    assert frames.location is not None
    again = open_dataset(frames.location)
    assert again.ref == frames.ref
    assert np.array_equal(pixels(again, again.samples[5]), pixels(frames, frames.samples[5]))


def test_the_location_of_images_of_a_named_kind_goes_inside(draw: Callable[..., Path], tmp_path: Path) -> None:
    draw(tmp_path / "n02666943" / "a.png")
    (tmp_path / "list.txt").write_text("n02666943/a.png\n")
    images = open_dataset(f"imagenet-ood:{tmp_path}?list_file={tmp_path / 'list.txt'}")
    frames = perturbed(images, "tilt", edition=SMALL)
    assert open_dataset(str(frames.location)).ref == frames.ref


def test_images_in_memory_have_frames_without_a_location(photos: ImageList) -> None:
    images = ImageList("here", photos.samples, photos.classes, photos.find)
    assert perturbed(images, "tilt", edition=SMALL).location is None


def test_an_image_that_cannot_be_read_is_skipped_frame_by_frame(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    frames = perturbed(open_dataset(tmp_path / "photos"), "tilt", edition=SMALL)
    for sample in frames.samples[:2]:
        with pytest.raises(UnreadableImage):
            pixels(frames, sample)


def test_slips_are_found_before_any_image_is_opened(photos: ImageList) -> None:
    with pytest.raises(UnknownName, match="did you mean rotate"):
        perturbed(photos, "rotat")
    with pytest.raises(BadInput, match="level 1 alone"):
        perturbed(photos, "rotate", level=2)
    with pytest.raises(BadInput, match="limit should be a number of images, at least 1, got 0"):
        perturbed(photos, "rotate", limit=0)
    with pytest.raises(BadInput, match=r"say which perturbation, as in perturbed:.*\?perturbation=tilt"):
        open_dataset(f"perturbed:{Path(str(photos.location))}")
    with pytest.raises(BadInput, match="level should be a whole number, got 'two'"):
        open_dataset(f"perturbed:{photos.location}?perturbation=shot_noise&level=two")


def test_a_model_answers_for_every_frame_and_not_twice(
    draw_photos: Callable[..., Path], colour_model: Classifier, tmp_path: Path
) -> None:
    frames = perturbed(open_dataset(draw_photos(1)), "brightness", edition=SMALL)
    first = predict(colour_model, frames, store=tmp_path / "runs")
    again = predict(colour_model, frames, store=tmp_path / "runs", workers=2)
    assert len(first) == len(frames.samples)
    assert first.facts["frame"][:3] == (0, 1, 2)
    assert np.array_equal(first.top5.scores, again.top5.scores)
