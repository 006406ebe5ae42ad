"""The values everyone uses: few, frozen, checked when they are made so that nobody checks them again.

Conventions, stated once: images are RGB, boxes are ``xyxy`` in pixels, a higher OOD score is more out-of-distribution,
ties between classes break by the lower class index. Adapters at the edge convert; nothing inside does.

`__init__.pyi` lists the names; each is imported when it is first used.
"""

from __future__ import annotations

from shiftproof.registry import names_in_stub

__getattr__, __dir__ = names_in_stub(__name__)
