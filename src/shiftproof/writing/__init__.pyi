from shiftproof.writing.published import write_corrupted as write_corrupted
from shiftproof.writing.published import write_perturbed as write_perturbed
from shiftproof.writing.writer import Written as Written
