"""Loops embedded in coordinates [001, §II-B]: from constraints on joints to the freedoms that they leave.

constraints            what a constraint is, once names are resolved
kernels, scene         what is computed for a joint, a constraint, a cluster, and for all of them
programs, closure      residuals, Jacobians, Newton's method, compiled; and in numbers
choice, assembly       which rows count and which joints are independent; closed configurations to judge by
idle                   freedoms that nothing else takes part in
motion                 integrate and difference for all joints
coordinates, states    between q, v and the positions and velocities of all joints; closing, packing, drawing
"""
