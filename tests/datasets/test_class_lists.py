import json
from pathlib import Path

import pytest

from shiftproof.datasets.classes import classes_from, coco_classes
from shiftproof.datasets.wordnet import wordnet
from shiftproof.errors import BadInput
from shiftproof.reference import ilsvrc_classes, load_table
from shiftproof.types import Classes

CALLED_OTHERWISE = {  # the word that WordNet has for a class of COCO
    "cat": "house cat",
    "cow": "cows",
    "skis": "ski",
    "sports ball": "ball",
    "wine glass": "wineglass",
    "potted plant": "pot plant",
    "tv": "television",
    "keyboard": "computer keyboard",
    "cell phone": "cellphone",
}
OF_SEVERAL_MEANINGS = [
    ("person", "organism"),
    ("car", "motor vehicle"),
    ("bus", "public transport"),
    ("train", "public transport"),
    ("boat", "vehicle"),
    ("bench", "furniture"),
    ("bird", "animal"),
    ("bear", "animal"),
    ("tie", "clothing"),
    ("kite", "plaything"),
    ("sports ball", "game equipment"),
    ("cup", "container"),
    ("fork", "cutlery"),
    ("bowl", "dish"),
    ("banana", "edible fruit"),
    ("apple", "edible fruit"),
    ("orange", "edible fruit"),
    ("broccoli", "vegetable"),
    ("carrot", "vegetable"),
    ("hot dog", "sandwich"),
    ("cake", "baked goods"),
    ("chair", "furniture"),
    ("couch", "seat"),
    ("bed", "furniture"),
    ("toilet", "plumbing fixture"),
    ("mouse", "electronic device"),
    ("microwave", "kitchen appliance"),
    ("toaster", "kitchen appliance"),
    ("sink", "plumbing fixture"),
    ("book", "artifact"),
    ("scissors", "edge tool"),
    ("toothbrush", "brush"),
]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("names.txt", "tench\r\ngoldfish\r\n\r\n"),
        ("wnids.txt", "n01440764\nn01443537\n"),
        ("both.txt", "n01440764 tench\nn01443537 goldfish\n"),
        ("list.json", json.dumps(["tench", "goldfish"])),
        ("map.json", json.dumps({"1": "goldfish", "0": "tench"})),
        ("index.json", json.dumps({"0": ["n01440764", "tench"], "1": ["n01443537", "goldfish"]})),
    ],
)
def test_a_file_names_the_classes(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert classes_from(tmp_path / name).names == ("tench", "goldfish")


def test_names_may_repeat_but_wnids_may_not() -> None:
    assert classes_from(["crane", "crane"]).names == ("crane", "crane")
    with pytest.raises(BadInput, match="twice"):
        classes_from(["n01440764", "n01440764"])


def test_classes_that_are_given_stay_as_they_are() -> None:
    given = Classes(("a", "b"))
    assert classes_from(given) is given


def test_ilsvrc_goes_by_its_name() -> None:
    assert classes_from("ilsvrc2012") == ilsvrc_classes()


def test_coco_goes_by_its_name_and_its_numbers_leave_out_ten() -> None:
    assert classes_from("coco") == coco_classes()
    categories = [int(row["category"]) for row in load_table("coco_classes")]
    assert categories == [number for number in range(1, 91) if number not in (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)]
    assert len(set(coco_classes().keys)) == len(coco_classes()) == 80


def test_every_class_of_coco_has_the_noun_that_means_it() -> None:
    for name, wnid in zip(coco_classes().names, coco_classes().keys, strict=True):
        if wnid != "stop sign":
            assert CALLED_OTHERWISE.get(name, name) in map(str.lower, wordnet().words(wnid))


@pytest.mark.parametrize(("name", "kind"), OF_SEVERAL_MEANINGS)
def test_a_word_of_several_meanings_has_the_one_that_is_photographed(name: str, kind: str) -> None:
    wnid = coco_classes().keys[coco_classes().names.index(name)]
    assert kind in map(wordnet().name, wordnet().ancestors(wnid))


@pytest.mark.parametrize(("name", "text"), [("a.json", "{"), ("b.json", '{"x": "y"}'), ("c.json", "3"), ("d.txt", "")])
def test_a_broken_list_is_named(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput):
        classes_from(tmp_path / name)
    with pytest.raises(BadInput, match="cannot be read"):
        classes_from(tmp_path / "missing.txt")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('{"0": "ant", "5": "bee", "9": "cat"}', "3 classes by the places 0 to 2, got them without 1, 2, with 5, 9"),
        ('{"1": "ant", "2": "bee"}', "2 classes by the places 0 to 1, got them without 0, with 2"),
        ('{"-1": "ant", "0": "bee"}', "without 1, with -1"),
        ('{"0": "ant", "00": "bee"}', "with one twice"),
        ('{"0": "ant", "0": "bee"}', "gives '0' twice"),
        ("[" * 100_000, "is nested too deeply"),
        ("[" * 900 + "]" * 900, "class 0 should be a name"),
        ('["ant", ' + "9" * 5000 + "]", "holds a number of thousands of digits"),
        ('["ant", "\\ud800"]', "holds half a character"),
        ('["ant", {"name": "bee"}]', "class 1 should be a name, or a wnid and a name, got dict"),
        ('["ant", null]', "class 1 should be a name"),
    ],
)
def test_names_that_cannot_stand_for_classes_are_refused_with_a_sentence(tmp_path: Path, text: str, answer: str) -> None:
    (tmp_path / "names.json").write_text(text)
    with pytest.raises(BadInput, match=answer):
        classes_from(tmp_path / "names.json")


def test_a_list_that_is_no_file_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "pointer.txt").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
    for place, answer in [
        (tmp_path, "is a folder"),
        (Path("/dev/zero"), "is a pipe or a device"),
        (tmp_path / "a\0b", "names no file"),
        (tmp_path / ("x" * 5000), "File name too long"),
        (tmp_path / "pointer.txt", "git lfs pull"),
    ]:
        with pytest.raises(BadInput, match=f"the class list cannot be read: .*{answer}"):
            classes_from(place)


@pytest.mark.parametrize(
    "mapping",
    [
        {"dog": 1, "cat": 0, "eel": 2},
        {"1": "dog", "0": "cat", "2": "eel"},
        {"class_to_idx": {"eel": 2, "dog": 1, "cat": 0}, "epochs": 3},
        {"model_type": "vit", "id2label": {"0": "cat", "1": "dog", "2": "eel"}, "label2id": {"cat": 0, "dog": 1, "eel": 2}},
    ],
)
def test_names_and_places_are_read_either_way_round(mapping: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "classes.json").write_text(json.dumps(mapping))
    assert classes_from(tmp_path / "classes.json").names == ("cat", "dog", "eel")


@pytest.mark.parametrize(
    ("mapping", "answer"),
    [
        ({"0": 1, "1": 0}, "maps numbers to numbers: which are the classes"),
        ({"cat": 0, "dog": 2}, "should map places 0, 1, 2"),
        ({"cat": 0, "dog": 0}, "should map places 0, 1, 2"),
        ({"cat": 1, "dog": 2}, "should map places 0, 1, 2"),
        ({"cat": True, "dog": False}, "should map places 0, 1, 2"),
    ],
)
def test_a_mapping_that_could_be_either_or_has_gaps_is_refused(mapping: dict[str, int], answer: str, tmp_path: Path) -> None:
    (tmp_path / "classes.json").write_text(json.dumps(mapping))
    with pytest.raises(BadInput, match=answer):
        classes_from(tmp_path / "classes.json")


def test_classes_that_are_called_by_numbers_keep_their_places(tmp_path: Path) -> None:
    (tmp_path / "classes.json").write_text(json.dumps({"0": 5, "1": 6}))
    assert classes_from(tmp_path / "classes.json").names == ("5", "6")
    (tmp_path / "classes.json").write_text(json.dumps({"0": 0, "1": 1}))
    assert classes_from(tmp_path / "classes.json").names == ("0", "1")
