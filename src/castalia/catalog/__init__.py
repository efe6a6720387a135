"""The catalogue: one record per system, pure data, importable without torch."""

from castalia.catalog.course import CourseRow, course_table, load_course
from castalia.catalog.records import System
from castalia.catalog.systems import SYSTEMS, find, matches, models_table, system, system_for

__all__ = [
    "SYSTEMS",
    "CourseRow",
    "System",
    "course_table",
    "find",
    "load_course",
    "matches",
    "models_table",
    "system",
    "system_for",
]
