"""Logs of runs: what they hold, how they are written while a run goes on, and the formats they are saved in."""

from coupler.simulate.logs.log import Log
from coupler.simulate.logs.writer import LogWriter

__all__ = ["Log", "LogWriter"]
