"""The report of a run: its data as plain records, and one self-contained page made from them."""

from castalia.method.report.report_page import render, write
from castalia.method.report.run_report import Contender, RunReport

__all__ = ["Contender", "RunReport", "render", "write"]
