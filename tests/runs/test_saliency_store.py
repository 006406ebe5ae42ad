"""Heat maps in the store: made once, resumed, found again, and laid where the model saw the image."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

from command import Shiftproof
from shiftproof.datasets import open_dataset
from shiftproof.errors import BadInput, MissingRuns, StoreWarning
from shiftproof.models import wrap_model
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.options import PredictionSettings
from shiftproof.runs.load import digests_of
from shiftproof.runs.predict import fill_studies
from shiftproof.runs.saliency import ImageSaliency, SaliencyFolder, compute_saliency, load_saliency, to_columns
from shiftproof.runs.store import Store
from shiftproof.studies.measure import measure
from shiftproof.studies.saliency.study import SaliencyStudy
from shiftproof.types import Classes, Gallery, Inputs, Run
from toys import COLOURS, colour_scores, save_colour_network


class Counted:
    """The toy classifier, which counts the images it is asked about and fails at one of them where told."""

    def __init__(self) -> None:
        self.asked = 0
        self.fails_after: int | None = None

    def __call__(self, inputs: Inputs) -> Any:
        self.asked += len(inputs)
        if self.fails_after is not None and self.asked > self.fails_after:
            raise KeyboardInterrupt
        return colour_scores(inputs)


def model_of(function: Any, preprocess: str = "squash,mean=0,std=1", size: Any = (16, 16)) -> LoadedClassifier:
    return wrap_model(function, name="colours", version="1", class_names=sorted(COLOURS), size=size, preprocess=preprocess)


@pytest.fixture
def photos(draw_photos: Callable[..., Path]) -> Any:
    return open_dataset(draw_photos(4))


def asked_of(photos: Any, *classes: int) -> dict[str, list[int]]:
    return {sample.id: list(classes) for sample in photos.samples}


def test_maps_are_made_once_and_others_are_added_to_them(photos: Any, tmp_path: Path) -> None:
    counted, store = Counted(), Store(tmp_path / "runs")
    model = model_of(counted)
    folder = SaliencyFolder(store.root, model.ref, "occlusion")
    assert list(compute_saliency(model, photos, asked_of(photos, 0), folder, store=store)) == []
    first = counted.asked
    assert first == 12 * (1 + 49)
    list(compute_saliency(model, photos, asked_of(photos, 0), folder, store=store))
    assert counted.asked == first
    list(compute_saliency(model, photos, asked_of(photos, 2, 0), folder, store=store))
    assert counted.asked == 2 * first
    found = load_saliency(
        Run(model.ref, photos.ref), asked_of(photos, 2, 0), root=store.root, digests=digests_of(photos, store)
    )
    assert found.method == "occlusion"
    assert {one.classes for one in found.of.values()} == {(2, 0)}
    assert {one.maps.shape for one in found.of.values()} == {(2, 7, 7)}


def test_a_run_that_was_stopped_goes_on_where_it_stopped(photos: Any, tmp_path: Path) -> None:
    counted, store = Counted(), Store(tmp_path / "runs")
    model = model_of(counted)
    folder = SaliencyFolder(store.root, model.ref, "occlusion")
    counted.fails_after = 7 * 50
    with pytest.raises(KeyboardInterrupt):
        list(compute_saliency(model, photos, asked_of(photos, 0), folder, store=store, batch_size=2))
    counted.asked, counted.fails_after = 0, None
    list(compute_saliency(model, photos, asked_of(photos, 0), folder, store=store, batch_size=2))
    assert counted.asked == 6 * 50


def test_a_changed_file_is_looked_at_again_and_one_that_cannot_be_read_is_skipped(photos: Any, tmp_path: Path) -> None:
    counted, store = Counted(), Store(tmp_path / "runs")
    model = model_of(counted)
    folder = SaliencyFolder(store.root, model.ref, "occlusion")
    list(compute_saliency(model, photos, asked_of(photos, 0), folder, store=store))
    counted.asked = 0
    Pillow.new("RGB", (20, 20), "red").save(tmp_path / "photos" / "red" / "001.png")
    (tmp_path / "photos" / "blue" / "000.png").write_bytes(b"no image")
    aside = list(compute_saliency(model, photos, asked_of(photos, 0), folder, store=store))
    assert [image.id for image in aside] == ["blue/000.png"]
    assert counted.asked == 50


def test_images_of_many_sizes_have_maps_of_their_own(tmp_path: Path) -> None:
    home = tmp_path / "photos" / "red"
    home.mkdir(parents=True)
    for number, side in enumerate((16, 20, 16)):
        Pillow.new("RGB", (side, side + 4), "red").save(home / f"{number}.png")
    photos, store = open_dataset(tmp_path / "photos"), Store(tmp_path / "runs")
    model = model_of(colour_scores, preprocess="unit", size=None)
    folder = SaliencyFolder(store.root, model.ref, "occlusion")
    list(compute_saliency(model, photos, asked_of(photos, 2), folder, store=store))
    digests = digests_of(photos, store)
    looks = [folder.load(key, digests[key] or "") for key in digests]
    assert [one and one.size for one in looks] == [(20, 16), (24, 20), (20, 16)]
    assert [one and one.window for one in looks] == [(0, 0, 16, 20), (0, 0, 20, 24), (0, 0, 16, 20)]


def test_maps_lie_where_the_preprocessing_cut(photos: Any, tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    model = model_of(colour_scores, preprocess="resize=crop,share=0.5,mean=0,std=1")
    folder = SaliencyFolder(store.root, model.ref, "occlusion")
    list(compute_saliency(model, photos, {"red/000.png": [0]}, folder, store=store))
    found = folder.load("red/000.png", digests_of(photos, store)["red/000.png"] or "")
    assert found is not None
    assert (found.size, found.window) == ((24, 32), (10, 6, 22, 18))


def test_missing_maps_are_named_with_the_command_that_makes_them(photos: Any, tmp_path: Path) -> None:
    store, model = Store(tmp_path / "runs"), model_of(colour_scores)
    folder = SaliencyFolder(store.root, model.ref, "occlusion")
    list(compute_saliency(model, photos, {"red/000.png": [0]}, folder, store=store))
    with pytest.raises(MissingRuns, match=r"photos: 11 of 12 images have no saliency maps yet;.*sp\.run\(") as missing:
        load_saliency(Run(model.ref, photos.ref), asked_of(photos, 0), root=store.root, digests=digests_of(photos, store))
    assert "--studies saliency" in missing.value.for_command()


def test_a_damaged_file_of_maps_says_what_to_do(photos: Any, tmp_path: Path) -> None:
    store, model = Store(tmp_path / "runs"), model_of(colour_scores)
    folder = SaliencyFolder(store.root, model.ref, "occlusion")
    list(compute_saliency(model, photos, {"red/000.png": [0]}, folder, store=store))
    (path,) = (tmp_path / "runs" / "looks").glob("*/*.safetensors")
    path.write_bytes(path.read_bytes()[:40])
    with pytest.warns(StoreWarning, match=r"is damaged .* --studies saliency computes the maps of this image again"):
        assert folder.load("red/000.png", digests_of(photos, store)["red/000.png"] or "") is None


def test_maps_of_joined_stores_are_joined(photos: Any, tmp_path: Path) -> None:
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    model = model_of(colour_scores)
    for store, key in ((one, "red/000.png"), (other, "red/001.png")):
        list(compute_saliency(model, photos, {key: [0]}, SaliencyFolder(store.root, model.ref, "occlusion"), store=store))
    one.absorb(other)
    asked = {"red/000.png": [0], "red/001.png": [0]}
    assert set(load_saliency(Run(model.ref, photos.ref), asked, root=one.root, digests=digests_of(photos, one)).of) == set(
        asked
    )


def test_classes_that_were_scored_are_columns_of_the_model() -> None:
    of_model = Classes(("cat", "dog", "eel"))
    assert to_columns({"a": [0, 1]}, Classes(("eel", "cat")), of_model) == {"a": [2, 0]}
    assert to_columns({"a": [0, 1]}, None, of_model) == {"a": [0, 1]}
    with pytest.raises(BadInput, match="leave out --class-groups"):
        to_columns({"a": [1]}, Classes(("eel", "pet")), of_model)


def test_some_maps_can_be_taken_in_another_order() -> None:
    look = ImageSaliency((4, 7, 9), np.arange(12.0).reshape(3, 2, 2), (10, 10), (0, 0, 10, 10))
    assert look.of_classes([9, 4]).maps[:, 0, 0].tolist() == [8.0, 0.0]


def test_a_preprocessing_that_does_not_say_what_it_shows_is_refused(photos: Any, tmp_path: Path, colour_model: Any) -> None:
    class Own:
        decoder = "pillow"

        def __getattr__(self, name: str) -> Any:
            return getattr(colour_model.preprocessing, name)

    model = wrap_model(colour_scores, name="own", version="1", preprocess=Own())  # type: ignore[arg-type]
    folder = SaliencyFolder(tmp_path, model.ref, "occlusion")
    with pytest.raises(BadInput, match="not known which part of an image it shows"):
        list(compute_saliency(model, photos, asked_of(photos, 0), folder, store=Store(tmp_path)))


def test_a_study_fills_what_it_asks_for_and_then_only_reads(photos: Any, tmp_path: Path) -> None:
    counted = Counted()
    model = model_of(counted)
    study = SaliencyStudy([model], photos, images=2)
    store = Store(tmp_path / "runs")
    fill_studies(model, [study], [photos], store=store, settings=PredictionSettings(workers=0))
    asked = counted.asked
    assert asked == 12 + 2 * 50  # every photo once; two right answers looked into, and there are no mistakes
    fill_studies(model, [study], [photos], store=store, settings=PredictionSettings(workers=0))
    results = measure(study, store=store, datasets=[photos])
    assert counted.asked == asked
    (gallery,) = results.galleries
    assert isinstance(gallery, Gallery)
    assert gallery.name == "saliency_correct"
    assert results.skipped == ("photos: no image has a box to compare saliency maps with",)


def test_images_without_labels_are_not_predicted_and_the_reason_is_told(
    shiftproof: Shiftproof, draw_photos: Callable[..., Path]
) -> None:
    save_colour_network(Path("colours.onnx"))
    folder = draw_photos(1) / "red"
    said = shiftproof("run", "colours.onnx", folder, "--studies", "saliency", "--preprocess", "unit", "--quiet")
    assert (said.code, Path("runs").exists()) == (1, False), said.err
    assert "red: the saliency study needs labels, and no image has one" in said.err


def test_the_command_makes_maps_reads_them_and_says_which_are_missing(
    shiftproof: Shiftproof, draw_photos: Callable[..., Path]
) -> None:
    save_colour_network(Path("colours.onnx"))
    Path("names.txt").write_text("blue\ngreen\nred\n")
    folder = draw_photos(4)
    model = ("onnx:colours.onnx", folder, "--preprocess", "squash,mean=0,std=1", "--classes", "names.txt", "--name", "net")
    study = ("--studies", "saliency", "--json")
    ran = shiftproof("run", *model, *study, "--saliency-images", 2, "--quiet", "-o", "look.html")
    assert ran.code == 0, ran.err
    assert '"saliency_correct"' in ran.out
    assert "Saliency maps" in Path("look.html").read_text(encoding="utf-8")
    assert len(list(Path("runs/looks").glob("class-activation-*/*.safetensors"))) == 2
    again = shiftproof("report", "net", folder, *study, "--saliency-images", 2, "-o", "again.html")
    assert again.code == 0, again.err
    more = shiftproof("measure", "net", folder, *study, "--saliency-images", 6)
    assert more.code == 1
    assert "images have no saliency maps yet" in more.err
    refused = shiftproof("run", *model, *study, "--saliency-method", "grad-cam", "--quiet")
    assert refused.code == 1
    assert "net does not allow grad-cam; it allows class-activation and occlusion" in refused.err
