"""Contacts of any two convex shapes, found by a fixed number of small kernels: on floats, or as steps of a program."""
