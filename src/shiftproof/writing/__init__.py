"""Datasets as files: corrupted and perturbed ones in the published layouts, and any dataset in common layouts.

Every image is decoded once for all its products, in parallel processes. A file that exists is complete, so a stopped run
resumes, and the output depends on nothing but the images and the parameters.
"""

from shiftproof.writing.published import write_corrupted, write_perturbed
from shiftproof.writing.writer import Written

__all__ = ["Written", "write_corrupted", "write_perturbed"]
