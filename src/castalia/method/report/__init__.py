"""The report of a run: its data as plain records, and one self-contained page made from them."""

from castalia.method.report.page import render, write
from castalia.method.report.records import Contender, RunReport

__all__ = ["Contender", "RunReport", "render", "write"]
