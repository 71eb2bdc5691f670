"""Contact problems that sweeps have not solved, as steps of a program.

Sweeps end soon where contacts are few and masses alike. They stall where heavy things stand on light ones, in stacks,
and where more points touch than are needed. What they leave goes on by one of three rules: newton.py, which is exact
near a solution; interior.py, which comes near one from anywhere but where its way folds; and path.py, which passes
folds. All linearise the laws, each in its own way, to Δλ = p − Q Δw, and solve one linear system an iteration
(elimination.py). driver.py says who comes when.
"""

from coupler.contact.step.refinement.driver import Refinement

__all__ = ["Refinement"]
