"""Sets of images as files: corrupted and perturbed ones in the layouts of the published ones, and crops.

Every image is decoded once for all that is made of it, in as many processes as it takes. A file that is there is whole, so
a run that was stopped goes on where it was, and what comes out depends on nothing but the images and the parameters.
"""

from shiftproof.writing.corrupted import write_corrupted
from shiftproof.writing.perturbed import write_perturbed
from shiftproof.writing.runs import Written

__all__ = ["Written", "write_corrupted", "write_perturbed"]
