"""Trainings of heads from end to end: what comes out, what it opens as, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

import shiftproof as sp
from shiftproof.errors import BadInput, UnknownName
from shiftproof.models.by_settings import load_classifier
from shiftproof.training.averaging import balanced, greedy_soup, interpolated
from shiftproof.training.head_level import old_head
from shiftproof.training.trained import Trained, read_trained, read_weights, write_trained
from shiftproof.types import Classes, Classifier, Sample
from small_tflite import SmallNetwork, tflite_bytes
from toys import save_colour_network, small_transformer

pytestmark = pytest.mark.usefixtures("one_worker")

Draw = Callable[..., Path]


@pytest.fixture
def network(tmp_path: Path) -> str:
    save_colour_network(tmp_path / "colours.onnx")
    return f"onnx:{tmp_path / 'colours.onnx'}"


SETTINGS = sp.ModelSettings(preprocess="squash,size=16,mean=0,std=1")


def train(model: str | Classifier, data: Any, out: Path, **said: Any) -> Trained:
    settings = {"store": out.parent / "runs", "model_options": SETTINGS} | said.pop("settings", {})
    said = {"copies": 2} | said if said.get("level") != "network" else said
    return sp.train(model, data, out, options=sp.TrainOptions(**said), **settings)


def test_what_was_trained_opens_as_a_model_and_gives_what_its_head_gives(
    tmp_path: Path, network: str, draw_photos: Draw
) -> None:
    photos, out = draw_photos(12), tmp_path / "better"
    trained = train(network, photos, out, recipe="linear-probe")
    assert trained.accuracy["clean"] == 1
    model = sp.load_model(str(out))
    assert model.classes is not None
    assert model.classes.names == ("blue", "green", "red")
    assert (model.ref.name, model.gives) == ("better", "logits")
    assert str(model.preprocessing) == str(sp.load_model(network, preprocess=SETTINGS.preprocess).preprocessing)

    inputs = np.random.default_rng(0).random((5, 3, 16, 16), np.float32)
    weights, outputs = read_weights(out), model(inputs, features=True)
    assert outputs.features is not None
    np.testing.assert_allclose(outputs.features, inputs.mean(axis=(2, 3)), atol=1e-6)
    np.testing.assert_allclose(outputs.scores, inputs.mean(axis=(2, 3)) @ weights["weight"].T + weights["bias"], atol=1e-5)
    told = json.loads((out / "training.json").read_text())
    assert told["split"]["training"] == 30
    assert len(told["split"]["validation"]) == 6
    assert not (out / "checkpoints").exists()


def test_a_report_of_a_trained_model_warns_of_what_it_was_trained_with(
    tmp_path: Path, network: str, draw_photos: Draw
) -> None:
    photos = draw_photos(8)
    train(network, photos, tmp_path / "better", recipe="corrupted:fog/contrast")
    corruptions = {"corruption": sp.CorruptionOptions(corruptions=("fog", "snow"), severities=(1,))}
    results = sp.run(str(tmp_path / "better"), photos, studies=corruptions, store=tmp_path / "runs")
    warned = [text for text in results.warnings if "augmentation of its training" in text]
    assert len(warned) == 1
    assert "is tested under fog:" in warned[0]
    seen = sp.load_model(str(tmp_path / "better")).seen
    assert seen.augmentations == ("fog", "contrast")
    assert seen.training_data == "photos"


def test_half_of_a_training_is_not_done_again_and_ends_with_the_same_bytes(
    tmp_path: Path, network: str, draw_photos: Draw
) -> None:
    photos = draw_photos(16)
    whole = train(
        network, photos, tmp_path / "whole" / "better", recipe="noise+wise-ft:0.5", settings={"store": tmp_path / "a"}
    )

    class Stop:
        """A progress bar that stops the work after some batches."""

        def __init__(self, after: int) -> None:
            self.left, self.done = after, 0

        def begin(self, what: str, total: int, done: int) -> None:
            self.done += done

        def advance(self, images: int) -> None:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt

        def end(self) -> None:
            pass

    out = tmp_path / "stopped" / "better"
    again = {"store": tmp_path / "b"}
    for after in (0, 1, 5, 9, 14):
        with pytest.raises(KeyboardInterrupt):
            train(network, photos, out, recipe="noise+wise-ft:0.5", settings=again | {"progress": Stop(after)})
        assert not (out / "training.json").exists()
    last = Stop(10**6)
    train(network, photos, out, recipe="noise+wise-ft:0.5", settings=again | {"progress": last})
    assert last.done > 0, "features that were stored are not computed again"
    for name in ("weights.safetensors", "model.onnx"):
        assert (out / name).read_bytes() == (whole.folder / name).read_bytes()


def test_the_same_training_twice_is_done_once_and_another_one_is_refused(
    tmp_path: Path, network: str, draw_photos: Draw
) -> None:
    photos, out, said = draw_photos(8), tmp_path / "better", list[str]()
    train(network, photos, out, recipe="linear-probe")
    before = (out / "training.json").stat().st_mtime_ns
    train(network, photos, out, recipe="linear-probe", settings={"tell": said.append})
    assert (out / "training.json").stat().st_mtime_ns == before
    assert said == [f"{out} holds this training already"]
    with pytest.raises(BadInput, match="holds the training of one seed; name another folder for 2"):
        train(network, photos, out, recipe="linear-probe", seeds=2)
    for other in ({"seed": 1}, {"recipe": "balanced"}, {"l2": 0.1}):
        with pytest.raises(BadInput, match=r"holds another training \(linear-probe, head level, seed 0, of photos\)"):
            train(network, photos, out, **{"recipe": "linear-probe"} | other)
    Pillow.new("RGB", (8, 8)).save(photos / "blue" / "000.png")
    with pytest.raises(BadInput, match="holds another training"):
        train(network, photos, out, recipe="linear-probe")


def test_of_several_seeds_the_best_is_opened(tmp_path: Path, network: str, draw_photos: Draw) -> None:
    photos, out = draw_photos(8), tmp_path / "better"
    trained = train(network, photos, out, recipe="noise", seeds=2, seed=5)
    assert [part.folder.name for part in trained.parts] == ["seed-5", "seed-6"]
    one, two = (read_weights(part.folder)["weight"] for part in trained.parts)
    assert not np.array_equal(one, two)
    chosen = json.loads((out / "training.json").read_text())["chosen"]
    best = max(trained.parts, key=lambda part: part.accuracy["clean and augmented"])
    model = sp.load_model(str(out))
    assert model.head is not None
    np.testing.assert_array_equal(model.head.weights, read_weights(best.folder)["weight"])
    assert f"of 2 trainings this is {chosen}: the best on the validation split" in model.notes
    again = read_trained(out)
    assert again is not None
    assert len(again.parts) == 2


def test_a_soup_is_the_mean_of_heads_that_do_not_make_it_worse(tmp_path: Path, network: str, draw_photos: Draw) -> None:
    out = tmp_path / "better"
    trained = train(network, draw_photos(8), out, recipe="noise+soup", seeds=2)
    parts = [read_weights(out / name)["weight"] for name in ("seed-0", "seed-1")]
    soup = read_weights(out / "joined")["weight"]
    # all heads are right everywhere here, so both are taken in
    assert [part.accuracy["clean and augmented"] for part in trained.parts] == [1, 1, 1]
    np.testing.assert_allclose(soup, np.mean(parts, axis=0), rtol=1e-6)
    model = sp.load_model(str(out))
    assert model.head is not None
    np.testing.assert_array_equal(model.head.weights, soup)


@pytest.mark.parametrize("alpha", [0, 1])
def test_wise_ft_at_its_ends_is_the_old_head_and_the_new_one(
    tmp_path: Path, network: str, draw_photos: Draw, alpha: int
) -> None:
    settings = {"model_options": sp.ModelSettings(preprocess=SETTINGS.preprocess, classes=str(_class_list(tmp_path)))}
    photos = draw_photos(8)
    train(network, photos, tmp_path / "wise", recipe=f"noise+wise-ft:{alpha}", settings=settings)
    train(network, photos, tmp_path / "plain", recipe="noise", settings=settings)
    ends = (np.array([[0, 0, 20], [0, 20, 0], [20, 0, 0]], np.float32), read_weights(tmp_path / "plain")["weight"])
    np.testing.assert_array_equal(read_weights(tmp_path / "wise")["weight"], ends[alpha])


def test_without_an_old_head_of_these_classes_wise_ft_begins_with_the_head_of_clean_pictures(
    tmp_path: Path, network: str, draw_photos: Draw
) -> None:
    photos = draw_photos(8)
    for name, recipe in {"clean": "linear-probe", "noise": "noise", "wise": "noise+wise-ft:0.25"}.items():
        train(network, photos, tmp_path / name, recipe=recipe)
    assert (
        sp.load_model(str(tmp_path / "wise")).notes[1]
        == "wise-ft: before training there was a head fitted to clean pictures"
    )
    first, last, between = (read_weights(tmp_path / name)["weight"] for name in ("clean", "noise", "wise"))
    np.testing.assert_allclose(between, 0.75 * first + 0.25 * last, rtol=1e-5)


def _class_list(folder: Path) -> Path:
    (folder / "classes.txt").write_text("blue\ngreen\nred\n")
    return folder / "classes.txt"


def test_the_old_head_is_taken_in_the_order_of_the_images_classes(tmp_path: Path, network: str) -> None:
    model = sp.load_model(network, classes=["blue", "green", "red"])
    rows = old_head(model, Classes(("red", "blue")))
    assert rows is not None
    np.testing.assert_array_equal(rows.weight, [[20, 0, 0], [0, 0, 20]])
    assert old_head(model, Classes(("red", "violet"))) is None
    assert old_head(sp.load_model(network), Classes(("red", "blue"))) is None


def test_a_model_that_is_no_graph_keeps_its_new_head_beside_it(tmp_path: Path, draw_photos: Draw) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    (tmp_path / "networks.py").write_text(
        "import torch\nfrom torch import nn\ndef small():\n    torch.manual_seed(0)\n"
        "    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5))\n"
    )
    out = tmp_path / "better"
    train(f"torch:{tmp_path / 'networks.py'}:small", draw_photos(8), out, recipe="linear-probe")
    assert not (out / "model.onnx").exists()
    with pytest.raises(BadInput, match="loading that may run any code: say --trust"):
        sp.load_model(str(out))
    model = sp.load_model(str(out), trust=True)
    inputs = np.random.default_rng(0).random((2, 3, 16, 16), np.float32)
    source = sp.load_model(f"torch:{tmp_path / 'networks.py'}:small", preprocess=SETTINGS.preprocess)
    features, weights = source(inputs, features=True).features, read_weights(out)
    assert features is not None
    np.testing.assert_allclose(model(inputs).scores, features @ weights["weight"].T + weights["bias"], rtol=1e-5)
    changed = (tmp_path / "networks.py").read_text().replace("manual_seed(0)", "manual_seed(1)")
    (tmp_path / "networks.py").write_text(changed)
    with pytest.raises(BadInput, match="has changed since"):
        sp.load_model(str(out), trust=True)


def test_a_head_on_a_tflite_file_opens_without_trust(tmp_path: Path, draw_photos: Draw) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    (tmp_path / "small.tflite").write_bytes(tflite_bytes())
    out, settings = tmp_path / "better", {"model_options": sp.ModelSettings(preprocess="squash,size=16,mean=0,std=1")}
    trained = train(str(tmp_path / "small.tflite"), draw_photos(8), out, recipe="linear-probe", settings=settings)
    assert trained.accuracy["clean"] == 1
    model, weights = sp.load_model(str(out)), read_weights(out)
    inputs = np.random.default_rng(0).random((3, 16, 16, 3), np.float32)
    by_hand = SmallNetwork.drawn().features(inputs) @ weights["weight"].T + weights["bias"]
    np.testing.assert_allclose(model(inputs).scores, by_hand, atol=1e-4)


@pytest.mark.parametrize("kind", ["timm", "torchvision", "hf"])
def test_a_head_on_a_network_of_a_library_is_kept_beside_it(tmp_path: Path, draw_photos: Draw, kind: str) -> None:
    pytest.importorskip("transformers" if kind == "hf" else kind, reason="the library is not installed")
    spec = {"timm": "timm:resnet10t", "torchvision": "torchvision:mobilenet_v3_small"}.get(kind, "")
    settings = sp.ModelSettings(weights="random", preprocess="squash,size=32")
    if kind == "hf":
        spec, settings = f"hf:{small_transformer(tmp_path)}", sp.ModelSettings()
    out = tmp_path / "better"
    train(spec, draw_photos(4), out, recipe="linear-probe", l2=0.1, settings={"model_options": settings})
    source, model = load_classifier(spec, settings), sp.load_model(str(out), trust=True)
    inputs = np.random.default_rng(0).random((2, 3, 32, 32), np.float32)
    features, weights = source(inputs, features=True).features, read_weights(out)
    assert features is not None
    np.testing.assert_allclose(model(inputs).scores, features @ weights["weight"].T + weights["bias"], atol=1e-4)


def test_recipes_are_compared_on_a_model_that_is_no_graph(tmp_path: Path, draw_photos: Draw) -> None:
    """Their folders hold heads alone, whose model was opened by its name a moment ago."""
    pytest.importorskip("torch", reason="torch is not installed")
    (tmp_path / "networks.py").write_text(
        "import torch\nfrom torch import nn\ndef small():\n    torch.manual_seed(0)\n"
        "    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5))\n"
    )
    grid = sp.GridOptions(
        recipes="linear-probe,balanced",
        seeds=1,
        l2=0.1,
        corruptions=("contrast",),
        severities=(1,),
        models=str(tmp_path / "grid"),
    )
    results = sp.recipes(
        f"torch:{tmp_path / 'networks.py'}:small",
        draw_photos(8),
        options=grid,
        store=tmp_path / "runs",
        model_options=SETTINGS,
    )
    assert [card.name for card in results.models] == ["linear-probe", "balanced"]
    assert [one.value for one in results.measurements if one.metric == "recipe_gain"] == [0]


def test_a_function_in_memory_cannot_keep_a_head(tmp_path: Path, colour_model: Classifier, draw_photos: Draw) -> None:
    with pytest.raises(BadInput, match="colours is no ONNX graph and has no name that loads it again"):
        train(colour_model, draw_photos(4), tmp_path / "better", recipe="linear-probe")


def test_images_that_cannot_be_read_are_counted_and_named(tmp_path: Path, network: str, draw_photos: Draw) -> None:
    photos = draw_photos(8)
    (photos / "blue" / "003.png").write_bytes(b"no picture")
    trained = train(network, photos, tmp_path / "better", recipe="noise")
    (note,) = trained.record.notes
    assert note.startswith("1 images could not be read and took no part: blue/003.png (")
    assert note in sp.load_model(str(tmp_path / "better")).notes


def test_preprocessing_that_a_recipe_changes_stays_with_the_model(tmp_path: Path, network: str, draw_photos: Draw) -> None:
    train(network, draw_photos(8), tmp_path / "better", recipe="clahe")
    assert sp.load_model(str(tmp_path / "better")).preprocessing.describe()["clahe"] == 2.0


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no setting": ({"recipe": "linear-probe:3"}, "linear-probe has no setting"),
    "joins": ({"recipe": "soup"}, "makes one model of several seeds; say --seeds 3"),
    "outliers": (
        {"recipe": "outlier-exposure", "level": "network"},
        "needs images of none of the classes; name some with --outliers",
    ),
    "unused outliers": ({"outliers": "photos"}, "for outlier-exposure, reject-class, and baseline looks at none"),
    "level": ({"recipe": "mixup"}, "is done at network level; say --level network"),
    "alpha": ({"recipe": "wise-ft:2"}, "alpha should be 0"),
    "endless penalty": ({"l2": float("inf")}, r"l2 should be above 0 and at most 1e\+09, got inf"),
    "no penalty": ({"l2": float("nan")}, r"l2 should be above 0 and at most 1e\+09, got nan"),
    "both": ({"recipe": "noise+cutout"}, "noise and cutout both change the augment of training"),
    "network options": ({"epochs": 3}, "--epochs cannot be asked for"),
    "fact": ({"recipe": "balanced:site"}, "no fact of these images to balance them by called 'site'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_trained_is_one_sentence(tmp_path: Path, network: str, draw_photos: Draw, case: str) -> None:
    said, told = REFUSED[case]
    with pytest.raises((BadInput, UnknownName), match=told):
        train(network, draw_photos(4), tmp_path / "better", **said)


@pytest.mark.parametrize("name", ["fog", "augmx"])
def test_an_unknown_recipe_is_told_with_the_nearest(tmp_path: Path, network: str, draw_photos: Draw, name: str) -> None:
    with pytest.raises(UnknownName, match=f"no recipe called '{name}'"):
        train(network, draw_photos(4), tmp_path / "better", recipe=name)


def test_images_of_one_class_and_without_labels_are_refused(tmp_path: Path, network: str, draw_photos: Draw) -> None:
    photos = draw_photos(4)
    images = sp.open_dataset(str(photos))
    with pytest.raises(BadInput, match=r"has images of 1 class \(blue\); a classifier needs two"):
        train(network, photos, tmp_path / "one", settings={"images": sp.options.ImageChoice()} | _only_blue(photos))
    with pytest.raises(BadInput, match="has no labels to train on; --labels gives some"):
        train(network, photos, tmp_path / "none", settings={"dataset_options": sp.DatasetSettings(labels="none")})
    assert len(images.samples) == 12


def _only_blue(photos: Path) -> dict[str, Any]:
    for colour in ("green", "red"):
        for path in (photos / colour).iterdir():
            path.rename(photos / "blue" / f"{colour}-{path.name}")
    return {}


def test_a_folder_of_one_clip_cannot_be_split(tmp_path: Path, network: str, draw_photos: Draw) -> None:
    photos = draw_photos(3)
    rows = [f"{path.relative_to(photos)},{path.parent.name},one" for path in sorted(photos.glob("*/*.png"))]
    (photos / "manifest.csv").write_text("\n".join(["path,label,patient", *rows]))
    with pytest.raises(BadInput, match="cannot be split"):
        train(
            network,
            photos / "manifest.csv",
            tmp_path / "out",
            settings={"images": sp.options.ImageChoice(cluster="patient")},
        )


def test_damaged_result_folders_are_told(tmp_path: Path, network: str, draw_photos: Draw) -> None:
    out = tmp_path / "better"
    train(network, draw_photos(4), out, recipe="linear-probe")
    told = json.loads((out / "training.json").read_text())
    for change, sentence in (
        ({"format": 99}, "written by a newer shiftproof"),
        ({"format": None}, "was not written by shiftproof train"),
        ({"classes": 3}, "is damaged"),
        ({"chosen": "../../elsewhere", "parts": [], "why": ""}, "names '../../elsewhere' as the folder of a training"),
        ({"chosen": "seed-0", "parts": ["seed-0"], "why": ""}, "says that seed-0 holds the model"),
    ):
        (out / "training.json").write_text(json.dumps(told | change))
        with pytest.raises(BadInput, match=sentence):
            sp.load_model(str(out))


def test_groups_of_a_class_count_alike() -> None:
    samples = [Sample(str(place), (0,), {"ground": "sand" if place < 6 else "grass"}) for place in range(8)]
    samples += [Sample(f"b{place}", (1,), {"ground": "grass"}) for place in range(2)]
    weights = balanced(samples, by="ground")
    assert weights.mean() == pytest.approx(1)
    assert [weights[rows].sum() for rows in (slice(6), slice(6, 8), slice(8, 10))] == pytest.approx([10 / 3] * 3)
    classes = balanced(samples, by="")
    assert [classes[rows].sum() for rows in (slice(8), slice(8, 10))] == pytest.approx([5, 5])


def test_interpolation_leaves_counters_alone_and_a_soup_of_one_is_itself() -> None:
    start = {"weight": np.array([1.0], np.float16), "count": np.array([3])}
    end = {"weight": np.array([2.0], np.float16), "count": np.array([9])}
    between = interpolated(start, [end], lambda _: 0.0, alpha=0.5)
    assert between["weight"].tolist() == [1.5]
    assert between["weight"].dtype == np.float16
    assert between["count"].tolist() == [9]
    assert greedy_soup(start, [end], lambda _: 0.0)["weight"].tolist() == [2.0]


def test_weights_that_are_no_numbers_are_not_written(tmp_path: Path, network: str, draw_photos: Draw) -> None:
    done = train(network, draw_photos(4), tmp_path / "better", copies=1)
    broken = {"weight": np.array([[1.0, np.nan]]), "bias": np.zeros(1)}
    with pytest.raises(BadInput, match="no finite numbers, in weight; nothing was written"):
        write_trained(tmp_path / "other", done.record, broken, None)
    assert not (tmp_path / "other").exists()
