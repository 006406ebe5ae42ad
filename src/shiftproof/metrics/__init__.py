"""Pure functions, arrays in and numbers out: metrics of predictions, and their confidence intervals.

`__init__.pyi` lists the public names; each is imported when it is first used, so that the table of metrics loads no numpy.
"""

from __future__ import annotations

from shiftproof.registry import names_in_stub

__getattr__, __dir__ = names_in_stub(__name__)
