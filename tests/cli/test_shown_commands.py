"""Commands that pages show can be typed: the command and its options are there, and no shell takes a word for a pattern."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from shiftproof.cli.main import cli

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
REMARK = re.compile(r"\s+#.*|\s{2,}\S.*")
"""What follows a command on its line: a comment, or words a few spaces away."""


def shown_commands(text: str) -> Iterator[str]:
    """The commands in the blocks of a page, continued lines joined, without prompts and remarks."""
    for language, block in FENCE.findall(text):
        if language not in ("", "bash", "console"):
            continue
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            typed = re.sub(r"^(\$ )?(\.venv/bin/)?", "", line)
            if re.match(r"shiftproof [a-z]", typed):
                yield REMARK.sub("", typed)


def what_is_wrong(typed: str) -> list[str]:
    """Why a command cannot be typed as it is shown."""
    unquoted = re.sub(r"'[^']*'|\"[^\"]*\"", "", typed)
    wrong = [f"{sign} is not quoted" for sign in "?*[]&" if sign in unquoted.replace("<", "")]
    words = shlex.split(typed.partition(">")[0].partition("|")[0])[1:]
    command: click.Command = cli
    while isinstance(command, click.Group) and words:
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            return [*wrong, f"there is no command {words[0]}"]
        command, words = found, words[1:]
    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    options = [word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)]
    return [*wrong, *(f"there is no option {name}" for name in options if name not in known)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_can_be_typed_as_they_are_shown(page: Path) -> None:
    wrong = {typed: what_is_wrong(typed) for typed in shown_commands(page.read_text(encoding="utf-8"))}
    assert {typed: why for typed, why in wrong.items() if why} == {}


def test_the_test_above_can_fail() -> None:
    page = "```bash\nshiftproof rin lite:0\n$ shiftproof run a.mp4?x=1 photos/ --stor runs   some runs\n```\n"
    assert [what_is_wrong(typed) for typed in shown_commands(page)] == [
        ["there is no command rin"],
        ["? is not quoted", "there is no option --stor"],
    ]
