"""Tolerances of the model: when a loop is closed, coordinates are regular, and a user's number is right.

Residuals of loops are in m or, for small angles, rad. Their tolerances form a ladder: Newton's method stops at what
rounding leaves, poses that the library computes are better than those that it accepts, and programs reject only what is
plainly open.
"""

CLOSED_BY_NEWTON = 1e-13  # Newton's method continues until all residuals are smaller: some hundred roundings of 1 m
SETTLED = 1e-8  # and until its last step is shorter, rad or m: the next one would be of the order of its square
MADE_CLOSED = 1e-12  # what closing a pose may leave of a residual before it counts as failed
CLOSED = 1e-10  # the residual up to which a configuration counts as closed
OPEN = 1e-5  # the residual from which a compiled program gives NaN: states of a simulation drift below it
RANK = 1e-7  # singular values of K below this part of the largest count as zero
SINGULAR = 1e-8  # coordinates are singular where K_D's smallest singular value is below this part of K's largest
STEEP = OPEN * 1e-10  # dependent velocities count as a gap of this part of them: 1e10 times v is singular
GIVEN = 1e-6  # how far a dependent position or velocity, or the length of a quaternion, may be from the right one
STRIDE = 0.5  # rad or m: the longest step of a joint in a round of closing loops; longer ones leave the nearest branch
ROUNDED = 1e-6  # relative: how far inertias and rotations may be from possible ones, as files round their numbers
TINY = 1e-300  # keeps a quotient or logarithm of zero finite, and changes no other
WITHIN_LIMITS = 1e-9  # rad or m: how far a random or assembled pose may be beyond a joint's limit
