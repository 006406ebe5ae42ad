"""The database of a review: votes once and for good, tokens that only their holder has, tables of older versions."""

from __future__ import annotations

import contextlib
import itertools
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, inspect, select, update

from patience import PATIENCE
from shiftproof.curation.project import Item, Project
from shiftproof.errors import BadInput, StoreError
from shiftproof.review import schema
from shiftproof.review.assignment import assign_items
from shiftproof.review.database import Database
from shiftproof.review.schema import MIGRATIONS, assignments, facts, migrate, tables, votes
from shiftproof.review.votes import SubmittedVote, standing

KEEP, REJECT = {"choice": "keep"}, {"choice": "reject", "reasons": ["unclear"]}


def sent(vote_id: str, item: str = "a", answer: dict[str, Any] | None = KEEP, **more: Any) -> SubmittedVote:
    return SubmittedVote(vote_id, item, "first", answer, **more)


def person(database: Database, name: str = "Ada") -> int:
    found = database.reviewer_with(database.invite(name))
    assert found is not None
    return found.id


def test_a_vote_comes_back_as_it_was_given(database: Database) -> None:
    ada = person(database)
    assert database.add(ada, [sent("1", answer=REJECT, note="blurred", milliseconds=812)]) == 1
    (vote,) = database.votes()
    assert (vote.reviewer, vote.item, vote.answer, vote.note, vote.milliseconds) == (ada, "a", REJECT, "blurred", 812)
    assert (vote.number, vote.choice, vote.supersedes) == (1, "reject", None)


def test_a_vote_sent_twice_counts_once(database: Database) -> None:
    ada = person(database)
    assert [database.add(ada, [sent("1"), sent("2", "b")]) for _ in range(3)] == [2, 0, 0]
    assert database.count() == 2


def test_an_undo_is_one_more_row(database: Database) -> None:
    ada = person(database)
    database.add(ada, [sent("1"), sent("2", answer=None, supersedes="1")])
    assert database.count() == 2
    assert standing(database.votes()) == {}


def test_nobody_can_touch_the_votes_of_others(database: Database) -> None:
    ada, ben = person(database), person(database, "Ben")
    database.add(ada, [sent("1")])
    for forged in (
        sent("2", answer=None, supersedes="1"),  # taking back Ada's vote
        sent("1"),  # under the id of Ada's vote
        sent("3", "b", supersedes="1"),  # of another item
        sent("4", answer=None, supersedes="nothing"),
        sent("5", answer=None),
    ):
        with pytest.raises(BadInput):
            database.add(ben, [forged])
    assert [vote.id for vote in database.votes()] == ["1"]


def test_the_same_vote_from_many_threads_is_one_row(database: Database) -> None:
    ada = person(database)
    threads = [threading.Thread(target=database.add, args=(ada, [sent("1"), sent("2", "b")])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(vote.id for vote in database.votes()) == ["1", "2"]


def test_a_token_is_nowhere_in_the_database_and_a_new_one_ends_the_old(database: Database, tmp_path: Path) -> None:
    first = database.invite("Ada")
    second = database.invite("Ada")
    assert database.reviewer_with(first) is None
    assert database.reviewer_with(second) is not None
    assert database.reviewer_with("") is None
    assert len(database.reviewers()) == 1
    database.close()
    assert all(second.encode() not in path.read_bytes() for path in tmp_path.iterdir())


def test_what_a_person_has_done_is_remembered(database: Database) -> None:
    token = database.invite("Ada")
    ada = database.reviewer_with(token)
    assert ada is not None
    assert (ada.consented, ada.trained, ada.qualified) == (False, False, None)
    database.mark(ada.id, consented=True, trained=True, qualified=0.93)
    ada = database.reviewer_with(token)
    assert ada is not None
    assert (ada.consented, ada.trained, ada.qualified) == (True, True, 0.93)


def test_comments_and_lookups_are_added_once(database: Database) -> None:
    ada = person(database)
    for _ in range(2):
        database.add_comment(ada, "c1", "a", "is it a <b>bird</b>?")
        database.add_lookup(ada, "l1", "n01819313")
    assert [comment.text for comment in database.comments("a")] == ["is it a <b>bird</b>?"]
    assert database.lookups() == {ada: 1}


def test_the_secret_of_a_review_stays(database_url: str) -> None:
    first, second = Database(database_url), Database(database_url)
    assert first.secret() == second.secret()
    assert len(first.secret()) == 32
    first.close()
    second.close()


def project_of(items: int, gold: int = 0, each: int = 2) -> Project:
    asked = [Item(f"item {number}", ("1.jpg",)) for number in range(items)]
    known = [Item(f"gold {number}", ("1.jpg",), role="gold", answer=KEEP) for number in range(gold)]
    return Project(Path("nowhere"), "test", "clarity", (*asked, *known), reviewers_each=each)


def test_every_item_goes_to_as_many_people_as_were_asked_for(database: Database) -> None:
    project = project_of(120, each=2)
    people = [person(database, name) for name in ("Ada", "Ben", "Cem", "Dov")]
    for _ in range(6):
        for reviewer in people:
            assign_items(project, database, reviewer)
    assert set(map(len, database.assigned().values())) == {2}
    assert len(database.assigned()) == 120
    assert sum(len(database.assigned_to(reviewer)) for reviewer in people) == 240


def test_two_people_have_other_orders_and_nobody_an_item_twice(database: Database) -> None:
    project = project_of(40)
    ada, ben = person(database), person(database, "Ben")
    for reviewer in (ada, ben):
        assign_items(project, database, reviewer)
    orders = [database.assigned_to(reviewer) for reviewer in (ada, ben)]
    assert set(orders[0]) == set(orders[1])
    assert orders[0] != orders[1]
    assert len(set(orders[0])) == 40
    assert assign_items(project, database, ada) == []


def test_what_is_given_later_comes_after_what_was_given_before(database_url: str) -> None:
    database, engine, project = Database(database_url), create_engine(database_url), project_of(120)
    ada = person(database)
    given = [item for _ in range(3) for item in assign_items(project, database, ada)]
    assert database.assigned_to(ada) == given
    with engine.connect() as connection:
        places = connection.execute(select(assignments.c.position).order_by(assignments.c.position)).scalars().all()
    assert places == list(range(120))
    engine.dispose()
    database.close()


def test_who_is_given_what_does_not_follow_the_order_of_the_project(database: Database) -> None:
    project = project_of(200, each=1)
    first = {item.id for item in project.items[:50]}
    assert 0 < len(first.intersection(assign_items(project, database, person(database)))) < 50


def test_what_others_have_is_given_first_so_that_verdicts_come_soon(database: Database) -> None:
    project = project_of(200)
    ada, ben, cem = (person(database, name) for name in ("Ada", "Ben", "Cem"))
    first = assign_items(project, database, ada)
    assert set(assign_items(project, database, ben)) == set(first)
    second = assign_items(project, database, ada)
    assert set(assign_items(project, database, cem)) == set(second)


def test_items_held_against_one_class_follow_each_other(database: Database) -> None:
    pairs = [Item(f"{one} {other}", ("1.jpg",), beside=other) for one in "abcde" for other in ("owl", "hen", "jay", "emu")]
    assign_items(Project(Path("nowhere"), "test", "class-pair", tuple(pairs)), database, ada := person(database))
    besides = [item.split()[1] for item in database.assigned_to(ada)]
    assert len([name for name, _ in itertools.groupby(besides)]) == 4


def test_items_of_a_known_answer_go_to_everybody_among_the_others(database: Database) -> None:
    project = project_of(50, gold=8, each=1)
    ada, ben = person(database), person(database, "Ben")
    assign_items(project, database, ada)
    assign_items(project, database, ben)
    places = [place for place, item in enumerate(database.assigned_to(ada)) if item.startswith("gold")]
    assert len(places) == 5
    assert places != list(range(5))
    assert not any(item.startswith("item") for item in database.assigned_to(ben))


def test_what_a_person_leaves_undone_can_be_given_to_others(database: Database) -> None:
    project = project_of(10, each=1)
    ada, ben = person(database), person(database, "Ben")
    mine = assign_items(project, database, ada)
    database.add(ada, [sent("1", mine[0])])
    assert database.release(ada) == 9
    assert database.assigned_to(ada) == [mine[0]]
    assert sorted(assign_items(project, database, ben)) == sorted(mine[1:])


def test_items_handed_out_at_the_same_time_are_not_given_too_often(database_url: str) -> None:
    project = project_of(30, each=1)
    opened = [Database(database_url) for _ in range(4)]
    people = [person(opened[0], f"person {number}") for number in range(4)]
    together = threading.Barrier(4)

    def work(database: Database, reviewer: int) -> None:
        together.wait()
        assign_items(project, database, reviewer, chunk=10)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(opened, people, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(map(len, opened[0].assigned().values())) == {1: 30}
    for database in opened:
        database.close()


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
def test_tables_of_an_older_version_become_new_and_keep_their_votes(database_url: str, version: int) -> None:
    engine = create_engine(database_url)
    with engine.begin() as connection:
        for step in MIGRATIONS[:version]:
            step(connection)
        connection.execute(facts.insert().values(name="version", value=str(version)))
    old = create_engine(database_url)
    with old.begin() as connection:
        connection.execute(
            tables.tables["reviewers"].insert().values(id=5, name="Ada", role="reviewer", token_digest="d", created=0.0)
        )
        connection.execute(votes.insert().values(id="1", reviewer=5, item="a", round="first", answer=KEEP, received=0.0))
    old.dispose()
    database = Database(database_url)
    assert [vote.answer for vote in database.votes()] == [KEEP]
    assert set(inspect(engine).get_table_names()) >= set(tables.tables)
    with engine.connect() as connection:
        assert connection.execute(select(facts.c.value).where(facts.c.name == "version")).scalar() == str(len(MIGRATIONS))
    database.close()
    engine.dispose()


@pytest.mark.parametrize("version", [0, 2])
def test_servers_that_open_a_database_at_once_make_its_tables_once(database_url: str, version: int) -> None:
    engine = create_engine(database_url)
    with engine.begin() as connection:
        for step in MIGRATIONS[:version]:
            step(connection)
        if version:
            connection.execute(facts.insert().values(name="version", value=str(version)))
    together = threading.Barrier(6)

    def open_and_close(_server: int) -> None:
        together.wait()
        Database(database_url).close()

    with ThreadPoolExecutor(6) as servers:
        assert list(servers.map(open_and_close, range(6))) == [None] * 6
    with engine.connect() as connection:
        versions = connection.execute(select(facts.c.value).where(facts.c.name == "version")).scalars().all()
    assert versions == [str(len(MIGRATIONS))]
    engine.dispose()


def test_a_file_that_another_is_making_just_now_is_waited_for(tmp_path: Path) -> None:
    making = sqlite3.connect(tmp_path / "review.sqlite", isolation_level=None)
    making.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as pool:
        opened = pool.submit(Database, tmp_path / "review.sqlite")
        wait([opened], timeout=0.5)
        making.execute("COMMIT")
        opened.result(timeout=PATIENCE).close()
    making.close()


def test_a_file_that_stays_locked_is_told_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "BUSY_SECONDS", 0)
    making = sqlite3.connect(tmp_path / "review.sqlite", isolation_level=None)
    making.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="cannot open the review's database: database is locked"):
        Database(tmp_path / "review.sqlite")
    making.close()


def test_a_newer_version_is_refused_in_a_sentence(database_url: str) -> None:
    Database(database_url).close()
    engine = create_engine(database_url)
    with engine.begin() as connection:
        connection.execute(update(facts).where(facts.c.name == "version").values(value="99"))
    with pytest.raises(StoreError, match="version 99"):
        migrate(engine)
    engine.dispose()


def test_a_database_that_cannot_be_reached_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot open the review's database"):
        Database(tmp_path / "no folder" / "review.sqlite")


@pytest.mark.parametrize("url", ["nonsense://here", "nonsense", "", "postgresql://u@127.0.0.1:port/x", "postgresql+no://x"])
def test_a_url_that_names_no_database_is_told_in_a_sentence(url: str) -> None:
    with pytest.raises(BadInput, match="unknown database or driver"):
        Database(url)


@pytest.mark.parametrize(
    "url",
    ["sqlite://", "sqlite:///", "sqlite+pysqlite://", "sqlite:///:memory:", "sqlite:///file::memory:?uri=true"],
)
def test_votes_are_not_kept_in_memory(url: str) -> None:
    with pytest.raises(BadInput, match="votes in memory are lost with the server; name a file"):
        Database(url)


def test_a_folder_may_have_a_name_that_means_something_in_a_url(tmp_path: Path) -> None:
    folder = tmp_path / "is it? 100%25 #1"
    folder.mkdir()
    database = Database(folder / "review.sqlite")
    database.invite("Ada")
    database.close()
    assert (folder / "review.sqlite").exists()


@pytest.mark.parametrize(
    "name",
    [
        "Ａda Ng",
        "Ada Ng\u200d",
        "A\u200cda Ng",
        "Ada\u2003Ｎg",
        "\u2060Ada Ng",
        "Ada\u200b Ng",
        "\u202eAda Ng",
        "Ada\tN\u00adg",
        "Ada\ufe0f Ng",
        "A\u034fda Ng",
        "Ada\u2800 Ng",
        "\u0410da Ng",
        "Ad\u0430 Ng",
        "\u0391da Ng",
    ],
    ids=ascii,
)
def test_nobody_is_invited_under_a_name_that_looks_like_anothers(database: Database, name: str) -> None:
    token = database.invite("Ada Ng")
    with pytest.raises(BadInput, match=r"looks like 'Ada Ng'|an invisible character"):
        database.invite(name)
    assert [person.name for person in database.reviewers()] == ["Ada Ng"]
    assert database.reviewer_with(token) is not None


@pytest.mark.parametrize("name", [" Ada  Ng ", "Ada\u00a0Ng", "Ada\u3000Ng", "Ada\nNg"], ids=ascii)
def test_spaces_of_any_kind_are_one_in_a_name(database: Database, name: str) -> None:
    old, _ = database.invite("Ada Ng"), database.invite(name)
    assert [person.name for person in database.reviewers()] == ["Ada Ng"]
    assert database.reviewer_with(old) is None, "the new link ended the old one"


def test_a_name_is_the_same_however_its_letters_are_put_together(database: Database) -> None:
    for name in ("Zo\u00eb", "Zoe\u0308"):
        database.invite(name)
    assert [person.name for person in database.reviewers()] == ["Zo\u00eb"]


@pytest.mark.parametrize(
    "name", ["", " ", "\u200b", "\u200d", "\u3164", "x" * 201, "a\0b", "\ud800", "\x1b[31mAda"], ids=ascii
)
def test_a_name_that_nobody_could_read_is_refused(database: Database, name: str) -> None:
    with pytest.raises(BadInput, match="name"):
        database.invite(name)
    assert database.reviewers() == []


def test_people_may_have_names_of_their_own_scripts(database: Database) -> None:
    names = [
        "Ada",
        "\u0410\u0434\u0430",
        "\u0410\u043d\u043d\u0430",
        "Zo\u00eb",
        "\u0645\u06cc\u200c\u062e",
        "\u674e\u96f7",
        "person 1",
        "person 10",
    ]
    for name in names:
        database.invite(name)
    assert [person.name for person in database.reviewers()] == names


def damaged(folder: Path, *statements: str) -> Path:
    """A review with a vote, in which somebody changed something by other means."""
    database = Database(folder / "review.sqlite")
    ada = person(database)
    database.assign(ada, lambda _: ["a", "b"])
    database.add(ada, [sent("1"), sent("2", "b", REJECT)])
    database.secret()
    database.close()
    with sqlite3.connect(folder / "review.sqlite") as connection:
        connection.execute("DROP INDEX votes_by_choice")  # which would notice some of it
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return folder / "review.sqlite"


@pytest.mark.parametrize(
    "change",
    [
        "facts SET value = 'x' WHERE name = 'version'",
        "facts SET value = x'ff' WHERE name = 'version'",
        "facts SET value = '" + "9" * 5000 + "' WHERE name = 'version'",
        "facts SET value = 'x' WHERE name = 'secret'",
        "facts SET value = x'00' WHERE name = 'secret'",
        "facts SET value = 'x' WHERE name = 'handed out'",
        "facts SET name = 'x' WHERE name = 'handed out'",
        "votes SET round = 'none'",
        "votes SET milliseconds = 'x'",
        "votes SET milliseconds = 1.5",
        "votes SET received = 'x'",
        "votes SET note = x'ff'",
        "votes SET item = x'ff'",
        "votes SET reviewer = 77",
        "votes SET reviewer = 'x'",
        "votes SET answer = 5",
        "votes SET answer = x'ff'",
        "reviewers SET name = x'ff'",
        "reviewers SET role = 'king'",
        "assignments SET reviewer = 'x' WHERE item = 'a'",
        "assignments SET position = 'x'",
    ],
    ids=lambda change: change[:60],
)
def test_rows_that_nobody_wrote_are_found_when_a_file_is_opened(tmp_path: Path, change: str) -> None:
    path = damaged(tmp_path, f"UPDATE {change}")
    with pytest.raises(StoreError, match="damaged"):
        Database(path).secret()


@pytest.mark.parametrize(
    "answer",
    [
        "{",
        '"keep"',
        "[1]",
        "{}",
        '{"choice": 5}',
        '{"choice": ["keep"]}',
        '{"choice":\n "keep"}',
        '{"choice": "reject", "reasons": 5}',
        '{"choice": "reject", "reasons": [{}]}',
        '{"choice": "keep", "labels": "tabby"}',
        '{"choice": "box", "points": [[0, 1]]}',
        '{"choice": "keep", "x": ' + "9" * 5000 + "}",
        "[" * 100_000,
    ],
    ids=lambda answer: answer[:40],
)
def test_an_answer_that_nobody_gave_is_told_in_a_sentence(tmp_path: Path, answer: str) -> None:
    database = Database(damaged(tmp_path, f"UPDATE votes SET answer = '{answer}' WHERE id = '1'"))
    with pytest.raises(StoreError, match="is no answer to anything"):
        database.vote_columns()
    if "\n" not in answer:
        with pytest.raises(StoreError, match="is no answer to anything"):
            database.votes()
    database.close()


@pytest.mark.parametrize(
    "strange",
    [
        "CREATE TRIGGER t AFTER INSERT ON votes BEGIN DELETE FROM votes; END",
        "CREATE VIEW v AS SELECT * FROM votes",
        "CREATE VIRTUAL TABLE t USING fts5(x)",
    ],
    ids=lambda strange: strange[:20],
)
def test_a_file_that_acts_by_itself_is_not_used(tmp_path: Path, strange: str) -> None:
    with pytest.raises(StoreError, match="which no review has"):
        Database(damaged(tmp_path, strange))


def test_a_file_without_one_of_the_columns_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such column"):
        Database(damaged(tmp_path, "ALTER TABLE votes RENAME COLUMN note TO remark"))


@pytest.mark.parametrize("there", [True, False])
def test_votes_are_not_kept_where_a_link_leads(tmp_path: Path, there: bool) -> None:
    elsewhere = tmp_path / "mine.sqlite"
    (tmp_path / "set").mkdir()
    if there:
        elsewhere.write_bytes(b"")
    (tmp_path / "set" / "review.sqlite").symlink_to(elsewhere)
    with pytest.raises(BadInput, match="name the file with --database"):
        Database(tmp_path / "set" / "review.sqlite")
    assert not there or elsewhere.read_bytes() == b""
    assert there or not elsewhere.exists()
    (tmp_path / "other").symlink_to(tmp_path / "set")
    (tmp_path / "set" / "review.sqlite").unlink()
    Database(tmp_path / "other" / "review.sqlite").close()  # a link to the whole folder is the owner's


def test_votes_on_more_items_than_a_question_may_name_are_found_too(database: Database) -> None:
    ada = person(database)
    database.assign(ada, lambda _: ["a", "b"])
    database.add(ada, [sent("1"), sent("2", "b")])
    many = ["a", *(f"other {number}" for number in range(40_000))]
    assert [vote.id for vote in database.votes(items=many)] == ["1"]
    assert database.assigned(many) == {"a": [ada]}


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE votes SET answer = '{'",
        "UPDATE votes SET answer = '[]'",
        "UPDATE votes SET answer = '{}'",
        "UPDATE votes SET answer = '{\"choice\": {}}'",
        'UPDATE votes SET answer = \'{"choice": "keep", "tagz": []}\'',
        "UPDATE votes SET round = 'fourth'",
        "UPDATE votes SET milliseconds = 'long'",
        "UPDATE votes SET number = -1",
        "UPDATE assignments SET reviewer = 'x'",
        "UPDATE reviewers SET qualified = 'x'",
        "UPDATE facts SET value = 'x' WHERE name = 'version'",
    ],
)
def test_damaged_rows_are_told_in_a_sentence_that_names_the_file(damage: str, tmp_path: Path) -> None:
    file = tmp_path / "review.sqlite"
    database = Database(file)
    database.invite("Ada")
    database.assign(1, lambda _: ["a"])
    database.add(1, [SubmittedVote("v1", "a", "first", {"choice": "keep"}, milliseconds=5)])
    database.close()
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as damaged:
        damaged.executescript("PRAGMA foreign_keys=OFF; DROP INDEX votes_by_choice")  # which reads answers
        damaged.execute(damage)

    def read(how: Callable[[Database], object]) -> None:
        opened = Database(file)
        try:
            how(opened)
        finally:
            opened.close()

    table = damage.split()[1]
    ways: dict[str, list[Callable[[Database], object]]] = {
        "votes": [Database.vote_columns] if "number" in damage else [Database.vote_columns, Database.votes],
        "assignments": [Database.assigned],
        "reviewers": [Database.reviewers],
        "facts": [Database.reviewers],
    }
    for how in ways[table]:
        with pytest.raises(StoreError, match=re.escape(str(file))):
            read(how)
