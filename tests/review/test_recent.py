"""What is found out again only now and then."""

from __future__ import annotations

import pytest

from shiftproof.review.recent import Recent


def test_a_value_is_found_anew_once_it_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    now, found = [0.0], []
    monkeypatch.setattr("shiftproof.review.recent.time.monotonic", lambda: now[0])

    def find(key: str) -> int:
        found.append(key)
        return len(found)

    counts = Recent(find, 30.0)
    assert [counts.of("a"), counts.of("a"), counts.of("b")] == [1, 1, 2]
    now[0] = 29.0
    assert counts.of("a") == 1
    counts.note("b", 70)
    now[0] = 31.0
    assert [counts.of("a"), counts.of("b")] == [3, 70]
    assert found == ["a", "b", "a"]
