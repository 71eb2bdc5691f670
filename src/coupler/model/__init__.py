"""What a robot is made of: bodies, joints, loops, springs and dampers, and how bodies make clusters."""

from coupler.model.actuators import Actuator
from coupler.model.bodies import Body
from coupler.model.builder import RobotBuilder
from coupler.model.closed_forms import ClosedForm
from coupler.model.closed_forms.choice import ClosureChoice
from coupler.model.clusters import Cluster, ClusterTree, find_clusters, joints_of_loop
from coupler.model.elements import PointElement
from coupler.model.errors import ModelError, ModelWarning
from coupler.model.height_fields import HeightField
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
from coupler.model.loops import Coupling, Held, LoopJoint, LoopKind, Rod
from coupler.model.real_inertias import nearest_inertia
from coupler.model.robot import Robot
from coupler.model.shapes import (
    Box,
    Capsule,
    ContactPair,
    Cylinder,
    Ellipsoid,
    Geometry,
    Hull,
    Mesh,
    Plane,
    Shape,
    Sphere,
)
from coupler.model.transmissions import Adhesion, Around, Cable, SliderCrank, Transmission, Wrench

__all__ = [
    "Actuator",
    "Adhesion",
    "Around",
    "Body",
    "Box",
    "Cable",
    "Capsule",
    "ClosedForm",
    "ClosureChoice",
    "Cluster",
    "ClusterTree",
    "ContactPair",
    "Continuous",
    "Coupling",
    "Cylinder",
    "Cylindrical",
    "Ellipsoid",
    "Fixed",
    "Free",
    "Geometry",
    "HeightField",
    "Held",
    "Helical",
    "Hull",
    "Joint",
    "LoopJoint",
    "LoopKind",
    "Mesh",
    "ModelError",
    "ModelWarning",
    "Planar",
    "Plane",
    "PointElement",
    "Prismatic",
    "Revolute",
    "Robot",
    "RobotBuilder",
    "Rod",
    "Shape",
    "SliderCrank",
    "Sphere",
    "Spherical",
    "Transmission",
    "Universal",
    "Wrench",
    "find_clusters",
    "joints_of_loop",
    "nearest_inertia",
]
