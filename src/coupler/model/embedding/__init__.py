"""Loops embedded in coordinates [001, §II-B]: from constraints on joints to the freedoms that they leave.

constraints                  what couples the joints of a cluster: loop_constraints (frames held together) and
                             relation_constraints (functions of positions), each with its equations φ, K, k
constraint_steps, kernels    all constraints of a robot as steps of a program
newton                       Newton's method as a program
closure, gaps                φ, K, k in numbers; how far loops are from closed, in words
solutions                    solved couplings γ
choice, assembly             which rows count and which joints are independent; the closed configurations that decide it
rounding, rounding_limits    rows that follow from others up to the rounding of a file's numbers; how far these may miss
idle                         freedoms in which no other body takes part
motion                       integrate and difference for all joints
coordinates                  between q, v and the positions and velocities of all joints
closed_states, states        closing configurations and refusing open ones; drawing and packing them
"""
