"""Configurations in which actuators are where they are asked to be. [003, §III]"""

from coupler.reaching.configuration import configuration_of_actuators
from coupler.reaching.continuation import UnreachableError

__all__ = ["UnreachableError", "configuration_of_actuators"]
