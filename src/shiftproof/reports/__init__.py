"""Reports: results as one self-contained HTML file, for people."""

from __future__ import annotations

from shiftproof.reports.build import build_report as build_report
from shiftproof.reports.build import save_report as save_report

__all__ = ["build_report", "save_report"]
