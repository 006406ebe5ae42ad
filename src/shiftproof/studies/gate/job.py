"""What a call of the gate asks for: what was given, and for the rest what a file of rules says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shiftproof.errors import BadInput
from shiftproof.studies.gate.baseline import Baseline
from shiftproof.studies.gate.outcome import Gate
from shiftproof.studies.gate.rules import FILE, GateRule, Policy, RuleFile, read_rules, typed_rules


@dataclass(frozen=True)
class GateJob:
    """A model, a dataset and the rules that they are held to."""

    rules: Sequence[GateRule]
    model: Any
    dataset: Any
    against: Any
    undecided: Policy | None
    store: Any
    cluster: str | None


def settled(
    rules: str | Path | Sequence[GateRule] | None, typed: Mapping[str, Any], given: Mapping[str, Any], *, writing: bool
) -> GateJob:
    """The job; BadInput where it is not clear which model, which images or which rules."""
    own = typed_rules(**{**typed, **{name: _names(typed[name]) for name in ("metrics", "slices", "conditions")}})
    file = RuleFile()
    if isinstance(rules, (str, Path)):
        file = read_rules(rules)
    elif rules is None and Path(FILE).is_file():
        file = read_rules(FILE)
    elif rules is not None:
        own = [*rules, *own]
    chosen = {name: value if value is not None else getattr(file, name) for name, value in given.items()}
    for name in ("model", "dataset"):
        if chosen[name] is None:
            raise BadInput(f"which {name}? name it, as in shiftproof gate MODEL DATASET, or set {name} in {FILE}")
    held = own or list(file.rules)
    if writing:
        if given["against"] is not None:
            raise BadInput("a baseline is written or compared with: leave out --against, or --write-baseline")
        chosen["against"] = None
    elif not held:
        raise BadInput(f"there is no rule: give --margin 1 with --against, or --least 80, or write rules into {FILE}")
    elif chosen["against"] is None and (unheld := next((rule for rule in held if rule.margin is not None), None)):
        raise BadInput(
            f"a margin of {unheld.metric} is held against a baseline: name one with --against (a model, a stored one or a "
            f"file of --write-baseline) or as against in {FILE}, or give --least"
        )
    chosen["store"] = "runs" if chosen["store"] is None else chosen["store"]
    return GateJob(rules=held, cluster=file.cluster, **chosen)


def _names(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def written(baseline: Baseline, path: str | Path) -> Gate:
    """The baseline as a file, and what is told of it."""
    baseline.save(path)
    return Gate(
        verdict="pass",
        model=baseline.model,
        dataset=baseline.dataset,
        against=None,
        images=len(baseline.ids),
        compared=0,
        checks=(),
        written=str(path),
        made=baseline.made,
    )
