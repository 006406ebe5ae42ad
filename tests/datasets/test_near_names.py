"""Similar class names are proposed, and taken only where a class map says so."""

import json
from pathlib import Path

import pytest

from command import Shiftproof
from shiftproof.datasets.classes import usual_classes
from shiftproof.datasets.label_spaces import Scoring, match_classes
from shiftproof.datasets.near_names import near_classes, renamed
from shiftproof.datasets.subsets import load_class_map
from shiftproof.errors import BadInput, ClassMismatch
from shiftproof.reference import ilsvrc_classes
from shiftproof.types import Classes
from toys import save_colour_network

PETS = Classes(("tabby cat", "T-shirt", "Egyptian cat", "hen"))


@pytest.mark.parametrize("name", ["tabby_cat", "Tabby Cat", "TABBY  CAT"])
def test_spaces_underscores_and_case_need_no_map(name: str) -> None:
    assert match_classes(Classes((name,)), PETS, outputs=4).label_of == (0,)


@pytest.mark.parametrize("name", ["tabby", "Tabby", "tabby cat", "tabby_cat", "n02123045"])
def test_names_and_wnids_of_an_ilsvrc_class_need_no_map(name: str) -> None:
    for outputs, column in ((1000, 281), (1001, 282)):
        assert match_classes(Classes((name,)), usual_classes(outputs), outputs=outputs).label_of == (column,)


@pytest.mark.parametrize(
    ("name", "proposed"),
    [
        ("tabby", ["tabby cat"]),
        ("tabbi cat", ["tabby cat"]),
        ("tabby-cats", ["tabby cat"]),
        ("tshirt", ["T-shirt"]),
        ("t shirts", ["T-shirt"]),
        ("cat", ["tabby cat", "Egyptian cat"]),
        ("hens", ["hen"]),
        ("zebra", []),
        ("", []),
        ("???", []),
    ],
)
def test_the_most_similar_names_are_proposed(name: str, proposed: list[str]) -> None:
    (found,) = near_classes([name], PETS)
    assert [PETS.names[near.column] for near in found] == proposed


def test_a_slip_is_found_among_all_names_of_a_thousand_classes() -> None:
    names = ["gold fish", "tabby_kat", "garter snakes", "notebok computer", "sea-lion", "chair leg"]
    found = near_classes(names, ilsvrc_classes())
    assert [ilsvrc_classes().names[near[0].column] if near else "" for near in found] == [
        *("goldfish", "tabby", "garter snake", "notebook", "sea lion", ""),
    ]


def test_the_error_proposes_them_and_says_how_to_take_them() -> None:
    with pytest.raises(ClassMismatch) as told:
        match_classes(Classes(("tabbi cat", "zebra", "hen")), PETS, outputs=4)
    assert "2 of 3 classes of the images are not among the 4" in str(told.value)
    assert "tabbi cat (near: tabby cat), zebra; say which is which with --class-map" in str(told.value)
    many = Classes(tuple(f"thing {number:02}" for number in range(30)))
    with pytest.raises(ClassMismatch, match=r"thing 07 and 22 more; say"):
        match_classes(many, PETS, outputs=4)


def test_only_a_name_that_is_clearly_nearest_is_taken() -> None:
    pets = Classes(("tabbi cat", "cat", "hen", "zebra"))
    classes, told = renamed(pets, PETS, None)
    assert told == {"tabbi cat": "tabby cat"}
    assert renamed(Classes(("dog",)), Classes(("hot dog", "hen")), None)[1] == {}
    assert classes.names == ("tabby cat", "cat", "hen", "zebra")


def test_a_map_is_scored_and_said() -> None:
    images = Classes(("moggy", "hen"))
    space = Scoring(class_map={"moggy": "egyptian_cat"}).space(images, PETS, outputs=4)
    assert space.label_of == (2, 3)
    assert space.convention["class map"] == "moggy is Egyptian cat"
    near = Scoring(class_map="near", classes="subset").space(Classes(("hens", "t shirt")), PETS, outputs=4)
    assert (near.columns, near.classes.names) == (((3,), (1,)), ("hen", "T-shirt"))
    assert near.convention["class map"] == "hens is hen, t shirt is T-shirt (similar names)"
    assert "class map" not in Scoring(class_map="near").space(Classes(("hen",)), PETS, outputs=4).convention


def test_a_map_leads_from_wnids_to_wnids() -> None:
    images = Classes(("tench", "odd"), ("n01440764", "n99999999"))
    space = Scoring(class_map={"n99999999": "goldfish"}).space(images, ilsvrc_classes(), outputs=1000)
    assert space.label_of == (0, 1)


def test_a_map_of_classes_that_are_not_there_is_refused() -> None:
    images = Classes(("moggy", "hen"))
    for names, answer in [
        ({"dog": "hen"}, "the class map names classes that the images do not have: dog"),
        ({"moggy": "tabbycat"}, r"leads to classes that the model does not have: tabbycat \(near: tabby cat\)"),
    ]:
        with pytest.raises(ClassMismatch, match=answer):
            Scoring(class_map=names).space(images, PETS, outputs=4)
    with pytest.raises(ClassMismatch, match="needs the names of the model's classes"):
        Scoring(class_map="near").space(images, None, outputs=4)


@pytest.mark.parametrize("content", ["[]", "{}", '{"a": 1}', '"near"'])
def test_a_file_that_is_no_map_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "map.json").write_text(content)
    with pytest.raises(BadInput, match=r"should hold names of the images' classes"):
        load_class_map(str(tmp_path / "map.json"))


def test_the_command_proposes_and_takes_a_map(shiftproof: Shiftproof, draw_photos: object, tmp_path: Path) -> None:
    photos = draw_photos()  # type: ignore[operator]  # a fixture that is called
    (photos / "red").rename(photos / "crimson")
    (photos / "green").rename(photos / "greens")
    save_colour_network(tmp_path / "colours.onnx")
    (tmp_path / "names.txt").write_text("blue\ngreen\nred\n")
    asked = (
        "run",
        "colours.onnx",
        "photos",
        "--classes",
        "names.txt",
        "--preprocess",
        "unit",
        "--studies",
        "accuracy",
        "--json",
    )
    refused = shiftproof(*asked)
    assert refused.code == 1
    assert "crimson, greens (near: green); say which is which with --class-map" in refused.err
    still = shiftproof(*asked, "--class-map", "near")
    assert "1 of 3 classes of the images are not among the 3 classes of the model: crimson;" in still.err
    (tmp_path / "map.json").write_text(json.dumps({"crimson": "red", "greens": "green"}))
    taken = shiftproof(*asked, "--class-map", "map.json")
    assert taken.code == 0
    accuracy = [one for one in json.loads(taken.out)["findings"] if one.get("metric") == "top1_accuracy"]
    assert accuracy[0]["value"] == 1
    assert accuracy[0]["convention"]["class map"] == "crimson is red, greens is green"
