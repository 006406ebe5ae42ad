"""A later revision of a set keeps what people said of everything that is still asked as it was."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from command import Shiftproof
from review.reviewed_projects import judge, photo_project
from shiftproof.curation.project import Item, Project
from shiftproof.datasets import ImageList, open_dataset
from shiftproof.errors import BadInput
from shiftproof.review.database import Database
from shiftproof.review.export import export
from shiftproof.review.revision import continue_from, load_revision
from shiftproof.review.summary import summarize
from shiftproof.review.votes import SubmittedVote

KEEP, REJECT = ["keep", "keep"], ["reject", "reject"]


@pytest.fixture
def photos(draw_photos: Callable[..., Path]) -> ImageList:
    return open_dataset(draw_photos(3))


@pytest.fixture
def new(tmp_path: Path, photos: ImageList) -> Project:
    """All images."""
    return photo_project(tmp_path / "new", photos)


@pytest.fixture
def old(tmp_path: Path, photos: ImageList) -> Project:
    """The first four of them alone."""
    return photo_project(tmp_path / "old", photos, first=4)


@pytest.fixture
def old_votes(old: Project) -> Iterator[Database]:
    """Two items kept, two rejected."""
    opened = Database(old.folder / "review.sqlite")
    ids = [item.id for item in old.items]
    judge(opened, {ids[0]: KEEP, ids[1]: KEEP, ids[2]: REJECT, ids[3]: REJECT})
    yield opened
    opened.close()


def test_verdicts_on_the_same_items_are_kept_and_the_rest_is_open(
    new: Project, database: Database, old: Project, old_votes: Database
) -> None:
    revision = continue_from(new, database, old, old_votes)
    assert (revision.number, revision.items, revision.votes) == (2, 4, 8)
    before, now = summarize(old, old_votes).verdicts, summarize(new, database).verdicts
    assert {item: now[item] for item in before} == before
    assert {verdict.outcome for item, verdict in now.items() if item not in before} == {"open"}
    assert [person.name for person in database.reviewers()] == ["Ada", "Ben"]


def test_votes_are_taken_over_once_and_those_that_came_later_too(
    new: Project, database: Database, old: Project, old_votes: Database
) -> None:
    continue_from(new, database, old, old_votes)
    (first, *_), count = old_votes.votes(), database.count()
    undo = SubmittedVote("undo", first.item, "first", None, supersedes=first.id)
    old_votes.add(first.reviewer, [undo])
    continue_from(new, database, old, old_votes)
    assert database.count() == count + 1
    assert summarize(new, database).verdicts[first.item].outcome == "open"


def test_what_looks_otherwise_or_is_called_otherwise_is_asked_again(
    new: Project, database: Database, old: Project, old_votes: Database
) -> None:
    first, second, *others = new.items
    changed = dataclasses.replace(first, images=new.items[-1].images), dataclasses.replace(second, label="another")
    revision = continue_from(dataclasses.replace(new, items=(*changed, *others)), database, old, old_votes)
    assert (revision.items, revision.votes) == (2, 4)
    assert {vote.item for vote in database.votes()} == {item.id for item in old.items[2:]}


def test_who_closed_a_group_is_asked_no_more_and_what_was_seen_stays_seen(tmp_path: Path, database: Database) -> None:
    pairs = tuple(Item(f"a{number}", ("1.jpg", "2.jpg"), group="a") for number in range(4))
    (tmp_path / "old").mkdir()
    old, new = (Project(tmp_path / name, name, "pair", pairs) for name in ("old", "new"))
    before = Database(tmp_path / "old" / "review.sqlite")
    before.invite("Ada")
    before.assign(1, lambda _: ["a0", "a1", "a2"])
    before.add(1, [SubmittedVote("the first vote", "a1", "first", {"choice": "bad anchor"}, received=1000.0)])
    before.mark_unblinded(1, ["a1"])
    continue_from(new, database, old, before)
    assert database.next_items(1, 9) == []
    assert database.unblinded_items(1) == {"a1"}
    assert [vote.received for vote in database.votes()] == [1000.0]
    before.close()


def test_votes_on_another_question_or_on_other_items_are_refused(
    tmp_path: Path, photos: ImageList, database: Database, old: Project, old_votes: Database
) -> None:
    boxes = photo_project(tmp_path / "boxes", photos, screen="extreme-points")
    with pytest.raises(BadInput, match="votes mean different things"):
        continue_from(boxes, database, old, old_votes)
    others = dataclasses.replace(old, items=tuple(dataclasses.replace(item, id=f"new {item.id}") for item in old.items))
    with pytest.raises(BadInput, match="were both made from the same images"):
        continue_from(others, database, old, old_votes)


def test_the_card_of_a_revision_says_what_changed(
    new: Project, database: Database, old: Project, old_votes: Database, tmp_path: Path
) -> None:
    continue_from(new, database, old, old_votes)
    ids = [item.id for item in new.items]
    kept = [vote for vote in database.votes() if vote.item == ids[0]]
    for vote in kept:
        changed = SubmittedVote(f"{vote.id[:-4]}-new", vote.item, "open", {"choice": "reject"}, supersedes=vote.id)
        database.add(vote.reviewer, [changed])
    judge(database, {ids[4]: KEEP})
    card = export(new, summarize(new, database), tmp_path / "set").card
    assert card["revision"] == 2
    assert card["changes"] == {"added": [ids[4]], "dropped": [ids[0]], "reversed": [ids[0]]}
    assert "## Changes since revision 1" in (tmp_path / "set" / "data-card.md").read_text()


def test_the_command_counts_what_it_took_over(
    shiftproof: Shiftproof, new: Project, old: Project, old_votes: Database
) -> None:
    said = shiftproof("curate", "revise", "new", "--continue-from", "old")
    assert said.code == 0, said.err
    assert "revision 2: 8 votes on 4 of 9 items carried over" in said.err
    assert load_revision(new.folder).number == 2
    assert "2 kept, 2 rejected, 5 open" in shiftproof("verdicts", "new").out


def test_a_pipe_or_a_folder_in_place_of_the_revision_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "revision.json")
    writer = os.open(tmp_path / "revision.json", os.O_RDWR)  # so that whoever reads it would wait for more, not for somebody
    os.write(writer, b"{}")
    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(load_revision, tmp_path)
        done = wait([found], timeout=5).done
        os.close(writer)
        assert done
        with pytest.raises(BadInput, match=r"it has no revision\.json"):
            found.result()
    (tmp_path / "revision.json").unlink()
    (tmp_path / "revision.json").mkdir()
    with pytest.raises(BadInput, match=r"it has no revision\.json"):
        load_revision(tmp_path)
