"""Options of the gate."""

from __future__ import annotations

from typing import ClassVar, Literal

from shiftproof.options import Bounds, Options, option


class GateOptions(Options):
    """What a model must reach to replace another, or where the rules stand."""

    TITLE: ClassVar[str] = "Gate"
    KEYWORD: ClassVar[str | None] = ""

    against: str | None = option(
        None, "What to compare with: a model, the name of a stored one, or a file that --write-baseline wrote.", common=True
    )
    margin: float | None = option(
        None,
        "Non-inferiority margin, how much worse than the baseline the model may be; in points where the metric is a share.",
        bounds=Bounds(0),
        common=True,
    )
    least: float | None = option(None, "Minimum value of the metric, in percent where it is a share.", common=True)
    most: float | None = option(None, "Maximum value, for metrics that are better the lower they are.", common=True)
    metric: tuple[str, ...] = option(
        (),
        "Metric of the rules, see docs/gate.md; repeatable.  [default: top1_accuracy]",
        repeatable=True,
        common=True,
    )
    slices: tuple[str, ...] = option(
        (),
        "Apply the limits to each group of images too: facts (metadata) such as site, one group as site=pier, class, or "
        "all; comma-separated.",
        common=True,
    )
    under: tuple[str, ...] = option(
        (), "Apply the limits under a corruption too, as fog:3; repeatable.", repeatable=True, common=True
    )
    rules: str | None = option(
        None, "File of rules.  [default: shiftproof.toml, if it exists and no limit is given]", is_path=True, common=True
    )
    undecided: Literal["pass", "fail"] | None = option(
        None, "Verdict where there are too few images to decide.  [default: undecided, exit code 4]", common=True
    )
    write_baseline: str | None = option(
        None, "Write the results of MODEL as a baseline file for git, without a comparison.", is_path=True, common=True
    )


class GateFiles(Options):
    """What the gate writes for machines."""

    TITLE: ClassVar[str] = "Output"

    junit: str | None = option(None, "Also write the checks as JUnit XML.", is_path=True, common=True)
    markdown: str | None = option(
        None,
        "Also write as Markdown: a comment for a pull request, with checks, worst slices and names of images.",
        is_path=True,
        common=True,
    )
