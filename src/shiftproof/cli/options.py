"""Command-line options made from the fields of option dataclasses, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, get_args, get_origin

import click
from click.core import ParameterSource

import shiftproof as sp
from shiftproof import catalog
from shiftproof.cli.emit import Bar, interruptible, remark
from shiftproof.errors import BadInput

if TYPE_CHECKING:
    from shiftproof.options import Bounds, Options, Told
    from shiftproof.studies.choice import StudyChoice

OptionsT = TypeVar("OptionsT", bound="Options")
Kinds: TypeAlias = "Callable[[], Iterable[type[Options]]]"
"""Option dataclasses, imported when they are first needed: the list of commands needs none."""


def job_settings() -> Iterable[type[Options]]:
    """Options of every command that runs a model on a dataset of its own."""
    return sp.ModelSettings, sp.DatasetSettings, sp.ScoringSettings, sp.PredictionSettings, sp.options.StorePlace


def study_settings() -> Iterable[type[Options]]:
    """Options of commands that measure what is stored of a model."""
    return sp.options.StudyNames, sp.ModelSettings, sp.DatasetSettings, sp.ScoringSettings, sp.options.StorePlace


def result_settings() -> Iterable[type[Options]]:
    """Options of commands that print results."""
    return sp.options.Tables, sp.options.Verbosity


ALL = "shiftproof.all"
"""Key of the context's notes that says that help should show every option."""


class Words(click.ParamType[tuple[str, ...]]):
    """Names with commas between them."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:  # noqa: ARG002
        if isinstance(value, tuple):
            return value
        return tuple(word.strip() for word in str(value).split(",") if word.strip())


class Numbers(click.ParamType[tuple[int, ...]]):
    """Whole numbers with commas between them."""

    name = "numbers"

    def __init__(self, bounds: Bounds | None, what: str, *, none: bool) -> None:
        self.least = int(bounds.least or 0) if bounds else 0
        self.most = int(bounds.most) if bounds and bounds.most is not None else None
        self.what, self.none = what, none

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:  # noqa: ARG002
        from shiftproof.corruptions.selection import whole_numbers

        if isinstance(value, tuple) or (self.none and value == "none"):
            return value if isinstance(value, tuple) else ()
        return whole_numbers(str(value), least=self.least, most=self.most, what=self.what)


class FieldOption(click.Option):
    """An option made from a field; it knows the title it stands under in help, and whether it is common."""

    def __init__(self, *arguments: Any, title: str = "Output", common: bool = True, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.title, self.common = title, common


def options_from(kinds: Iterable[type[Options]]) -> list[FieldOption]:
    """The options of several dataclasses, each once and under the title of the class that has it."""
    from shiftproof.options import hints_of

    found: dict[str, FieldOption] = {}
    for kind in kinds:
        hints = hints_of(kind)
        for one in dataclasses.fields(kind):
            if "told" in one.metadata and one.name not in found:
                found[one.name] = _option(kind, one, hints[one.name])
    return list(found.values())


def _option(kind: type[Options], one: dataclasses.Field[Any], hint: Any) -> FieldOption:
    from shiftproof.options import as_typed, written_in

    told: Told = one.metadata["told"]
    how: dict[str, Any] = {"title": written_in(kind, one.name).TITLE, "common": told.common, "help": told.help}
    flags = (*(told.flags or [as_typed(one.name)]), one.name)
    if hint is bool:
        return FieldOption(flags, is_flag=True, **how)
    must = one.default is dataclasses.MISSING
    default: Any = None if must else one.default
    shown: Any = None
    if default not in (None, ()):
        shown = ",".join(map(str, default)) if isinstance(default, tuple) else True
    how |= {"type": _type(kind, hint, told, one.name), "multiple": told.repeatable, "metavar": told.metavar}
    return FieldOption(flags, default=default, show_default=shown, required=must, **how)


def _type(kind: type[Options], hint: Any, told: Told, name: str) -> Any:
    """What click reads a field of this type as."""
    from shiftproof.options import choices_of

    parts = get_args(hint) if NoneType in get_args(hint) else (hint,)
    optional, bare = NoneType in parts, next(part for part in parts if part is not NoneType)
    if get_origin(bare) is tuple:
        inner = get_args(bare)[0]
        if told.repeatable:
            return inner
        return Numbers(told.bounds, name.replace("_", " "), none=optional) if inner is int else Words()
    if choices := choices_of(kind).get(name):
        return click.Choice(list(choices))
    if told.is_path:
        return click.Path()
    if told.bounds is None:
        return bare
    span: dict[str, Any] = {"min": told.bounds.least, "max": told.bounds.most}
    span |= {"min_open": told.bounds.open_below, "max_open": told.bounds.open_above}
    return click.IntRange(**span) if bare is int else click.FloatRange(**span)


class Asked:
    """What was typed, as the option dataclasses of the library."""

    def __init__(self, context: click.Context) -> None:
        self._context = context

    def __getitem__(self, kind: type[OptionsT]) -> OptionsT:
        """The options of one dataclass, with its own defaults; those of a group may be typed before its sub-command too."""
        values: dict[str, Any] = {}
        for context in filter(None, (self._context.parent, self._context)):
            for one in dataclasses.fields(kind):
                if context.get_parameter_source(one.name) in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT):
                    values[one.name] = context.params[one.name]
        try:
            return kind(**values, given=frozenset(values))
        except BadInput as problem:
            raise click.UsageError(str(problem), self._context) from problem

    @property
    def settings(self) -> dict[str, Any]:
        """What the options of this command are to its job, by keyword; and where remarks go."""
        command = self._context.command
        assert isinstance(command, Command)  # noqa: S101 - nothing else asks
        found: dict[str, Any] = {"tell": remark}
        for kind in command.kinds():
            if kind.KEYWORD:
                found[kind.KEYWORD] = self[kind]
            elif kind.KEYWORD is not None:
                chosen = self[kind]
                found |= {one.name: getattr(chosen, one.name) for one in dataclasses.fields(kind) if "told" in one.metadata}
        if "studies" in found:
            found["studies"] = self.studies(found["studies"])
        return found

    @contextmanager
    def job(self, unit: str = "images", before: str = "answered before", *, tells: bool = True) -> Iterator[dict[str, Any]]:
        """The same, with the progress of the job, while it runs; Ctrl-C ends it with a sentence. Some jobs tell nothing."""
        with interruptible(Bar(quiet=self[sp.options.Quiet].quiet, unit=unit, before=before)) as progress:
            settings = self.settings | {"progress": progress}
            yield settings if tells else {name: value for name, value in settings.items() if name != "tell"}

    @contextmanager
    def work(self, unit: str = "images", before: str = "done before") -> Iterator[dict[str, Any]]:
        """The same of a job that takes the number of processes, and says nothing where it shows no progress."""
        asked = self[sp.options.WorkerSettings]
        with self.job(unit, before) as settings:
            yield {**settings, "workers": asked.workers, **({"tell": lambda _: None} if asked.quiet else {})}

    def argument(self, name: str) -> Any:
        """An argument by its name."""
        return self._context.params[name]

    @property
    def json(self) -> bool:
        """Whether what is printed is JSON."""
        return bool(self._context.params["json"])

    @property
    def output(self) -> Any:
        """Where the result goes; None where that was not said and need not be."""
        return self._context.params["output"]

    @property
    def is_of_group(self) -> bool:
        """Whether a sub-command was typed, which does the work."""
        return self._context.invoked_subcommand is not None

    def studies(self, names: Sequence[str] | None) -> StudyChoice:
        """The studies that were named, with the options of all."""
        from shiftproof.studies.choice import StudyChoice

        return StudyChoice(names, {name: self[kind] for name, kind in study_options().items()})


def study_options() -> Mapping[str, Any]:
    """The options of every study of the catalog that has some."""
    kinds = catalog.STUDIES.loaded(lambda kind: kind.load_options())
    return {name: kind for name, kind in kinds if kind is not None}


class Output(NamedTuple):
    """What -o names: what goes there, and where by default."""

    what: str
    default: str | None = None
    required: bool = False

    def option(self) -> FieldOption:
        """The same as an option."""
        shown = True if self.default else None
        how: dict[str, Any] = {"default": self.default, "show_default": shown, "required": self.required}
        return FieldOption(("-o", "--output"), type=click.Path(), help=f"Where the result goes: {self.what}.", **how)


class Command(click.Command):
    """A command whose options come from dataclasses, made when they are first needed, and whose help is grouped."""

    def __init__(
        self,
        *arguments: Any,
        function: Callable[[Asked], None] | None = None,
        kinds: Kinds = tuple,
        studies: bool = False,
        output: Output | None = None,
        **more: Any,
    ) -> None:
        self.function, self.kinds, self.studies, self.output, self._made = function, kinds, studies, output, False
        super().__init__(*arguments, **more)

    @property
    def params(self) -> list[click.Parameter]:
        """Arguments and options."""
        if not self._made:
            self._made = True
            made = options_from([*self.kinds(), *(study_options().values() if self.studies else ())])
            made += [self.output.option()] if self.output else []
            made += [FieldOption(("--json",), is_flag=True, help="Print as JSON.")] if self.function else []
            self._params += made
            if not all(one.common for one in made):
                self._params.append(_help_all())
        return self._params

    @params.setter
    def params(self, params: list[click.Parameter]) -> None:
        self._params = params

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for one in self.get_params(ctx):
            if isinstance(one, FieldOption) and not (one.common or ctx.meta.get(ALL)):
                continue
            if record := one.get_help_record(ctx):
                groups.setdefault(one.title if isinstance(one, FieldOption) else "Other", []).append(record)
        for title, records in sorted(groups.items(), key=lambda group: group[0] == "Other"):
            with formatter.section(title):
                formatter.write_dl(records)


class Commands(Command, click.Group):
    """Commands under one name, listed with their first sentences whole."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        rows = [
            (name, one.get_short_help_str(limit=1000))
            for name in self.list_commands(ctx)
            if (one := self.get_command(ctx, name))
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _help_all() -> click.Option:
    def show(ctx: click.Context, _option: click.Parameter, asked: bool) -> None:
        if asked:
            ctx.meta[ALL] = True
            click.echo(ctx.get_help())
            ctx.exit()

    return click.Option(
        ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=show, help="Show every option and exit."
    )


def command(
    *arguments: click.Argument | str,
    options: Kinds = tuple,
    studies: bool = False,
    output: Output | None = None,
    name: str | None = None,
    group: bool = False,
) -> Callable[[Callable[[Asked], None]], Any]:
    """A function of what was asked as a command: its docstring is the help, the dataclasses are its options.

    A group does its own work where no sub-command is typed.
    """

    def decorate(function: Callable[[Asked], None]) -> Command:
        def callback(**_: Any) -> None:
            asked = Asked(click.get_current_context())
            if not asked.is_of_group:
                function(asked)

        made = Commands if group else Command
        return made(
            name or function.__name__.replace("_", "-"),
            function=function,
            callback=callback,
            help=function.__doc__,
            params=[one if isinstance(one, click.Argument) else click.Argument([one]) for one in arguments],
            kinds=options,
            studies=studies,
            output=output,
            **({"invoke_without_command": True} if group else {}),
        )

    return decorate
