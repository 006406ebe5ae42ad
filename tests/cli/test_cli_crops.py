"""Hard crops out of a boxed set, as people make them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image as Pillow

import shiftproof as sp
from boxed_shapes import Shape, draw_boxed
from command import Shiftproof
from shiftproof.metrics import is_correct
from toys import save_colour_network

MIDDLE = (40, 40, 60, 60)
BOXES = Path(__file__).parents[1] / "boxes" / "ilsvrc_objects.json"


@pytest.fixture
def shiftproof(shiftproof: Shiftproof) -> Shiftproof:
    """Runs the command in a folder with two boxed sets and a network that tells colours apart."""
    objects = {
        "disguised.png": ("green", [Shape(MIDDLE, "blue", "red")]),
        "plain.png": ("green", [Shape(MIDDLE, "red", "red")]),
        "tiny.png": ("green", [Shape((10, 10, 12, 15), "blue", "red")]),
    }
    draw_boxed(Path("photos"), objects)
    draw_boxed(Path("usual"), {"a.png": ("green", [Shape((0, 0, 50, 50), "red", "red")])})
    save_colour_network(Path("colours.onnx"))
    Path("names.txt").write_text("blue\ngreen\nred\n")
    return shiftproof


ASKED = ("curate", "crops", "photos/boxes.json", "hard", "--reference", "usual/boxes.json")
BY_COLOURS = ("--filter", "onnx:colours.onnx", "--classes", "names.txt", "--preprocess", "squash,mean=0,std=1")


def test_people_see_what_each_step_leaves_and_the_folder_last(shiftproof: Shiftproof) -> None:
    said = shiftproof(*ASKED, *BY_COLOURS)
    assert said.code == 0
    lines = said.out.splitlines()
    assert [line.split()[-1] for line in lines] == ["left", "3", "3", "3", "2", "1", "1", "hard"]
    assert "misclassified by colours in the tight crop" in said.out
    assert "squash" in said.err, "how the model sees images is told before it is asked"
    images = sp.open_dataset("hard")
    assert [sample.id for sample in images.samples] == ["disguised.png/000"]
    with Pillow.open("hard/red/disguised.png") as crop:
        assert crop.size == (40, 40)
    again = shiftproof(*ASKED, "--filter", "onnx:colours.onnx?classes=names.txt&preprocess=squash,mean=0,std=1")
    assert (again.code, again.out) == (0, said.out), "a filter model may have its options in its name"


def test_json_has_the_steps_and_every_reason(shiftproof: Shiftproof) -> None:
    told = json.loads(shiftproof(*ASKED, *BY_COLOURS, "--filter-crop", "final", "--json").out)
    assert [step["left"] for step in told["steps"]] == [3, 3, 3, 2, 2, 2]
    assert told["removed"] == [
        {
            "id": "tiny.png/000",
            "step": "not 8 times smaller than usual",
            "reason": "object proportion 0.10%, usually 25.00%",
        }
    ]
    assert (told["written"], told["written_before"], told["whole_images"]) == (2, 0, 0)
    again = json.loads(shiftproof(*ASKED, *BY_COLOURS, "--filter-crop", "final", "--json").out)
    assert (again["written"], again["written_before"]) == (0, 2)


def test_measured_shares_can_be_given_as_a_table_the_next_time(shiftproof: Shiftproof) -> None:
    shiftproof(*ASKED)
    said = shiftproof("curate", "crops", "photos/boxes.json", "again", "--shares", "hard/usual_shares.csv", "--quiet")
    assert said.code == 0
    for name in ("objects.csv", "manifest.csv", "usual_shares.csv"):
        assert Path("again", name).read_bytes() == Path("hard", name).read_bytes()


def test_how_much_smaller_is_too_small_is_the_users_to_say(shiftproof: Shiftproof) -> None:
    told = json.loads(shiftproof(*ASKED, "--times-smaller", "1000", "--encoding", "jpeg85", "--json").out)
    assert [step["left"] for step in told["steps"]][-2:] == [3, 3]
    assert sorted(path.name for path in Path("hard/red").iterdir()) == ["disguised.JPEG", "plain.JPEG", "tiny.JPEG"]


def test_a_limit_takes_some_of_the_photos(shiftproof: Shiftproof) -> None:
    told = json.loads(shiftproof(*ASKED, "--limit", "2", "--json").out)
    assert told["steps"][0]["left"] == 2


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (ASKED[:4], "--reference BOXES or --shares TABLE"),
        ((*ASKED, "--shares", "some.csv"), "--reference BOXES or --shares TABLE"),
        ((*ASKED[:4], "--reference", "photos"), "has no boxes"),
        ((*ASKED, *BY_COLOURS, "--filter", "lite:0", "--name", "two"), "--filter names several"),
        ((*ASKED, "--filter", "lit:0"), "did you mean lite"),
    ],
)
def test_mistakes_are_one_sentence(shiftproof: Shiftproof, typed: tuple[str, ...], told: str) -> None:
    said = shiftproof(*typed)
    assert (said.code, said.err.count("\n")) == (1, 1)
    assert told in said.err
    assert not Path("hard").exists()


@pytest.mark.real
def test_crops_of_real_photos_are_what_their_reference_model_misses(shiftproof: Shiftproof, real_data: Path) -> None:
    photos = f"coco:{BOXES}?images={real_data / 'ilsvrc-sample-1000'}"
    boxed = sp.open_dataset(photos)
    assert boxed.classes is not None
    rows = "".join(f"{wnid},0.35\n" for wnid in boxed.classes.keys)
    Path("shares.csv").write_text(f"wnid,share\n{rows}")
    asked = ("curate", "crops", photos, "hard", "--shares", "shares.csv", "--filter", "lite:0")
    told = json.loads(shiftproof(*asked, "--filter-crop", "final", "--json").out)
    crops = sp.open_dataset("hard")
    assert told["written"] == len(crops.samples) > 0
    assert Counter(gone["step"] for gone in told["removed"])["misclassified by lite:0 in the final crop"] > 50
    said = sp.predict(sp.load_model("lite:0"), crops, store="runs")
    assert not is_correct(said.labels, said.top5.classes).any(), "what it recognised went"
    photo_of = {sample.id: sample for sample in boxed.samples}
    for sample in crops.samples:
        photo = photo_of[sample.id.removesuffix("/000")]
        assert photo.boxes is not None
        (left, top, right, bottom), source = photo.boxes[0], crops.source(sample)
        height, width, _ = source.decode(source.read()).shape
        share = (right - left) * (bottom - top) / (width * height)
        # whole pixels around the window, so a little less; more only of a whole photo
        assert 0.32 < share <= 0.35 or (share > 0.35 and (width, height) == (photo.facts["width"], photo.facts["height"]))
