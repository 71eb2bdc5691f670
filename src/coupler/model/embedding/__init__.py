"""Loops embedded in coordinates [001, §II-B]: from constraints on joints to the freedoms that they leave.

constraints            what a constraint is, once names are resolved, and its equations φ, K, k
scene, newton          all constraints of a robot in a program, and Newton's method
closure, solutions     the same in numbers; solved couplings γ
choice, assembly       which rows count and which joints are independent; closed configurations to judge by
idle                   freedoms that nothing else takes part in
motion                 integrate and difference for all joints
coordinates, states    between q, v and the positions and velocities of all joints; closing, packing, drawing
"""
