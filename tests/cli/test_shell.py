"""The command is a shell around the library: one public call a command, one meaning an option, help that fits a screen."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import shiftproof as sp
from shiftproof import catalog
from shiftproof.cli import main
from shiftproof.cli.main import cli
from shiftproof.cli.options import Command, options_from, study_options

FOLDER = Path(main.__file__).parent
WORDS = {"cli", "errors", "files", "places", "catalog", "registry", "tables"}
"""Parts that a command may use beside the public names: they say where to find things and how to print them."""

WORDING = {
    "shiftproof.metrics.table": {"metric_info"},
    "shiftproof.metrics.wording": {
        *("figure", "span", "has_too_few", "unit_of_evidence", "names_or_more", "counted"),
        *("axis_key", "labels_missing", "limit_told", "mark_told", "next_command", "none_told", "number_told", "some_told"),
    },
    "shiftproof.options": {"Options", "Tables", "TextTables", "as_typed", "choices_of", "hints_of", "written_in"},
    "shiftproof.reports.headline": {"THESE_PHOTOS", "headline_tables", "interval_told"},
    "shiftproof.studies.choice": {"StudyChoice"},
    "shiftproof.corruptions.selection": {"whole_numbers"},
    "shiftproof.runs.stored_models": {"SHORT", "preprocessing_told"},
    "shiftproof.studies.evidence": {"verdicts"},
    "shiftproof.types": {"Axis", "Measurement", "Profile", "Results", "Weakness", "encodable"},
}
"""What else the shell imports, to read what was typed and to word what was found."""


def commands(group: click.Group = cli, above: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command of the tree that does something, by what is typed."""
    for name, one in group.commands.items():
        typed = f"{above}{name}"
        if isinstance(one, click.Group):
            yield from commands(one, f"{typed} ")
        if not isinstance(one, click.Group) or one.invoke_without_command:
            yield typed, one


COMMANDS = dict(commands())
WORKING = {typed: one for typed, one in COMMANDS.items() if typed != "help"}  # which prints what click knows


def public_calls(text: str) -> list[str]:
    """The public functions that a piece of code calls, as often as it does: sp.run, sp.curate.novel."""
    called = [ast.unparse(node.func) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return [name for name in called if re.fullmatch(r"sp\.(\w+\.)?[a-z]\w*", name)]


def is_public(name: str) -> bool:
    first, *rest = name.split(".")[1:]
    return first in sp.__all__ and callable(getattr(getattr(sp, first), rest[0]) if rest else getattr(sp, first))


def _source(typed: str) -> str:
    one = WORKING[typed]
    assert isinstance(one, Command), f"{typed} is made by another decorator than command"
    assert one.function is not None
    return textwrap.dedent(inspect.getsource(one.function))


@pytest.mark.parametrize("typed", sorted(WORKING))
def test_a_command_is_one_public_call_and_printing(typed: str) -> None:
    calls = public_calls(_source(typed))
    assert len(calls) == 1
    assert is_public(calls[0])


def test_nothing_else_of_the_shell_calls_the_library() -> None:
    """Helpers of commands print: no public call stands outside a command, and nothing that is not public is imported."""
    in_commands = sorted(call for typed in WORKING for call in public_calls(_source(typed)))
    in_files = sorted(call for path in FOLDER.glob("*.py") for call in public_calls(path.read_text(encoding="utf-8")))
    assert in_files == in_commands
    assert {path.name: found for path in FOLDER.glob("*.py") if (found := strange_imports(path.read_text("utf-8")))} == {}


def strange_imports(text: str) -> list[str]:
    """What code imports of the package that is neither public nor wording; what is for type checkers alone is left out."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    found = [node for node in ast.walk(tree) if isinstance(node, (ast.ImportFrom, ast.Import))]
    modules = [alias.name for node in found if isinstance(node, ast.Import) for alias in node.names]
    strange = [name for name in modules if name.startswith("shiftproof.")]
    for node in found:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("shiftproof"):
            home = node.module or ""
            part = home.split(".")[1] if "." in home else ""
            names = {alias.name for alias in node.names}
            known = names if part in WORDS else WORDS if not part else WORDING.get(home, set())
            strange += [f"{home}.{name}" for name in sorted(names - known)]
    return strange


def test_the_tests_above_can_fail() -> None:
    assert public_calls("def run(asked):\n    sp.plan(1)\n    return sp.curate.novel(2), sp.Store(3)") == [
        "sp.plan",
        "sp.curate.novel",
    ]
    assert not is_public("sp.fill_studies")
    assert strange_imports("def run():\n    from shiftproof.runs.predict import fill") == ["shiftproof.runs.predict.fill"]
    assert strange_imports("import shiftproof.bench") == ["shiftproof.bench"]
    assert strange_imports("from shiftproof import bench") == ["shiftproof.bench"]


def meaning(option: click.Option) -> tuple[str, bool, str]:
    """What an option is read as, whether it is repeatable, and what its help says up to a colon."""
    return option.type.name, option.multiple, (option.help or "").partition(":")[0].partition("  [default")[0]


def options() -> Iterator[tuple[str, str, click.Option]]:
    """Every flag, where it is, and the option: in a command, in each dataclass that a command or a study is made from."""
    found: list[tuple[str, click.Parameter]] = [(typed, one) for typed in COMMANDS for one in COMMANDS[typed].params]
    kinds = {kind for one in WORKING.values() if isinstance(one, Command) for kind in one.kinds()}
    found += [(kind.__name__, one) for kind in (*kinds, *study_options().values()) for one in options_from([kind])]
    for where, one in found:
        if isinstance(one, click.Option):
            yield from ((flag, where, one) for flag in one.opts)


def test_one_option_has_one_meaning_in_all_commands() -> None:
    meanings: dict[str, dict[tuple[str, bool, str], list[str]]] = {}
    for flag, where, option in options():
        meanings.setdefault(flag, {}).setdefault(meaning(option), []).append(where)
    assert len(meanings) > 150
    assert {flag: several for flag, several in meanings.items() if len(several) > 1} == {}


def test_o_is_where_the_result_goes() -> None:
    found = [(typed, option) for flag, typed, option in options() if flag == "-o"]
    assert len(found) > 8
    for typed, option in found:
        assert option.opts == ["-o", "--output"], typed
        assert (option.help or "").startswith("Where the result goes: "), typed
    assert {flag for flag, _, _ in options() if not flag.startswith("--")} == {"-o"}


@pytest.mark.parametrize("typed", sorted(COMMANDS))
def test_help_ends_with_an_example_that_can_be_typed(typed: str) -> None:
    told = " ".join((COMMANDS[typed].help or "").split())
    _, found, example = told.rpartition("Example: shiftproof ")
    assert found
    words = shlex.split(example)
    given = typed.split()
    assert words[: len(given)] == given
    one = COMMANDS[typed]
    with click.Context(one, info_name=typed) as context:
        values, rest, _ = one.make_parser(context).parse_args(words[len(given) :])
        assert rest == [] or isinstance(one, click.Group)
        for parameter in one.params:
            if parameter.required:
                assert values.get(str(parameter.name)) not in (None, ()), parameter.name
            raw = values.get(str(parameter.name))
            if isinstance(raw, str) and not isinstance(parameter.type, click.Path):
                parameter.type_cast_value(context, raw)


def test_help_of_run_shows_at_most_25_options_and_all_where_asked() -> None:
    def shown(*asked: str) -> list[str]:
        said = CliRunner().invoke(cli, [*asked])
        assert said.exit_code == 0
        return [line for line in said.output.splitlines() if line.strip().startswith("-")]

    assert 10 < len(shown("run", "--help")) <= 25
    assert len(shown("run", "--help-all")) > 80


@pytest.mark.parametrize("study", catalog.STUDIES)
def test_help_of_a_study_shows_its_options(study: str) -> None:
    said = CliRunner().invoke(cli, ["help", study])
    assert said.exit_code == 0
    assert f"--studies {study}" in said.output
