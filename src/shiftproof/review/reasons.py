"""Why people rejected what they rejected, in the words of the screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from shiftproof.curation.project import Project
from shiftproof.review.verdicts import Verdict

WITH_ITS_GROUP = "went with its group"


def rejection_reason(project: Project, verdict: Verdict) -> str:
    """The reason most people gave against an item, or the answer most gave that speaks against it."""
    if verdict.closed_by_group:
        return WITH_ITS_GROUP
    against = {name: count for name, count in verdict.choices.items() if not project.screen.choice(name).keeps}
    return _most_often(verdict.reasons) or _most_often(against) or "too few for it"


def rejection_reasons(project: Project, verdicts: Mapping[str, Verdict]) -> dict[str, int]:
    """How many items went for each reason, the most frequent first."""
    rejected = [verdict for verdict in verdicts.values() if verdict.outcome == "rejected"]
    return _by_count(Counter(rejection_reason(project, verdict) for verdict in rejected))


def answers_given(project: Project, verdicts: Mapping[str, Verdict]) -> dict[str, int]:
    """How often each answer stands among all votes, in the words of the screen and in its order."""
    found: Counter[str] = Counter()
    for verdict in verdicts.values():
        found.update(verdict.choices)
    return {choice.title: found[choice.name] for choice in project.screen.choices if found[choice.name]}


def failure_modes(verdicts: Mapping[str, Verdict]) -> dict[str, int]:
    """In how many items more than half of the people saw each failure mode; nothing where none were asked for."""
    found = Counter(mode for verdict in verdicts.values() for mode in modes_of(verdict))
    return _by_count(found)


def modes_of(verdict: Verdict) -> list[str]:
    """The failure modes that more than half of the people saw."""
    return sorted(mode for mode, count in (verdict.tags or {}).items() if 2 * count > verdict.assigned)


def _most_often(counts: Mapping[str, int]) -> str | None:
    return min(counts, key=lambda name: (-counts[name], name), default=None)


def _by_count(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
