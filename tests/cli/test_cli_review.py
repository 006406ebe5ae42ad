"""The commands review and verdicts as people type them."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from command import Shiftproof
from review.served import drawn_project, get, served
from shiftproof.curation.project import load_project
from shiftproof.review.assignment import assign_items
from shiftproof.review.database import Database
from shiftproof.review.votes import SubmittedVote


def test_links_are_printed_once_and_let_their_holders_in(tmp_path: Path) -> None:
    drawn_project(tmp_path / "set")
    with served(tmp_path / "set", invite=["Ada", "Ben"]) as server:
        assert set(server.links) == {"owner", "Ada", "Ben"}
        answers = {name: get(link).status_code for name, link in server.links.items()}
        assert answers == {"owner": 303, "Ada": 303, "Ben": 303}
        code, out, err = server.stop()
        assert (code, out) == (0, "")
        assert "Traceback" not in err
        before = dict(server.links)
        server.links = {}
        server.start()
        assert server.links == {}, "who was invited stays invited, and no link is told twice"
        assert get(before["Ada"]).status_code == 303


def test_nothing_of_a_request_is_logged(tmp_path: Path) -> None:
    drawn_project(tmp_path / "set")
    with served(tmp_path / "set", invite=["Ada"]) as server:
        token = server.links["Ada"].rpartition("/")[2]
        get(server.links["Ada"], follow_redirects=False)
        get(f"{server.address}/join/{'x' * 32}")
        _, out, err = server.stop()
    assert token not in out + err
    assert "x" * 32 not in out + err


def test_behind_a_proxy_links_and_cookies_are_for_its_address(tmp_path: Path) -> None:
    drawn_project(tmp_path / "set")
    with served(tmp_path / "set", "--public-url", "https://review.example", invite=["Ada"]) as server:
        assert server.links["Ada"].startswith("https://review.example/join/")
        path = server.links["Ada"].removeprefix("https://review.example")
        answer = get(f"http://127.0.0.1:{server.port}{path}", headers={"host": "review.example"})
        assert answer.status_code == 303
        assert "secure" in answer.headers["set-cookie"].lower()


def test_odd_addresses_and_an_owner_who_is_invited_are_told_in_a_sentence(shiftproof: Shiftproof, tmp_path: Path) -> None:
    drawn_project(tmp_path / "set")
    Database(tmp_path / "set" / "review.sqlite").invite("Ada", "owner")
    for options, told in (
        (["--public-url", "review.example"], "expected an address such as https://review.example, got review.example"),
        (["--invite", "Ada"], "Ada is the owner; --owner makes a new link"),
        (["--invite", " Ada "], "Ada is the owner; --owner makes a new link"),
        (["--invite", "Ａda"], "'Ａda' looks like 'Ada', who is invited already"),
        (["--trusted-proxy", "review.example"], "expected a proxy's address, such as 127.0.0.1 or 10.1.0.0/16"),
        (["--database", "sqlite://"], "votes in memory are lost with the server; name a file"),
        (["--host", "no.such.host.invalid"], "cannot listen at no.such.host.invalid"),
    ):
        said = shiftproof("review", "set", "--port", "0", *options)
        assert said.code == 1
        assert told in said.err
        assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("maybe=j", "no answer called 'maybe'; there are: keep, reject, unsure"),
        ("keep=j,reject=j", "reject of clarity needs a key of its own: J is that of keep"),
        ("unsure=t", "unsure of clarity needs a key of its own: pages have T for themselves"),
        ("keep", "as keep=j,reject=f; got 'keep'"),
    ],
)
def test_keys_that_nobody_could_press_are_told_in_a_sentence(
    shiftproof: Shiftproof, tmp_path: Path, keys: str, told: str
) -> None:
    drawn_project(tmp_path / "set")
    before = (tmp_path / "set" / "project.json").read_bytes()
    said = shiftproof("review", "set", "--port", "0", "--keys", keys)
    assert (said.code, said.err.count("\n")) == (1, 1)
    assert told in said.err
    assert (tmp_path / "set" / "project.json").read_bytes() == before


def test_other_keys_stay_until_they_are_taken_back(tmp_path: Path) -> None:
    drawn_project(tmp_path / "set")
    for options, kept in ((["--keys", "keep=j"], {"keep": "j"}), ([], {"keep": "j"}), (["--keys", ""], {})):
        with served(tmp_path / "set", *options):
            assert load_project(tmp_path / "set").keys == kept


def test_a_damaged_database_is_told_in_a_sentence(shiftproof: Shiftproof, tmp_path: Path) -> None:
    project = drawn_project(tmp_path / "set")
    file = project.folder / "review.sqlite"
    database = Database(file)
    database.invite("Ada")
    assign_items(project, database, 1)
    database.add(1, [SubmittedVote(f"vote {item.id}", item.id, "first", {"choice": "keep"}) for item in project.items])
    database.close()
    good = file.read_bytes()
    told = []
    for start in range(100, len(good), 1024):
        file.write_bytes(good[:start] + b"\xa2" * 64 + good[start + 64 :])
        said = shiftproof("verdicts", "set")
        assert (said.code, said.err.count("\n")) in ((0, 0), (1, 1)), said.err
        told.append(said.err)
    assert any("the review's database" in text for text in told)


def test_a_port_that_is_taken_is_told_in_a_sentence(shiftproof: Shiftproof, tmp_path: Path) -> None:
    drawn_project(tmp_path / "set")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = shiftproof("review", "set", "--port", port)
    assert said.code == 1
    assert said.err == f"shiftproof: cannot listen at 127.0.0.1 port {port}: Address already in use\n"


def test_people_may_be_asked_about_some_classes_alone(shiftproof: Shiftproof, tmp_path: Path) -> None:
    project = drawn_project(tmp_path / "set")
    label = next(item.label for item in project.items if item.label)
    with socket.create_server(("127.0.0.1", 0)) as taken:  # so that the command ends
        said = shiftproof("review", "set", "--port", taken.getsockname()[1], "--reviewer-classes", f"Ada={label}")
    assert "No such option" not in said.err
    assert load_project(tmp_path / "set").reviewer_classes == {"Ada": (label,)}
    said = shiftproof("review", "set", "--reviewer-classes", "Ada=whales")
    assert (said.code, "called 'whales'" in said.err) == (1, True), said.err


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ({}, "set is no review project: it has no project.json"),
        ({"project.json": "[1]", "items.jsonl": ""}, "set is no review project that can be read"),
        ({"project.json": "{", "items.jsonl": ""}, "set is no review project that can be read"),
        ({"project.json": '{"format": 7}', "items.jsonl": ""}, "another version"),
    ],
)
def test_what_is_no_project_is_told_in_a_sentence(
    shiftproof: Shiftproof, tmp_path: Path, damage: dict[str, str], told: str
) -> None:
    (tmp_path / "set").mkdir()
    for name, text in damage.items():
        (tmp_path / "set" / name).write_text(text)
    for command in ("review", "verdicts"):
        said = shiftproof(command, "set")
        assert said.code == 1
        assert told in said.err
        assert said.err.count("\n") == 1


def test_missing_pictures_are_told_before_anybody_is_asked(shiftproof: Shiftproof, tmp_path: Path) -> None:
    drawn_project(tmp_path / "set")
    (tmp_path / "set" / "images" / "3.png").unlink()
    said = shiftproof("review", "set")
    assert (said.code, said.err) == (1, "shiftproof: set lacks 1 of its pictures, such as 3.png\n")


@pytest.mark.parametrize("url", ["postgresql://nobody@127.0.0.1:1/none", "sqlite:////no/such/folder/review.sqlite"])
def test_a_database_that_cannot_be_reached_is_told_in_a_sentence(shiftproof: Shiftproof, tmp_path: Path, url: str) -> None:
    drawn_project(tmp_path / "set")
    said = shiftproof("review", "set", "--database", url)
    assert said.code == 1
    assert said.err.startswith("shiftproof: cannot open the review's database: ")
    assert said.err.count("\n") == 1


def test_verdicts_tell_counts_agreement_and_how_each_person_worked(shiftproof: Shiftproof, tmp_path: Path) -> None:
    project = drawn_project(tmp_path / "set", count=4)
    database = Database(tmp_path / "set" / "review.sqlite")
    said = {"Ada": ["keep", "keep", "reject", "keep"], "Ben": ["keep", "keep", "reject", "reject"]}
    for name, choices in said.items():
        person = database.reviewer_with(database.invite(name))
        assert person is not None
        assign_items(project, database, person.id)
        for item, choice in zip(project.items, choices, strict=True):
            database.add(
                person.id, [SubmittedVote(f"{name} {item.id}", item.id, "first", {"choice": choice}, milliseconds=1500)]
            )
    database.close()
    told = shiftproof("verdicts", "set")
    assert "2 kept, 2 rejected, 0 open of 4 items, by 8 votes" in told.out
    # 3 of 4 pairs; by chance (5/8)^2 + (3/8)^2
    kappa = (0.75 - 34 / 64) / (1 - 34 / 64)
    found = json.loads(shiftproof("verdicts", "set", "--json").out)
    assert found["outcomes"] == {"kept": 2, "rejected": 2, "open": 0}
    assert found["agreement"]["percent"] == 0.75
    assert found["agreement"]["fleiss"] == pytest.approx(kappa)
    assert [person["agreement"] for person in found["people"]] == [0.75, 0.75]
    assert found["people"][0]["confusion"][0][:2] == [2, 1], "where Ada kept, Ben kept two and rejected one"
    assert found["people"][1]["median_seconds"] == 1.5
    assert [verdict["disputed"] for verdict in found["verdicts"]] == [False, False, True, True]


def test_nobody_asked_yet_is_told_and_no_file_is_made(shiftproof: Shiftproof, tmp_path: Path) -> None:
    drawn_project(tmp_path / "set")
    said = shiftproof("verdicts", "set")
    assert (said.code, said.err) == (1, "shiftproof: no votes yet; start the review with: shiftproof review set\n")
    assert not (tmp_path / "set" / "review.sqlite").exists()
