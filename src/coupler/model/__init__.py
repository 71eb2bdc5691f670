"""What a robot is made of: bodies, joints, loops, springs and dampers, and how bodies make clusters."""

from coupler.model.bodies import Body
from coupler.model.builder import RobotBuilder
from coupler.model.clusters import Cluster, ClusterTree, find_clusters, joints_of_loop
from coupler.model.elements import PointElement
from coupler.model.errors import ModelError
from coupler.model.joint import Joint
from coupler.model.joints import (
    Continuous,
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from coupler.model.loops import Coupling, LoopJoint, Rod
from coupler.model.robot import Robot

__all__ = [
    "Body",
    "Cluster",
    "ClusterTree",
    "Continuous",
    "Coupling",
    "Cylindrical",
    "Fixed",
    "Free",
    "Helical",
    "Joint",
    "LoopJoint",
    "ModelError",
    "Planar",
    "PointElement",
    "Prismatic",
    "Revolute",
    "Robot",
    "RobotBuilder",
    "Rod",
    "Spherical",
    "Universal",
    "find_clusters",
    "joints_of_loop",
]
