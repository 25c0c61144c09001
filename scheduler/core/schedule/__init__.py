"""Schedules: when a job is due. Pure arithmetic over integers; see docs/schedules.md for the rules."""

from dueline.scheduler.core.schedule.clock_change import ClockChange
from dueline.scheduler.core.schedule.clock_jump import Resumption, resume
from dueline.scheduler.core.schedule.compile import compile_schedule
from dueline.scheduler.core.schedule.errors import ScheduleError
from dueline.scheduler.core.schedule.filtered import Exclusion
from dueline.scheduler.core.schedule.preview import PreviewRow, preview
from dueline.scheduler.core.schedule.schedule import Schedule
from dueline.scheduler.core.schedule.spec import EntrySpec, ScheduleSpec, canonical_json
from dueline.scheduler.core.schedule.zone_file import tzdata_version

__all__ = [
    "ClockChange",
    "EntrySpec",
    "Exclusion",
    "PreviewRow",
    "Resumption",
    "Schedule",
    "ScheduleError",
    "ScheduleSpec",
    "canonical_json",
    "compile_schedule",
    "preview",
    "resume",
    "tzdata_version",
]
