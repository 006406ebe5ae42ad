"""Datasets as files: corrupted and perturbed ones in the published layouts, and any dataset in common layouts.

Every image is decoded once for all its products, in parallel processes. A file that exists is complete, so a stopped run
resumes, and the output depends on nothing but the images and the parameters. `__init__.pyi` lists the public names; each is
imported when it is first used.
"""

from __future__ import annotations

from shiftproof.registry import names_in_stub

__getattr__, __dir__ = names_in_stub(__name__)
