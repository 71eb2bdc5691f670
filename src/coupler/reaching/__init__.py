"""Configurations in which actuators are where they are asked to be. [003, §III]"""

from coupler.reaching.configuration import UnreachableError, configuration_of_actuators

__all__ = ["UnreachableError", "configuration_of_actuators"]
