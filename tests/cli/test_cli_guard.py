"""`shiftproof guard` and `shiftproof watch`, as people use them, on a small network."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from PIL import Image as Pillow

import shiftproof as sp
from command import Said, Shiftproof
from toys import COLOURS, save_colour_network

Draw = Callable[..., Path]
SETTINGS = ("--preprocess", "unit,resize=squash", "--classes", "classes.txt", "--quiet")


@pytest.fixture
def shiftproof(shiftproof: Shiftproof, tmp_path: Path, draw_photos: Draw) -> Shiftproof:
    """In a folder with photos that the network knows, and greys that it does not."""
    save_colour_network(tmp_path / "colours.onnx")
    (tmp_path / "classes.txt").write_text("\n".join(sorted(COLOURS)))
    draw_photos(20)
    rng = np.random.default_rng(8)
    (tmp_path / "greys").mkdir()
    for number in range(40):
        pixels = np.clip(120 + rng.normal(0, 60, (24, 32, 3)) + rng.normal(0, 9, 3), 0, 255).astype(np.uint8)
        Pillow.fromarray(pixels).save(tmp_path / "greys" / f"{number:03}.png")
    return shiftproof


def guarded(run: Shiftproof, *typed: object) -> Said:
    return run("guard", "colours.onnx", "photos", *SETTINGS, "--shifted", "contrast:5", "--edition", "tiny-64", *typed)


def batch(names: list[Path]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    pictures = [np.asarray(Pillow.open(name).convert("RGB").resize((16, 16)), np.float32) / 255 for name in names]
    return np.stack(pictures).transpose(0, 3, 1, 2).astype(np.float32)


@pytest.mark.parametrize("detector", ["energy", "vim", "knn"])
def test_a_guard_is_written_and_says_the_same_in_python_and_in_the_graph(shiftproof: Shiftproof, detector: str) -> None:
    training = ["--training", "known"] if detector != "energy" else []
    for number, photo in enumerate(sorted(Path("photos").rglob("*.png")) if training else []):
        place = Path("known") / photo.parent.name
        place.mkdir(exist_ok=True, parents=True)
        Pillow.open(photo).transpose(Pillow.Transpose.FLIP_LEFT_RIGHT).save(place / f"{number}.png")
    said = guarded(shiftproof, "--ood", "greys", "--ood-detector", detector, *training, "--bank", 30, "-o", "guard")
    assert said.code == 0, said.err
    assert said.out.splitlines()[-1] == "guard"
    assert "promised" in said.out
    guard = sp.load_guard("guard")
    assert guard.record.model.scores == "scores"
    if detector == "knn":
        assert guard.record.detector["parameters"]["references"] == 30
    inputs = batch([*sorted(Path("photos").rglob("*.png"))[::6], *sorted(Path("greys").glob("*.png"))[::4]])
    session = onnxruntime.InferenceSession("guard/guarded.onnx", providers=["CPUExecutionProvider"])
    assert [one.name for one in session.get_outputs()] == ["scores", "ood_score", "accept", "calibrated_probability"]
    inputs[0] = np.nan
    scores, ood_score, accept, probability = session.run(None, {"image": inputs})
    found = guard.check(scores, inputs.mean(axis=(2, 3)))
    np.testing.assert_array_equal(found.accept, accept)
    np.testing.assert_allclose(found.ood_score, ood_score, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.calibrated_probability, probability, atol=1e-4)
    assert found.reason[0] == "not_finite"
    assert accept.any()
    assert not accept.all()


def test_without_ood_images_it_abstains_where_the_model_is_likely_wrong(shiftproof: Shiftproof) -> None:
    wrong = sorted(Path("photos/red").glob("*.png"))[:6]
    for photo in wrong:
        photo.rename(Path("photos/blue") / f"red-{photo.name}")
    said = guarded(shiftproof, "-o", "guard", "--json")
    assert said.code == 0, said.err
    told = json.loads(said.out)
    assert (told["goal"], told["detector"]["name"]) == ("failure", "msp")
    assert told["points"][0]["chosen"] == "FPR at most 5 %"
    assert [one["images_of"] for one in told["coverage"]] == ["photos", "contrast 5"]


@pytest.mark.parametrize("fixed", [1, 4])
def test_networks_of_a_fixed_batch_and_with_other_outputs_keep_what_they_give(shiftproof: Shiftproof, fixed: int) -> None:
    model = onnx.load("colours.onnx")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = fixed
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = fixed
    model.graph.output.append(onnx.helper.make_tensor_value_info("features", onnx.TensorProto.FLOAT, [fixed, 3]))
    onnx.save(model, "colours.onnx")
    said = guarded(shiftproof, "--ood", "greys", "--ood-detector", "energy", "--scores", "scores", "-o", "guard")
    assert said.code == 0, said.err
    session = onnxruntime.InferenceSession("guard/guarded.onnx", providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    assert names == ["scores", "features", "ood_score", "accept", "calibrated_probability"]
    given = session.run(["accept"], {"image": np.zeros((fixed, 3, 16, 16), np.float32)})[0]
    assert given.shape == (fixed,)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["--ood", "greys", "--ood-detector", "enrgy"], "did you mean energy"),
        (
            ["--ood", "greys", "--ood-detector", "confidence"],
            "confidence on colours: it needs the one output of a confidence",
        ),
        (["--ood", "greys", "--ood-detector", "vim"], "vim learns from training images"),
        (["--coverage", "1.5"], "--coverage"),
        (["--ood", "greys", "--scored", "subset"], "all classes of it"),
        (["--ood", "greys", "--unmatched", "wrong"], "leave out --scored, --class-groups and --unmatched wrong"),
    ],
)
def test_mistakes_are_told_in_a_sentence_and_write_nothing(shiftproof: Shiftproof, typed: list[str], told: str) -> None:
    said = guarded(shiftproof, *typed, "-o", "guard")
    assert said.code in (1, 2)
    assert told in said.err
    assert not Path("guard").exists()


def test_photos_and_scores_are_watched_and_the_watch_goes_on(shiftproof: Shiftproof) -> None:
    assert guarded(shiftproof, "--ood", "greys", "--ood-detector", "energy", "-o", "guard").code == 0
    Path("stream").mkdir()
    for number, photo in enumerate(sorted(Path("photos").rglob("*.png"))[::2]):
        Pillow.open(photo).save(f"stream/a{number:03}.png")
    first = shiftproof("watch", "guard", "stream", "-o", "watch", "--quiet", "--json")
    assert first.code == 0, first.err
    assert (json.loads(first.out)["images"], json.loads(first.out)["alarm"]) == (30, None)
    for photo in Path("greys").glob("*.png"):
        Pillow.open(photo).save(f"stream/b{photo.name}")
    (Path("stream") / "c-broken.png").write_bytes(b"no image")
    then = shiftproof("watch", "guard", "stream", "-o", "watch", "--quiet", "--window", 20)
    assert then.code == 0, then.err
    assert "1 photos could not be read" in then.err
    assert "drift: reported at image" in then.out
    assert then.out.splitlines()[-1] == "watch/watch.html"
    page = Path("watch/watch.html").read_text(encoding="utf-8")
    assert "likely begun near image" in page
    lines = Path("watch/watch.jsonl").read_text().splitlines()
    assert len(lines) == 71
    again = shiftproof("watch", "guard", "stream", "-o", "watch", "--quiet", "--json")
    assert json.loads(again.out)["images"] == 70
    assert Path("watch/watch.jsonl").read_text().splitlines() == lines
    scores = [json.loads(line)["ood_score"] for line in lines[1:]]
    Path("scores.csv").write_text("\n".join(["ood_score", *map(str, scores), "-0."]))
    np.save("scores.npy", np.array(scores))
    Path("scores.jsonl").write_text("".join(f'{{"ood_score": {one}}}\n' for one in scores) + '{"ood_sc')
    for name in ("scores.csv", "scores.npy", "scores.jsonl"):
        said = shiftproof("watch", "guard", name, "-o", f"of-{name}", "--json")
        assert json.loads(said.out)["evidence"] == pytest.approx(json.loads(again.out)["evidence"])
        assert (f"the last row of {name} may still be being written" in said.err) == (name != "scores.npy")
    assert shiftproof("watch", "guard", "scores.csv", "-o", "of-scores.csv", "--json").code == 0
    Path("scores.csv").write_text("ood_score\n1.0\n")
    fewer = shiftproof("watch", "guard", "scores.csv", "-o", "of-scores.csv")
    assert (fewer.code, "1 scores, and 70 were seen before" in fewer.err) == (1, True)
    other = shiftproof("watch", "guard", "stream", "-o", "watch2", "--guarded-model", "colours.onnx", "--quiet")
    assert "is not the model that the guard was made for" in other.err
    assert "row 1 of" in _wrong_scores(shiftproof)
    graph = Path("guard/guarded.onnx")
    graph.write_bytes(graph.read_bytes()[:-1] + b"?")
    changed = shiftproof("watch", "guard", "stream", "-o", "watch3", "--quiet")
    assert (changed.code, "is not the file that guard.json was written with" in changed.err) == (1, True)


def test_photos_that_cannot_be_read_do_not_stop_a_watch(shiftproof: Shiftproof, monkeypatch: pytest.MonkeyPatch) -> None:
    assert guarded(shiftproof, "--ood", "greys", "--ood-detector", "energy", "-o", "guard").code == 0
    monkeypatch.setattr("shiftproof.bench.watched.AT_ONCE", 2)
    Path("stream").mkdir()
    for name in ("a1", "a2"):
        Path(f"stream/{name}.png").write_bytes(b"no image")
    alone = shiftproof("watch", "guard", "stream", "-o", "watch", "--quiet", "--json")
    assert (alone.code, json.loads(alone.out)["images"]) == (0, 0), alone.err
    Pillow.open("greys/000.png").save("stream/b.png")
    then = shiftproof("watch", "guard", "stream", "-o", "watch", "--quiet", "--json")
    assert (then.code, json.loads(then.out)["images"]) == (0, 1), then.err
    assert "2 photos could not be read" in then.err


def _wrong_scores(run: Shiftproof) -> str:
    Path("wrong.csv").write_text("score\n1\n")
    return run("watch", "guard", "wrong.csv", "-o", "wrong").err
