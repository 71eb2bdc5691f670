"""Unique names for the parts of a compiled model in MJCF."""

from __future__ import annotations

from itertools import count

from coupler.io.mjcf.compilation import Compiled
from coupler.io.taken_names import TakenNames
from coupler.model.tree import GROUND

EQUALITIES = ("connect", "weld", "joint", "tendon", "flex", "flexvert", "flexstrain", "distance")  # MuJoCo's types


class PartNames:
    """Names of a model's bodies, joints, sites and equalities: those of the file, wherever they are free.

    Attributes:
        bodies, joints, sites, equalities: names by MuJoCo's numbers; body 0 is the ground.
        taken_frames: the names of bodies and frames that are taken.
        taken_joints: the names of joints, loops and couplings that are taken.
        renamed: new names of the parts that could not keep the name in the file.
    """

    def __init__(self, model: Compiled) -> None:
        self.taken_frames, self.taken_joints, self.renamed = TakenNames([GROUND]), TakenNames(), dict[str, str]()
        bodies = [model.names["body"][i] for i in range(1, model.nbody)]
        sites = [model.names["site"][i] for i in range(model.nsite)]
        joints = [model.names["jnt"][i] for i in range(model.njnt)]
        equalities = [model.names["equality"][i] for i in range(model.neq)]
        bodies, sites = self._kept("body", bodies, self.taken_frames), self._kept("site", sites, self.taken_frames)
        joints, equalities = (
            self._kept("joint", joints, self.taken_joints),
            self._kept("equality", equalities, self.taken_joints),
        )
        # Names of the file come before any that are made up.
        self.bodies = [GROUND, *(n or self.taken_frames.numbered(f"body_{i}") for i, n in enumerate(bodies, 1))]
        on = [self.bodies[i] if i else "world" for i in model.site_bodyid]
        self.sites = [n or self.taken_frames.numbered(f"{on[i]}_site") for i, n in enumerate(sites)]
        on = [self.bodies[i] for i in model.jnt_bodyid]
        self.joints = [n or self.taken_joints.numbered(f"{on[i]}_joint") for i, n in enumerate(joints)]
        kinds = [EQUALITIES[kind].replace("joint", "coupling") for kind in model.eq_type]
        seen = {kind: count(1) for kind in kinds}
        numbered = [f"{kind}_{next(seen[kind])}" for kind in kinds]
        self.equalities = [n or self.taken_joints.numbered(numbered[i]) for i, n in enumerate(equalities)]

    def _kept(self, what: str, names: list[str], taken: TakenNames) -> list[str]:
        """Names of the file; one that is taken gets a suffix."""
        kept = []
        for name in names:
            unique = taken.numbered(f"{name}_{what}") if name in taken else name
            if unique != name:
                self.renamed[f"{what} {name!r}"] = unique
            kept.append(unique)
            if unique:
                taken.add(unique)
        return kept
