"""The command: each sub-command is one call of the library plus printing.

Nothing heavy is imported before a command runs, so that help and mistakes in typing are answered at once.
"""

from __future__ import annotations

import atexit
import errno
import gc
import io
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import click

import shiftproof as sp
from shiftproof import catalog
from shiftproof.cli.curate import curate
from shiftproof.cli.deploy import gate, guard, watch
from shiftproof.cli.emit import Bar, emit, interruptible, remark
from shiftproof.cli.options import ALL, Asked, Command, Commands, Output, command
from shiftproof.cli.review import review, verdicts
from shiftproof.cli.run import compare, estimate, labels, measure, plan, predict, probe, report, run, slices, threshold
from shiftproof.cli.store import check, cite, list_, merge, models, publish
from shiftproof.cli.train import recipes, train
from shiftproof.cli.write import corrupt, perturb
from shiftproof.errors import MissingRuns, PluginWarning, ShiftproofError, StoreWarning
from shiftproof.files import printable
from shiftproof.registry import missing_extra

REFUSALS = (
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE),
    *(errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR),
)
"""What a machine says where there is no permission or no room, or a name leads nowhere: no traceback would explain it."""

GARBAGE = 10_000
"""Objects after which Python looks for cycles among the youngest."""


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(sp.__version__, message="shiftproof %(version)s")
def cli() -> None:
    """Measure how a vision model holds up outside its test set.

    Start with `shiftproof demo`, then `shiftproof run MODEL DATASET`.
    """


def main() -> None:
    """The entry point: mistakes of the user are one line and exit code 1, bugs keep their traceback."""
    _settle_streams()
    _settle_warnings()
    # searching for cycles takes a tenth of a small report: not after every 700 objects, and not at the end, where what
    # is left goes with the process
    gc.set_threshold(GARBAGE)
    atexit.register(gc.freeze)
    try:
        cli()
    except MissingRuns as error:
        told = error.for_command()
    except ShiftproofError as error:
        told = str(error)
    except ModuleNotFoundError as missing:
        needed = missing_extra("this command", missing)
        if needed is missing:
            raise
        told = str(needed)
    except OSError as error:
        if error.errno not in REFUSALS:
            raise
        told = ": ".join(map(str, filter(None, (error.strerror, error.filename))))
    else:
        return
    print(f"shiftproof: {printable(told)}", file=sys.stderr)  # noqa: T201
    _drop_unprinted()
    sys.exit(1)


def _drop_unprinted() -> None:
    """What cannot be printed is not tried again at the end, where Python would answer with an exit code of its own."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _settle_streams() -> None:
    """Every line can be printed: in UTF-8 whatever the locale says, and to nowhere where a stream is closed."""
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("r" if name == "stdin" else "w"))  # noqa: SIM115 for good
        elif name != "stdin" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _settle_warnings() -> None:
    """What is damaged in a store, or wrong with a plug-in, is said in a line, as other warnings of a command are."""
    show = warnings.showwarning

    def said(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, (StoreWarning, PluginWarning)):
            print(f"warning: {printable(str(message))}", file=sys.stderr)  # noqa: T201
        else:
            show(message, category, *where, **more)

    warnings.showwarning = said
    warnings.simplefilter("always", StoreWarning)


@command(
    options=lambda: (sp.options.Quiet, sp.options.Verbosity),
    output=Output("a folder for the report and the predictions", "shiftproof-demo"),
)
def demo(asked: Asked) -> None:
    """Run the whole bench on real networks and real photos; the last line is the report's path.

    Example: shiftproof demo -o try
    """
    with interruptible(Bar(quiet=asked[sp.options.Quiet].quiet)) as progress:
        made = sp.run_demo(Path(asked.output), progress=progress, tell=remark)
    if not asked.json:
        from shiftproof.cli.results import say_results

        say_results(made.results, verbose=asked[sp.options.Verbosity].verbose)
    remark(f"to review a dozen of the photos in a browser: shiftproof review {made.review.folder} --invite me")
    emit(made.results.to_json(indent=1) if asked.json else None, as_json=asked.json, path=made.report)


@click.command(name="help")
@click.argument("topic", required=False)
@click.pass_context
def help_(context: click.Context, topic: str | None) -> None:
    """Show the options of a study, or the whole help of a command.

    Example: shiftproof help corruption
    """
    if topic is None:
        click.echo(cli.get_help(context.find_root()))
    elif topic in cli.commands:
        with click.Context(cli.commands[topic], info_name=topic, parent=context.find_root()) as inner:
            inner.meta[ALL] = True
            click.echo(inner.get_help())
    else:
        kind = catalog.STUDIES.load(topic)
        options = kind.load_options()
        told = Command(
            topic,
            help=f"{kind.title}: {kind.question}\n\nRun it with: shiftproof run MODEL DATASET --studies {topic}",
            kinds=lambda: (options,) if options else (),
            add_help_option=False,
            options_metavar=None,
        )
        with click.Context(
            told, info_name=f"run MODEL DATASET --studies {topic} [OPTIONS]", parent=context.find_root()
        ) as inner:
            inner.meta[ALL] = True
            click.echo(inner.get_help())


for one in (
    *(run, plan, predict, measure, report, compare, gate, guard, watch, estimate, labels, slices, probe, threshold),
    *(check, cite, corrupt, curate, demo, help_, list_, merge, models, perturb, publish, recipes, review, train, verdicts),
):
    cli.add_command(one)
