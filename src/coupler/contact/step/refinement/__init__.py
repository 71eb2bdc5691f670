"""Contact problems that sweeps have not solved, as steps of a program.

Sweeps converge soon where contacts are few and masses alike. They stall where heavy bodies stand on light ones, in
stacks, and where more points touch than are needed. What they leave unsolved goes on by one of three rules: newton.py,
which is exact near a solution; interior.py, which comes near one from anywhere unless its way folds (gauge.py finds the
scale for its second start); and path.py, which passes folds. Each linearises the laws in its own way to Δλ = p − Q Δw,
and solves one linear system an iteration (elimination.py). rules.py chooses the rule, and driver.py runs it.
"""

from coupler.contact.step.refinement.driver import Refinement

__all__ = ["Refinement"]
