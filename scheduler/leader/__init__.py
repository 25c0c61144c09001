"""The leader: the loop read → plan → one transaction → apply, its take-over and its standbys."""

from dueline.scheduler.leader.scheduler import Scheduler
from dueline.scheduler.leader.settings import SchedulerSettings

__all__ = ["Scheduler", "SchedulerSettings"]
