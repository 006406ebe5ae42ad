"""One person reads each pair, everybody those that were flagged, and a strict majority decides."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, inspect, text

from command import Shiftproof
from film import draw_film
from review.drawn_votes import drawn_review
from review.served import drawn_project
from review.vote_by_vote import verdicts_vote_by_vote
from shiftproof.curation.project import Item, Project, load_project
from shiftproof.errors import BadInput
from shiftproof.review.adjudication import disputed_items
from shiftproof.review.dashboard import overview
from shiftproof.review.data_card import class_contents, data_card
from shiftproof.review.database import Database, Reviewer
from shiftproof.review.service import ReviewService
from shiftproof.review.submission import accept_votes
from shiftproof.review.summary import summarize, verification_of
from shiftproof.review.verdicts import verdicts
from shiftproof.review.votes import SubmittedVote, Vote

NUMBERS = itertools.count(1)

PUBLISHED = {"imagenet-vid-robust": (26_029, 21_070, 80.9), "ytbb-robust": (45_631, 36_827, 80.7)}
"""Frame pairs that were reviewed and accepted, and the share in percent as printed (Shankar et al., 2021, Table 1)."""

FOUR = ("Ada", "Ben", "Cem", "Dov")


def pairs(count: int, *, groups: int = 0, each: int = 3) -> Project:
    items = [
        Item(f"pair {number}", ("1.jpg", "2.jpg"), "bird", group=f"anchor {number % groups}" if groups else None)
        for number in range(count)
    ]
    return Project(Path("nowhere"), "test", "pair", tuple(items), reviewers_each=each, verify="flagged")


def person(service: ReviewService, name: str) -> Reviewer:
    found = service.database.reviewer_with(service.database.invite(name))
    assert found is not None
    return found


def waiting(service: ReviewService, reviewer: Reviewer, count: int = 1000) -> list[str]:
    return [service.items[one["id"]].id for one in service.queue(reviewer, "first", count)]


def say(service: ReviewService, reviewer: Reviewer, item: str, choice: str | None, supersedes: str | None = None) -> str:
    vote = {
        "id": f"vote {next(NUMBERS):08}",
        "item": service.opaque_name(f"item {item}"),
        "round": "first",
        "milliseconds": 900,
    }
    answer = None if choice is None else {"choice": choice}
    taken = accept_votes(service, reviewer, [{**vote, "answer": answer, "supersedes": supersedes}])
    assert not taken.refused, taken.refused
    return str(vote["id"])


def work(service: ReviewService, reviewer: Reviewer, choice: Callable[[str], str]) -> list[str]:
    """Answers until nothing is left; the items in the order they came."""
    seen: list[str] = []
    while some := waiting(service, reviewer, 5):
        for item in some:
            # an answer may speak for others of its group
            if service.project.by_id[item].group is None or item in waiting(service, reviewer):
                say(service, reviewer, item, choice(item))
                seen.append(item)
    return seen


def all_similar(_item: str) -> str:
    return "similar"


def outcomes(service: ReviewService) -> dict[str, str]:
    return {item: verdict.outcome for item, verdict in summarize(service.project, service.database).verdicts.items()}


def test_each_pair_is_read_once_and_what_was_flagged_by_everybody(database: Database) -> None:
    service = ReviewService(pairs(120), database)
    people = [person(service, name) for name in FOUR]
    flags = {f"pair {number}": choice for number, choice in enumerate(["motion", "mislabelled", "unsure", "other"])}
    read: dict[str, Reviewer] = {}
    for turn in itertools.count():  # people take turns, fifty pairs at a time
        reader = people[turn % 4]
        new = [item for item in waiting(service, reader, 50) if item not in read]
        if not new:
            break
        for item in new:
            read[item] = reader
            say(service, reader, item, flags.get(item, "similar"))
    assert len(read) == 120
    assert {len(some) for item, some in database.assigned().items() if item not in flags} == {1}
    judged = {reader.name: set(work(service, reader, all_similar)) for reader in people}
    for reader in people:
        assert judged[reader.name] == {item for item in flags if read[item].id != reader.id}
    assert Counter(map(len, database.assigned().values())) == {1: 116, 4: 4}
    assert set(outcomes(service).values()) == {"kept"}, "three of four found each similar"
    told = summarize(service.project, database).verification
    assert told is not None
    assert (told.annotators, told.read, told.flagged, told.votes, told.instead) == (4, 120, 4, 116 + 4 * 4, 4 * 120)
    assert told.votes == database.count()


@pytest.mark.parametrize(("similar", "outcome"), [(0, "rejected"), (1, "rejected"), (2, "rejected"), (3, "kept")])
def test_a_strict_majority_of_all_decides_and_a_tie_rejects(database: Database, similar: int, outcome: str) -> None:
    service = ReviewService(pairs(4), database)
    ada, *others = (person(service, name) for name in FOUR)
    first = waiting(service, ada)[0]
    say(service, ada, first, "blur")
    work(service, ada, all_similar)
    assert outcomes(service)[first] == "open", "one flag decides nothing"
    for other in others:
        waiting(service, other)
    for place, other in enumerate(others):
        say(service, other, first, "similar" if place < similar else "blur")
    assert outcomes(service)[first] == outcome


def test_whoever_begins_later_judges_what_is_not_settled_and_changes_nothing_else(database: Database) -> None:
    service = ReviewService(pairs(8), database)
    ada, ben, cem = (person(service, name) for name in FOUR[:3])
    one, other = waiting(service, ada)[:2]
    for item in waiting(service, ada):
        say(service, ada, item, "motion" if item in (one, other) else "similar")
    for late in (ben, cem):
        assert sorted(waiting(service, late)) == sorted([one, other])
        say(service, late, one, "similar")
    assert outcomes(service)[one] == "kept"
    dov = person(service, "Dov")
    assert waiting(service, dov) == [other]
    assert outcomes(service)[one] == "kept"
    for late in (ben, cem, dov):
        assert outcomes(service)[other] == "open" or late is dov  # two of four are no majority
        say(service, late, other, "similar")
    assert outcomes(service)[other] == "kept"
    assert {item: len(some) for item, some in database.assigned([one, other]).items()} == {one: 3, other: 4}


def test_two_people_do_not_settle_what_three_should(database: Database) -> None:
    service = ReviewService(pairs(3), database)
    ada, ben = (person(service, name) for name in FOUR[:2])
    first = waiting(service, ada)[0]
    work(service, ada, lambda item: "motion" if item == first else "similar")
    assert work(service, ben, all_similar) == [first]
    assert outcomes(service)[first] == "open"
    assert work(service, person(service, "Cem"), all_similar) == [first]
    assert outcomes(service)[first] == "kept"


def test_nobody_waits_for_who_left_until_they_are_back(database: Database) -> None:
    service = ReviewService(pairs(150), database)
    ada, ben, cem, dov = (person(service, name) for name in FOUR)
    say(service, dov, waiting(service, dov, 5)[0], "similar")
    assert database.release(dov.id) == 49
    flagged: list[str] = []

    def one_in_thirty(item: str) -> str:
        flagged.extend([item] if len(flagged) < 5 and item not in flagged else [])
        return "background" if item in flagged else "similar"

    work(service, ada, one_in_thirty)
    for other in (ben, cem):
        assert sorted(work(service, other, all_similar)) == sorted(flagged)
    assert {len(database.assigned()[item]) for item in flagged} == {3}
    assert {outcomes(service)[item] for item in flagged} == {"kept"}
    assert waiting(service, dov) == []
    eve = person(service, "Eve")
    assert waiting(service, eve) == []


def test_a_flag_that_is_taken_back_needs_nobody_else(database: Database) -> None:
    service = ReviewService(pairs(6), database)
    ada, ben, cem = (person(service, name) for name in FOUR[:3])
    early, late, *others = waiting(service, ada)
    votes = {item: say(service, ada, item, "motion") for item in (early, late)}
    for item in others:
        say(service, ada, item, "similar")
    say(service, ada, early, "similar", supersedes=votes[early])
    assert waiting(service, ben) == [late]
    say(service, ada, late, None, supersedes=votes[late])
    assert outcomes(service)[late] == "open"
    assert waiting(service, ada) == [late]
    say(service, ada, late, "similar")
    assert outcomes(service) == dict.fromkeys([early, late, *others], "kept")
    assert waiting(service, cem) == [], "what nobody flags any more is given to nobody else"
    say(service, ben, late, "blur")
    assert outcomes(service)[late] == "open", "flagged once more, by whom it was given to before"
    assert waiting(service, cem) == [late]
    say(service, cem, late, "similar")
    assert outcomes(service)[late] == "kept"


def test_an_anchor_is_bad_when_most_of_all_say_so_and_not_one(database: Database) -> None:
    service = ReviewService(pairs(12, groups=3), database)
    ada, ben, cem = (person(service, name) for name in FOUR[:3])
    say(service, ada, waiting(service, ada)[0], "bad anchor")
    (bad,) = {service.project.by_id[vote.item].group for vote in database.votes()}
    group = {item.id for item in service.project.by_group[str(bad)]}
    work(service, ada, all_similar)
    found = summarize(service.project, database).verdicts
    assert {found[item].outcome for item in group} == {"open"}
    assert {item for item, verdict in found.items() if verdict.against} == group, "one vote speaks for all four of them"
    assert not any(found[item].closed_by_group for item in group)
    assert set(waiting(service, ben)) == group
    say(service, ben, min(group), "bad anchor")
    assert waiting(service, ben) == []
    found = summarize(service.project, database).verdicts
    assert all(found[item].closed_by_group for item in group), "two of three are most of them"
    assert {item for item, verdict in found.items() if verdict.outcome == "rejected"} == group
    assert waiting(ReviewService(service.project, database), cem) == []


def test_people_look_together_once_everybody_has_judged_what_was_flagged(database: Database) -> None:
    service = ReviewService(pairs(3), database)
    ada, ben, cem = (person(service, name) for name in FOUR[:3])
    first = waiting(service, ada)[0]
    work(service, ada, lambda item: "motion" if item == first else "similar")
    assert disputed_items(service, ada).all == 0
    for other in (ben, cem):
        waiting(service, other)
    say(service, ben, first, "similar")
    assert disputed_items(service, ada).all == 0
    say(service, cem, first, "similar")
    (shown,) = disputed_items(service, ada).items
    assert service.items[shown["id"]].id == first
    assert waiting(service, person(service, "Dov")) == [], "who comes now could not judge it blindly"


def test_several_servers_at_once_give_no_pair_twice_and_every_flagged_one_to_all(database_url: str) -> None:
    project = pairs(90)
    flags = {f"pair {number}" for number in range(0, 90, 9)}
    opened = [Database(database_url) for _ in range(4)]
    services = [ReviewService(project, database) for database in opened]
    people = [person(services[0], name) for name in FOUR]
    together, done = threading.Barrier(4), threading.Event()

    def judge(service: ReviewService, reviewer: Reviewer) -> None:
        waiting(service, reviewer, 3)
        together.wait()  # all have come before anybody answers
        until = time.monotonic() + 60
        while not done.is_set() and time.monotonic() < until:
            for item in waiting(service, reviewer, 3):
                is_first = len(opened[0].assigned([item])[item]) == 1
                say(service, reviewer, item, "other" if item in flags and is_first else "similar")
            votes = Counter(vote.item for vote in service.database.votes())
            if all(votes[item] >= (4 if item in flags else 1) for item in project.by_id):
                done.set()

    threads = [threading.Thread(target=judge, args=pair) for pair in zip(services, people, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    votes = Counter(vote.item for vote in opened[0].votes())
    assert votes == {item: 4 if item in flags else 1 for item in project.by_id}
    assert set(outcomes(services[0]).values()) == {"kept"}
    for database in opened:
        database.close()


def test_the_published_reviews_would_cost_so_many_votes() -> None:
    costs = []
    for reviewed, accepted, share in PUBLISHED.values():
        rejected = reviewed - accepted
        project = pairs(reviewed, each=4)
        ids = [item.id for item in project.items]
        # nobody counted the flags: whatever was rejected was flagged, so at least these were
        said = [Vote(item, place, 1, item, "first", {"choice": "similar"}) for place, item in enumerate(ids[rejected:])]
        said += [
            Vote(f"{item} {one}", reviewed + 4 * place + one, one, item, "first", {"choice": choice})
            for place, item in enumerate(ids[:rejected])
            for one, choice in enumerate(["motion", "similar", "blur", "similar"], 1)  # a tie rejects
        ]
        given: dict[str, Sequence[int]] = {item: [1, 2, 3, 4] if place < rejected else [1] for place, item in enumerate(ids)}
        found = verdicts(project, said, given)
        assert Counter(one.outcome for one in found.values()) == {"kept": accepted, "rejected": rejected}
        assert round(100 * accepted / reviewed, 1) == share
        told = verification_of(project, found, given)
        assert (told.flagged, told.votes) == (rejected, len(said))
        costs.append(told)
    assert sum(one.read for one in costs) == 71_660
    assert sum(one.flagged for one in costs) == 13_763
    assert sum(one.votes for one in costs) == 71_660 + 3 * 13_763 == 112_949
    assert sum(one.instead for one in costs) == 4 * 71_660 == 286_640
    assert str(costs[0]) == "40,906 votes instead of 104,116"


@pytest.mark.parametrize("seed", range(4))
def test_verdicts_are_those_that_counting_one_by_one_gives(database_url: str, seed: int) -> None:
    drawn = drawn_review(database_url, "pair", random.Random(seed))
    project = Project(drawn.folder, "test", "pair", drawn.items, drawn.classes, reviewers_each=3, verify="flagged")
    database = Database(database_url)
    found = summarize(project, database).as_json()["verdicts"]
    assert found == verdicts_vote_by_vote(project, database.votes(), database.assigned())
    assert len({one["outcome"] for one in found}) == 3
    database.close()


def test_what_it_saves_is_told_to_the_owner_and_on_the_card(database: Database, tmp_path: Path) -> None:
    project = drawn_project(tmp_path / "p", 10, verify="flagged", reviewers_each=3)
    service = ReviewService(project, database)
    people = [person(service, name) for name in FOUR[:3]]
    first = waiting(service, people[0])[0]
    work(service, people[0], lambda item: "reject" if item == first else "keep")
    for other in people[1:]:
        work(service, other, lambda _item: "keep")
    seen = overview(project, database)
    assert str(seen.summary.verification) == "12 votes instead of 30"
    assert (seen.pace.answers, seen.pace.wanted) == (12, 12)
    card = data_card(project, seen.summary, class_contents((), "test"))["review"]
    assert card["verification"] == {"annotators": 3, "read": 10, "flagged": 1, "votes": 12, "instead": 30}
    assert "flagged items are reviewed by everybody, at least 3 reviewers" in card["rule"]
    assert card["answers"] == {"Yes, keep it": 11, "No": 1}
    assert seen.summary.agreement.items == 1


@pytest.mark.parametrize("each", [1, 2])
def test_fewer_than_three_cannot_verify(each: int) -> None:
    with pytest.raises(BadInput, match=f"at least 3 reviewers per flagged item are needed, got {each}"):
        pairs(2, each=each)


@pytest.mark.parametrize("screen", ["extreme-points", "anchor-labels", "failure-modes", "human-test"])
def test_questions_without_keeping_or_rejecting_have_no_flags(screen: str) -> None:
    with pytest.raises(BadInput, match="flags are verified where reviewers keep or reject"):
        Project(Path("nowhere"), "test", screen, (), reviewers_each=3, verify="flagged")


def test_a_project_that_says_it_is_kept_and_an_older_one_goes_on(tmp_path: Path) -> None:
    project = drawn_project(tmp_path, verify="flagged", reviewers_each=4)
    assert load_project(tmp_path) == project
    told = json.loads((tmp_path / "project.json").read_text())
    del told["verify"]
    (tmp_path / "project.json").write_text(json.dumps({**told, "instructions": ""}))
    older = load_project(tmp_path)
    assert (older.verify, older.readers_each) == (None, 4)
    assert older.instructions == older.screen.instructions != ""
    (tmp_path / "project.json").write_text(json.dumps({**told, "verify": "everything"}))
    with pytest.raises(BadInput, match="'everything' cannot be the verify of Project"):
        load_project(tmp_path)
    with pytest.raises(BadInput, match="what is verified should be flagged, got 'everything'"):
        dataclasses.replace(older, verify="everything")  # type: ignore[arg-type]


def test_tables_without_a_place_for_who_takes_part_get_one(database_url: str) -> None:
    Database(database_url).close()
    engine = create_engine(database_url)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE reviewers DROP COLUMN present"))
        connection.execute(text("UPDATE facts SET value = '6' WHERE name = 'version'"))
    database = Database(database_url)
    token = database.invite("Ada")
    ada = database.reviewer_with(token)
    assert ada is not None
    assert database.release(ada.id) == 0
    assert "present" in {column["name"] for column in inspect(engine).get_columns("reviewers")}
    database.close()
    engine.dispose()


ASKED = ("curate", "frames", "frames:film", "pairs", "--k", "2", "--anchors", "4")


@pytest.fixture
def film(shiftproof: Shiftproof) -> Shiftproof:
    draw_film(Path("film"), {"cat/a": 9, "dog/b": 9})
    return shiftproof


def judge_pairs(folder: str, said: Mapping[str, Sequence[str]]) -> None:
    """First votes of four people, as many on each pair as there are answers to it."""
    database = Database(Path(folder) / "review.sqlite")
    for place, name in enumerate(FOUR):
        database.invite(name)
        own = {item: answers[place] for item, answers in said.items() if len(answers) > place}
        database.assign(place + 1, lambda _, items=list(own): items)  # type: ignore[misc]
        database.add(
            place + 1, [SubmittedVote(f"{item} {name}", item, "first", {"choice": one}) for item, one in own.items()]
        )
    database.close()


def test_the_commands_take_it_tell_it_and_export_the_reasons(film: Shiftproof) -> None:
    assert film(*ASKED, "--verify", "flagged", "--reviewers-per-item", "4").code == 0
    project = load_project("pairs")
    assert (project.verify, project.reviewers_each) == ("flagged", 4)
    cat, dog = (
        [item.id for item in project.items if item.label == "cat"],
        [item.id for item in project.items if item.label == "dog"],
    )
    said: dict[str, Sequence[str]] = {item: ["similar"] for item in [*cat, *dog]}
    said[cat[0]] = ["motion", "similar", "motion", "blur"]
    said[dog[0]] = ["mislabelled", "similar", "similar", "similar"]
    judge_pairs("pairs", said)
    told = film("verdicts", "pairs")
    assert "14 votes instead of 32 by 4 reviewers: 2 of the 8 items screened were flagged" in told.out
    assert "7 kept, 1 rejected, 0 open of 8 items" in told.out
    assert json.loads(film("verdicts", "pairs", "--json").out)["verification"]["votes"] == 14
    assert film("verdicts", "pairs", "-o", "made.html").code == 0
    page = Path("made.html").read_text()
    assert "Votes, flagged items by all" in page
    assert "2 of 8 items" in page
    assert film("curate", "export", "pairs", "judged", "--layout", "manifest", "--rejected-too").code == 0
    rows = {row["id"]: row for row in map(json.loads, Path("judged/manifest.jsonl").read_text().splitlines())}
    facts: dict[str, Any] = {item: {name: row[name] for name in ("reviewed", "votes")} for item, row in rows.items()}
    assert facts[cat[0]] == {"reviewed": "motion", "votes": "blur 1|motion 2|similar 1"}
    assert facts[dog[0]] == {"reviewed": "similar", "votes": "mislabelled 1|similar 3"}
    card = Path("judged/data-card.md").read_text()
    assert "14 votes instead of 32 by 4 reviewers" in card
    assert "| Dissimilar: significant motion | 2 |" in card
    assert "| motion | 1 |" in card
    assert "> - A pair is dissimilar too if a distinctive feature of the object" in card


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--verify", "flagged", "--reviewers-per-item", "2"), "at least 3 reviewers per flagged item are needed, got 2"),
        (("--verify", "flagged", "--label-anchors"), "--verify is for pairs"),
        (("--instructions", "nowhere.md"), "nowhere.md cannot be read as instructions: No such file or directory"),
        (("--instructions", "film"), "film cannot be read as instructions: Is a directory"),
        (("--instructions", "latin.txt"), "latin.txt cannot be read as instructions: it is not UTF-8"),
        (("--instructions", "empty.txt"), "empty.txt is empty; it should hold the instructions for reviewers"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(film: Shiftproof, options: tuple[str, ...], said: str) -> None:
    Path("latin.txt").write_bytes(b"caf\xe9")
    Path("empty.txt").write_text(" \n")
    told = film(*ASKED, *options)
    assert told.code == 1
    assert said in told.err
    assert len(told.err.splitlines()) == 1
    assert not Path("pairs").exists()


def test_with_it_three_people_are_asked_unless_told_otherwise(film: Shiftproof) -> None:
    film(*ASKED, "--verify", "flagged")
    assert load_project("pairs").reviewers_each == 3


def test_a_person_may_come_back_after_leaving(database: Database) -> None:
    service = ReviewService(pairs(60), database)
    ada, ben, cem, dov = (person(service, name) for name in FOUR)
    first = waiting(service, dov, 5)[0]
    say(service, dov, first, "similar")
    database.release(dov.id)
    flagged = waiting(service, ada, 5)[0]
    work(service, ada, lambda item: "motion" if item == flagged else "similar")
    waiting(service, ben)
    assert len(database.assigned([flagged])[flagged]) == 2
    assert waiting(service, dov) == [flagged]
    assert len(database.assigned([flagged])[flagged]) == 3
    assert waiting(service, cem) == [flagged]
