"""Small linear systems, of floats or of nodes of a trace.

factors        L D Lᵀ of symmetric positive definite matrices; L U
reflections    square systems, null spaces, least squares
by_rows        reflections of long matrices, as operations on rows
reflected      pseudo-inverses of long matrices, as reflections
products       products of which only some entries are needed
"""

from coupler.linear.by_rows import null_space_by_rows
from coupler.linear.factors import Cholesky, factors_by_rows
from coupler.linear.products import known_value, product_where, symmetric_product
from coupler.linear.reflected import Reflected
from coupler.linear.reflections import fitted, least_squares, null_space, solve

__all__ = [
    "Cholesky",
    "Reflected",
    "factors_by_rows",
    "fitted",
    "known_value",
    "least_squares",
    "null_space",
    "null_space_by_rows",
    "product_where",
    "solve",
    "symmetric_product",
]
