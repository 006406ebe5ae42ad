"""Review projects: a folder that says all that is asked, and the pictures it needs."""

from __future__ import annotations

import dataclasses
import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

from shiftproof.curation.funnel import Step
from shiftproof.curation.pictures import MAX_SIDE, add_picture
from shiftproof.curation.project import Item, Making, Project, ReviewClass, _parsed, load_project, save_project
from shiftproof.curation.reviewers import part_for, too_few_for, with_own_classes
from shiftproof.curation.screens import RESERVED, SCREENS, key_name, keys_from, screen_named
from shiftproof.datasets.image_list import StoredImage
from shiftproof.errors import BadInput, UnknownName, UnreadableImage
from shiftproof.types import Decoder, Image

ODD = os.fsdecode(b"caf\xe9")
"""The name of a folder that is no text."""


@dataclass(frozen=True)
class Bytes(StoredImage):
    """A file in memory, decoded as it is."""

    data: bytes

    def stamp(self) -> None:
        return None

    def read(self) -> bytes:
        return self.data

    def decode(self, data: bytes, *, decoder: Decoder = "pillow") -> Image:
        with Pillow.open(io.BytesIO(data)) as opened:
            return np.asarray(opened.convert("RGB"))


def file_of(size: tuple[int, int], form: str, mode: str = "RGB") -> Bytes:
    held = io.BytesIO()
    pixels = np.random.default_rng(size[0]).integers(0, 255, (size[1], size[0], 3), np.uint8)
    Pillow.fromarray(pixels).convert(mode).save(held, form)
    return Bytes(held.getvalue())


def moving_picture() -> Bytes:
    held = io.BytesIO()
    first, *others = (Pillow.fromarray(np.full((30, 40, 3), light, np.uint8)) for light in (0, 90, 180))
    first.save(held, "WEBP", save_all=True, append_images=others)
    return Bytes(held.getvalue())


def example(folder: Path) -> Project:
    return Project(
        folder,
        "Clear cockatoos",
        "clarity",
        (
            Item("a", ("1.jpg",), label="n01819313", shown={"lite:0": "parrot 40 %"}, facts={"offset": -3}),
            Item("b", ("2.jpg",), role="gold", answer={"choice": "keep"}),
        ),
        (ReviewClass("n01819313", "cockatoo", "a white parrot", ("bird", "parrot"), ("3.jpg",)),),
        keys={"keep": "k"},
        making=Making("shiftproof curate ...", (Step("all", 9), Step("wrong", 2)), choices={"share": 0.15}),
    )


def test_a_project_is_read_as_it_was_written(tmp_path: Path) -> None:
    usual = example(tmp_path)
    for project in (
        usual,
        dataclasses.replace(usual, choices=usual.screen.choices, reviewer_classes={"Ada": ("n01819313",)}),
    ):
        save_project(project)
        assert load_project(tmp_path) == project


@pytest.mark.parametrize("letter", ["\u2028", "\x85", "\x0c", "é", "\r\n"])
def test_any_letter_may_stand_in_what_is_asked(tmp_path: Path, letter: str) -> None:
    odd = f"one{letter}two"
    project = Project(tmp_path, odd, "clarity", (Item(odd, ("1.jpg",), odd, shown={odd: odd}), Item("b", ("2.jpg",))))
    save_project(project)
    assert load_project(tmp_path) == project


@pytest.mark.parametrize("name", [os.fsdecode(b"caf\xe9.jpg"), "a" * 301, "a\0b"])
def test_an_id_that_no_database_takes_is_told_before_anybody_votes(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match="cannot be stored: rename it"):
        Project(tmp_path, "odd", "clarity", (Item(name, ("1.jpg",)),))


@pytest.mark.parametrize(
    "where",
    [
        {"title": ODD},
        {"classes": (ReviewClass("red", ODD),)},
        {"classes": (ReviewClass(ODD, "red"),)},
        {"items": (Item("a", ("1.jpg",), ODD),)},
        {"items": (Item("a", ("1.jpg",), beside=ODD),)},
        {"items": (Item("a", ("1.jpg",), shown={"lite:0": ODD}),)},
        {"items": (Item("a", (f"{ODD}.jpg",)),)},
        {"classes": (ReviewClass("red", "red", references=(f"{ODD}.jpg",)),)},
    ],
)
def test_a_name_that_pages_cannot_send_is_told_before_anybody_is_asked(tmp_path: Path, where: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="pages cannot show 'caf"):
        Project(tmp_path, **{"title": "odd", "screen_name": "clarity", "items": (), **where})


def test_a_folder_without_its_last_file_is_no_project(tmp_path: Path) -> None:
    save_project(example(tmp_path))
    (tmp_path / "project.json").unlink()
    with pytest.raises(BadInput, match=r"no review project: it has no project\.json"):
        load_project(tmp_path)


def with_part(path: list[str | int], value: Any) -> Callable[[dict[str, Any]], None]:
    """Puts a value somewhere into what a project's file says."""

    def put_there(told: Any) -> None:
        for step in path[:-1]:
            told = told[step]
        told[path[-1]] = value

    return put_there


WRONG: list[Any] = [5, True, 1.5, "x", [1], [[]], [{}], {"a": [1]}, 10**30]


@pytest.mark.parametrize(
    ("path", "right"),
    [
        (["title"], str),
        (["target"], int),
        (["seed"], int),
        (["reviewers_each"], int),
        (["pass_mark"], (int, float)),
        (["keys"], ()),
        (["reviewer_classes"], ()),
        (["classes"], ()),
        (["classes", 0, "references"], ()),
        (["classes", 0, "path"], ()),
        (["making"], ()),
        (["making", "steps"], ()),
        (["making", "steps", 0, "left"], int),
    ],
    ids=repr,
)
def test_a_project_whose_parts_are_of_other_types_is_told_in_a_sentence(
    tmp_path: Path, path: list[str | int], right: type | tuple[type, ...]
) -> None:
    save_project(example(tmp_path))
    good = (tmp_path / "project.json").read_text()
    for value in WRONG:
        if isinstance(value, right) and not isinstance(value, bool):
            continue
        told = json.loads(good)
        with_part(path, value)(told)
        (tmp_path / "project.json").write_text(json.dumps(told))
        with pytest.raises(BadInput, match="no review project that can be read"):
            load_project(tmp_path)


@pytest.mark.parametrize("part", ["id", "images", "label", "group", "beside", "role", "answer", "shown", "facts"])
def test_an_item_whose_parts_are_of_other_types_is_told_in_a_sentence(tmp_path: Path, part: str) -> None:
    save_project(example(tmp_path))
    first, second = (tmp_path / "items.jsonl").read_text().splitlines()
    for value in ([[1]], {"a": [1], "b": {}}, 1.5):
        if part == "answer" and isinstance(value, dict):
            continue  # what an answer holds is the screen's business
        (tmp_path / "items.jsonl").write_text(f"{json.dumps({**json.loads(first), part: value})}\n{second}\n")
        with pytest.raises(BadInput, match="no review project that can be read"):
            load_project(tmp_path)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"5",
        b'{"id": "a"}',
        b'{"images": [], "annotations": []}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"format": ' + b"9" * 5000 + b"}",
        b'{"format": 1, "seed": ' + b"9" * 5000 + b"}",
        b"\xff\xfe{}",
        b"\x00" * 100,
    ],
    ids=lambda data: repr(data[:20]),
)
@pytest.mark.parametrize("file", ["project.json", "items.jsonl"])
def test_a_damaged_or_foreign_project_is_told_in_a_sentence(tmp_path: Path, file: str, data: bytes) -> None:
    save_project(example(tmp_path))
    (tmp_path / file).write_bytes(data + b"\n" if data else b"x")
    with pytest.raises(BadInput, match="is no review project"):
        load_project(tmp_path)


@pytest.mark.parametrize("name", ["x" * 300, "x/" * 3000, "a\0b", "\ud800"], ids=lambda name: repr(name[:9]))
def test_a_folder_of_a_name_that_cannot_be_is_no_project(name: str) -> None:
    with pytest.raises(BadInput, match="is no review project"):
        load_project(name)


@pytest.mark.parametrize("file", ["project.json", "items.jsonl"])
def test_a_folder_or_a_device_in_place_of_a_file_is_no_project(tmp_path: Path, file: str) -> None:
    save_project(example(tmp_path))
    (tmp_path / file).unlink()
    (tmp_path / file).mkdir()
    with pytest.raises(BadInput, match=f"no review project: it has no {file}"):
        load_project(tmp_path)
    (tmp_path / file).rmdir()
    (tmp_path / file).symlink_to("/dev/null")  # as a pipe would be, which could be read for ever
    with pytest.raises(BadInput, match=f"no review project: it has no {file}"):
        load_project(tmp_path)


@pytest.mark.parametrize("file", ["project.json", "items.jsonl"])
def test_a_file_that_lies_elsewhere_is_neither_read_nor_written(tmp_path: Path, file: str) -> None:
    save_project(example(tmp_path / "set"))
    (tmp_path / "set" / file).rename(tmp_path / file)
    (tmp_path / "set" / file).symlink_to(tmp_path / file)
    with pytest.raises(BadInput, match=f"its {file} lies elsewhere"):
        load_project(tmp_path / "set")
    (tmp_path / "link").symlink_to(tmp_path / "set")
    (tmp_path / "set" / file).unlink()
    (tmp_path / file).rename(tmp_path / "set" / file)
    assert load_project(tmp_path / "link").title == "Clear cockatoos"  # a link to the whole folder is the owner's


def test_only_pictures_of_the_project_are_found(tmp_path: Path) -> None:
    project = example(tmp_path)
    assert project.image("3.jpg") == tmp_path / "images" / "3.jpg"
    for name in ("4.jpg", "../project.json", ""):
        with pytest.raises(BadInput, match="no picture"):
            project.image(name)


def test_items_need_ids_of_their_own_and_pictures_enough(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="share an id"):
        Project(tmp_path, "twice", "clarity", (Item("a", ("1.jpg",)), Item("a", ("2.jpg",))))
    with pytest.raises(BadInput, match="shows 2 pictures"):
        Project(tmp_path, "pairs", "pair", (Item("a", ("1.jpg",)),))


@pytest.mark.parametrize("name", SCREENS)
def test_every_answer_of_a_screen_has_a_key_of_its_own(name: str) -> None:
    screen = SCREENS[name]
    keys = [choice.key for choice in screen.choices]
    assert len(set(keys)) == len(keys)
    assert not (set(keys) - {"Enter"}) & RESERVED
    assert any(choice.keeps for choice in screen.choices)
    assert not any(choice.keeps and choice.closes_group for choice in screen.choices)
    for choice in screen.choices:
        reasons = [reason.key for reason in choice.reasons]
        assert len(set(reasons)) == len(reasons)


@pytest.mark.parametrize(
    ("name", "keys", "told"),
    [
        ("clarity", {"keep": "n"}, "reject of clarity needs a key of its own: N is that of keep"),
        ("clarity", {"keep": "1"}, "keep of clarity needs a key of its own: 1 is that of several classes"),
        ("clarity", {"keep": "z"}, "pages have Z for themselves"),
        ("clarity", {"keep": "="}, "pages have = for themselves"),
        ("pair", {"similar": " "}, "pages have Space for themselves"),
        ("extreme-points", {"box": " "}, "pages have Space for themselves"),
        ("human-test", {"answer": "a"}, "answer of human-test keeps its key, Enter: names are typed there"),
    ],
)
def test_a_key_that_is_taken_is_refused(name: str, keys: dict[str, str], told: str) -> None:
    with pytest.raises(BadInput, match=told):
        screen_named(name, keys)


@pytest.mark.parametrize("name", sorted(set(SCREENS) - {"human-test"}))
def test_the_docs_name_every_answer_and_its_key(name: str) -> None:
    answers = ", ".join(f"`{choice.name}` {key_name(choice.key)}" for choice in SCREENS[name].choices)
    assert f"| {name} | {answers} |\n" in (Path(__file__).parents[2] / "docs" / "review.md").read_text(encoding="utf-8")


def test_space_is_a_key_where_nothing_is_flipped() -> None:
    assert screen_named("clarity", {"unsure": " "}).choice("unsure").key == " "


@pytest.mark.parametrize("text", ["keep", "keep=", "=j", "keep=jk", "keep=j,", "keep=ё", "keep=j,keep=k", "keep=\x7f"])
def test_keys_that_cannot_be_read_are_told(text: str) -> None:
    with pytest.raises(BadInput, match="as keep=j,reject=f; got"):
        keys_from(text)


def test_no_keys_are_none_of_ones_own() -> None:
    assert keys_from("") == {}


def test_keys_may_change_places() -> None:
    swapped = screen_named("clarity", {"keep": "n", "reject": "y"})
    assert {choice.name: choice.key for choice in swapped.choices} == {"keep": "n", "reject": "y", "unsure": "u"}
    with pytest.raises(UnknownName, match="answer"):
        screen_named("clarity", {"maybe": "m"})


@pytest.mark.parametrize(("form", "ending"), [("JPEG", ".jpg"), ("PNG", ".png"), ("WEBP", ".webp")])
def test_what_a_browser_shows_keeps_its_bytes(tmp_path: Path, form: str, ending: str) -> None:
    source = file_of((40, 30), form)
    name = add_picture(tmp_path, source)
    assert name.endswith(ending)
    assert (tmp_path / "images" / name).read_bytes() == source.data
    assert add_picture(tmp_path, source) == name
    assert len(list((tmp_path / "images").iterdir())) == 1


@pytest.mark.parametrize(
    "source",
    [file_of((40, 30), "TIFF"), file_of((40, 30), "JPEG", "CMYK"), file_of((MAX_SIDE + 400, 20), "PNG"), moving_picture()],
)
def test_what_a_browser_may_not_show_is_saved_anew(tmp_path: Path, source: Bytes) -> None:
    name = add_picture(tmp_path, source)
    with Pillow.open(tmp_path / "images" / name) as opened:
        assert (opened.format, opened.mode) == ("JPEG", "RGB")
        assert max(opened.size) <= MAX_SIDE


def test_a_picture_that_cannot_be_read_is_not_put_there(tmp_path: Path) -> None:
    from shiftproof.datasets.image_list import FilesBelow

    (tmp_path / "broken.jpg").write_bytes(b"no picture")
    with pytest.raises(UnreadableImage):
        add_picture(tmp_path, FilesBelow(str(tmp_path))("broken.jpg"))
    assert not (tmp_path / "images").exists()


def classed_project(**more: Any) -> Project:
    items = tuple(Item(f"{key} {n}", ("1.jpg",), key) for key in ("n1", "n2", "n1|n3") for n in range(2))
    classes = (ReviewClass("n1", "tabby"), ReviewClass("n2", "otter"), ReviewClass("n3", "eel"))
    return Project(Path("nowhere"), "test", "clarity", items, classes, **more)


def test_people_are_given_classes_by_name_or_key_and_all_of_them_again() -> None:
    project = with_own_classes(classed_project(), ["Ada=tabby, n2", "Ben=eel"])
    assert project.reviewer_classes == {"Ada": ("n1", "n2"), "Ben": ("n3",)}
    assert {item.label for item in part_for(project, "Ben").items} == {"n1|n3"}
    assert part_for(project, "Cem") is project
    assert with_own_classes(project, ["Ada="]).reviewer_classes == {"Ben": ("n3",)}
    with pytest.raises(UnknownName, match="no class of test called 'whale'"):
        with_own_classes(project, ["Ada=whale"])
    with pytest.raises(BadInput, match="say whose classes they are, as Ada=tabby,otter"):
        with_own_classes(project, ["tabby"])


def test_classes_of_which_too_few_people_are_asked_are_told() -> None:
    project = with_own_classes(classed_project(reviewers_each=2), ["Ada=tabby,otter", "Ben=tabby,eel"])
    assert too_few_for(project, ["Ada", "Ben"]) == "each item needs 2 reviewers, and fewer are asked about otter, eel"
    assert too_few_for(project, ["Ada", "Ben", "Cem"]) is None


def test_own_classes_are_kept_in_the_project(tmp_path: Path) -> None:
    project = dataclasses.replace(with_own_classes(classed_project(), ["Ada=tabby"]), folder=tmp_path)
    save_project(project)
    assert load_project(tmp_path) == project


@pytest.mark.parametrize("name", ["../../secret.jpg", "/etc/passwd", "link.jpg"])
def test_pictures_of_a_project_lie_in_it(name: str, tmp_path: Path) -> None:
    (tmp_path / "project" / "images").mkdir(parents=True)
    (tmp_path / "secret.jpg").write_text("mine")
    (tmp_path / "project" / "images" / "link.jpg").symlink_to(tmp_path / "secret.jpg")
    project = Project(tmp_path / "project", "odd", "clarity", (Item("a", (name,)),))
    with pytest.raises(BadInput, match="odd has no picture"):
        project.image(name)


@pytest.mark.parametrize(
    "line", ['{"id": "a"}', ' {"id": "a"} ', '{"id": "a"} {"id": "b"}', '{"id": "a"', "x", " ", "[1, 2]"]
)
def test_a_line_of_items_is_read_as_json_is(line: str) -> None:
    def answer(parse: Callable[[str], object]) -> object:
        try:
            return parse(line)
        except json.JSONDecodeError as problem:
            return str(problem)

    assert answer(_parsed) == answer(json.loads)
