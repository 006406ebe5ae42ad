"""Each screen by keys alone: what the database holds is what was pressed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from review.browsing import Reviewing, photo_project
from review.reviewed_projects import judge
from shiftproof.curation.project import Item, ReviewClass, load_project
from shiftproof.review.database import Database
from shiftproof.review.summary import summarize

pytestmark = pytest.mark.real

SitDown = Callable[..., Reviewing]
BIRD = ReviewClass("bird", "bird", "a creature with feathers", ("animal",), ("0.png", "1.png", "2.png"))


def test_clarity_is_answered_by_one_key_each(sit_down: SitDown) -> None:
    ada = sit_down("clarity", count=4)
    ada.begin()
    seen = ada.press("y", "n", "u", "y")
    assert sorted(seen) == [f"item {number}" for number in range(4)]
    choices = ("keep", "reject", "unsure", "keep")
    assert ada.answers() == {item: {"choice": choice} for item, choice in zip(seen, choices, strict=True)}
    assert all(vote.milliseconds is not None and vote.milliseconds > 0 for vote in ada.votes())


def test_a_rejection_may_have_a_reason_and_need_not(sit_down: SitDown) -> None:
    ada = sit_down("clarity", count=4)
    ada.begin()
    seen = ada.press("n")
    ada.press("2")  # asked for beside the next item
    assert ada.said() == "No: Not this class."
    seen += ada.press("n")
    ada.press("Enter")
    assert not ada.is_seen("#reasons")
    ada.press("3")  # too late for a reason, and no answer to what is there
    seen += ada.press("n", "y")
    reject = {"choice": "reject"}
    wanted = [{**reject, "reasons": ["not the class"]}, reject, reject, {"choice": "keep"}]
    assert ada.answers() == dict(zip(seen, wanted, strict=True))


def test_a_pair_is_flipped_in_place_and_answered(sit_down: SitDown) -> None:
    asked = tuple(Item(f"pair {n}", (f"{n}.png", f"{n + 1}.png"), "bird", facts={"offset": 7151}) for n in range(3))
    ada = sit_down("pair", items=asked)
    ada.begin()
    first, second = (ada.page.locator("figure").nth(place) for place in (0, 1))
    ada.item()
    boxes = [figure.bounding_box() for figure in (first, second)]
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    ada.press("Space")
    assert (first.is_visible(), second.is_visible()) == (False, True)
    assert ada.said() == "Second picture."
    ada.press("Space")
    assert (first.is_visible(), second.is_visible()) == (True, False)
    assert first.bounding_box() == second.bounding_box()
    ada.press("Escape")
    assert (first.is_visible(), second.is_visible()) == (True, True)
    assert "7151" not in ada.page.content()
    seen = ada.press("s", "m", "b")
    choices = ("similar", "motion", "background")
    assert ada.answers() == {item: {"choice": choice} for item, choice in zip(seen, choices, strict=True)}


def test_a_bad_anchor_ends_the_questions_about_it(sit_down: SitDown) -> None:
    asked = tuple(Item(f"pair {n}", (f"{n}.png", f"{n + 1}.png"), "bird", group=f"anchor {n % 2}") for n in range(5))
    ada = sit_down("pair", items=asked)
    ada.begin()
    [closed] = ada.press("a")
    group = {item.id: item.group for item in asked}
    left = [item.id for item in asked if item.group != group[closed]]
    seen = ada.press(*"s" * len(left))
    assert sorted(seen) == sorted(left)
    assert "All done" in ada.go_on()
    assert ada.answers() == {closed: {"choice": "bad anchor"}, **{item: {"choice": "similar"} for item in seen}}


def test_failure_modes_are_gathered_and_sent_together(sit_down: SitDown) -> None:
    ada = sit_down("failure-modes", count=3)
    ada.begin()
    first = ada.item()
    ada.press("Enter")
    assert ada.said() == "Choose at least one, or none of these."
    ada.press("1", "6", "3", "6", "Enter")
    second = ada.item()
    assert second != first
    ada.press("2", "0", "Enter")
    third = ada.item()
    ada.press("0", "4", "Enter")
    assert ada.answers() == {
        first: {"choice": "background", "tags": ["background", "shape"]},
        second: {"choice": "none", "tags": ["none"]},
        third: {"choice": "pose", "tags": ["pose"]},
    }


def test_modes_taken_back_are_still_chosen(sit_down: SitDown) -> None:
    ada = sit_down("failure-modes", count=2)
    ada.begin()
    first = ada.item()
    ada.press("1", "4", "Enter", "z")
    assert ada.item() == first
    assert ada.page.locator("[aria-pressed=true]").all_inner_texts() == ["1\nBackground", "4\nUnusual pose"]
    ada.press("4", "Enter")
    assert ada.answers() == {first: {"choice": "background", "tags": ["background"]}}


def test_consent_and_training_come_before_the_first_item_that_counts(sit_down: SitDown) -> None:
    training = [Item(f"training {n}", (f"{n}.png",), "bird", role="training", answer={"choice": "keep"}) for n in range(2)]
    asked = Item("asked", ("2.png",), "bird")
    ada = sit_down("clarity", items=(*training, asked), consent="We measure how long\n\nyou take.")
    ada.begin()
    assert ada.page.url == f"{ada.server.address}/"  # back to where consent is given
    ada.page.keyboard.press("Tab")
    ada.page.keyboard.press("Enter")
    assert ada.item() == "training 0"
    told = ada.page.locator("#count")
    assert told.inner_text() == "Training: 0 of 2"
    assert ada.press("y") == ["training 0"]
    ada.page.locator("#interlude").wait_for()
    assert told.inner_text() == "Training: 1 of 2"
    assert "Right\n\nYes, keep it." in ada.go_on()
    assert ada.press("n") == ["training 1"]
    ada.page.keyboard.press("y")  # what is explained cannot be answered
    ada.page.locator("#interlude").wait_for()
    assert told.inner_text() == "Training: 2 of 2"
    assert "You said: No. Right is: Yes, keep it." in ada.go_on()
    assert "The training is over" in ada.go_on()
    assert told.inner_text() == "0 of 1"
    assert ada.press("u") == ["asked"]
    ada.saved()
    assert [(vote.item, vote.round, vote.choice) for vote in ada.votes()] == [
        ("training 0", "training", "keep"),
        ("training 1", "training", "reject"),
        ("asked", "first", "unsure"),
    ]


def test_a_reload_goes_on_with_the_training_and_an_undo_goes_back(sit_down: SitDown) -> None:
    training = [Item(f"training {n}", (f"{n}.png",), "bird", role="training", answer={"choice": "keep"}) for n in range(3)]
    ada = sit_down("clarity", items=(*training, Item("asked", ("3.png",), "bird")))
    ada.begin()
    ada.press("y")
    ada.go_on()
    ada.press("y")
    ada.saved()
    ada.page.reload()
    assert ada.item() == "training 2"
    assert ada.page.locator("#count").inner_text() == "Training: 2 of 3"
    ada.press("z")
    assert ada.item() == "training 1"
    ada.page.get_by_text("Training: 1 of 3").wait_for()


def test_a_class_tells_how_many_of_its_target_are_kept(take_seats: Callable[..., list[Reviewing]], tmp_path: Path) -> None:
    project = photo_project(tmp_path / "project", target=1452, reviewers_each=1)
    database = Database(project.folder / "review.sqlite")
    judge(database, {"item 0": ["keep"], "item 1": ["keep"], "item 2": ["reject"]})
    database.close()
    (ben,) = take_seats(project, "Ben")
    ben.begin()
    ben.item()
    assert ben.page.locator(".target").inner_text() == "bird: 2 of 1,452 kept so far"


def test_without_a_target_nothing_is_counted(sit_down: SitDown) -> None:
    ada = sit_down("clarity", count=2)
    ada.begin()
    ada.item()
    assert not ada.is_seen(".target")


def test_keys_are_those_of_the_project(sit_down: SitDown) -> None:
    ada = sit_down("clarity", count=2, keys={"keep": "k"})
    ada.page.get_by_text("Begin").wait_for()
    assert ada.page.locator("dt").all_inner_texts()[:3] == ["K", "N", "U"]
    ada.begin()
    first = ada.item()
    assert ada.page.locator("#answers kbd").all_inner_texts() == ["K", "N", "U"]
    ada.press("y")
    assert ada.press("Shift+K") == [first]  # capitals are the same key
    assert ada.answers() == {first: {"choice": "keep"}}


def test_keys_that_the_owner_typed_answer_and_the_usual_ones_no_more(sit_down: SitDown) -> None:
    ada = sit_down("clarity", count=4, options=["--keys", "keep=j,reject=F,unsure=space"])
    assert load_project(ada.project.folder).keys == {"keep": "j", "reject": "f", "unsure": " "}
    assert ada.page.locator("dt").all_inner_texts()[:3] == ["J", "F", "Space"]
    ada.begin()
    first = ada.item()
    assert ada.press("y", "n", "u") == [first] * 3
    assert ada.item() == first
    assert ada.press("j", "f", "Space")[0] == first
    assert [answer["choice"] for answer in ada.answers().values()] == ["keep", "reject", "unsure"]
    assert ada.page.locator("#answers kbd").all_inner_texts() == ["J", "F", "Space"]
    ada.press("?")
    assert ada.page.locator("#help dt").all_inner_texts()[:3] == ["J", "F", "Space"]


def test_what_models_said_is_hidden_until_asked_for(sit_down: SitDown) -> None:
    asked = tuple(Item(f"item {n}", (f"{n}.png",), "bird", shown={"lite0": "cock 83 %"}) for n in range(2))
    ada = sit_down("clarity", items=asked, classes=(BIRD,))
    ada.begin()
    said = ada.page.get_by_text("cock 83 %")
    ada.item()
    assert not said.is_visible()
    ada.press("p")
    assert said.is_visible()
    ada.press("y")
    ada.item()
    assert not said.is_visible()  # the next answer is one's own again
    gloss = ada.page.get_by_text("a creature with feathers")
    assert gloss.is_visible()
    assert ada.page.locator(".examples img").count() == 3
    ada.press("i")
    assert not gloss.is_visible()


def test_the_two_questions_about_a_pair_are_answered_by_one_key_each(sit_down: SitDown) -> None:
    asked = tuple(Item(f"pair {n}", (f"{n % 6}.png", f"{(n + 1) % 6}.png"), "bird", group=f"anchor {n}") for n in range(8))
    ada = sit_down("pair", items=asked, classes=(BIRD,))
    assert "a distinctive feature of the object, such as the face of a dog" in ada.page.locator("main").inner_text()
    ada.begin()
    ada.item()
    question = ada.page.locator("#question").inner_text()
    assert question.split("\n") == [
        "Is the pair labelled correctly: do both frames show bird?",
        "Are the two frames similar?",
    ]
    titles = ada.page.locator("#answers button span").all_inner_texts()
    assert titles[:4] == [
        "Labelled correctly, and similar",
        "Dissimilar: significant motion",
        "Dissimilar: significant background change",
        "Dissimilar: significant blur change",
    ]
    ada.page.keyboard.press("?")
    assert "significant change of blur" in ada.page.locator("#help li").nth(1).inner_text()
    ada.page.keyboard.press("Escape")
    keys = {"s": "similar", "m": "motion", "b": "background", "r": "blur", "o": "other", "l": "mislabelled", "u": "unsure"}
    seen = ada.press(*keys, "a")
    assert "All done" in ada.go_on()
    choices = [*keys.values(), "bad anchor"]
    assert ada.answers() == {item: {"choice": choice} for item, choice in zip(seen, choices, strict=True)}
    assert not ada.is_seen("#reasons"), "the key was the reason too"


def test_a_flagged_pair_comes_to_everybody_and_others_to_nobody_else(
    take_seats: Callable[..., list[Reviewing]], tmp_path: Path
) -> None:
    project = photo_project(tmp_path / "project", "pair", verify="flagged", reviewers_each=3)
    ada, ben, cem = take_seats(project, "Ada", "Ben", "Cem")
    flagged = ["item 1", "item 4"]
    assert len(ada.answer_all(lambda item: "m" if item in flagged else "s")) == 6
    assert sorted(ben.answer_all(lambda _item: "s")) == flagged
    assert sorted(cem.answer_all(lambda item: "s" if item == "item 1" else "r")) == flagged
    database = Database(project.folder / "review.sqlite")
    found = summarize(project, database)
    database.close()
    assert [item for item, verdict in found.verdicts.items() if verdict.outcome == "rejected"] == ["item 4"]
    assert str(found.verification) == "10 votes instead of 18"
    ada.page.goto(ada.server.links["owner"])
    ada.page.goto(f"{ada.server.address}/owner")
    assert "10 votes instead of 18 by 3 reviewers" in ada.page.locator("#progress").inner_text()


def test_instructions_of_the_maker_are_shown_as_written(sit_down: SitDown, tmp_path: Path) -> None:
    told = tmp_path / "told.md"
    told.write_text("# Birds\n\nOnly <b>birds</b>,\nno planes.\n\n- big\n- small\n")
    ada = sit_down("pair", options=("--instructions", str(told)))
    sheet = ada.page.locator("main")
    assert sheet.locator("h2").first.inner_text() == "Birds"
    assert sheet.locator("li").all_inner_texts() == ["big", "small"]
    assert "Only <b>birds</b>, no planes." in sheet.inner_text()
    assert load_project(ada.project.folder).instructions == told.read_text().strip()
