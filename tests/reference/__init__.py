"""Steps with contact in NumPy, with whole matrices: what compiled steps are compared with.

They share the laws with the compiled step, but not how contacts are found to act, nor the solver.
"""
