"""Small linear systems, of floats or of nodes of a trace.

factors        L D Lᵀ of symmetric positive definite matrices; L U
reflections    square systems, null spaces, least squares
products       products of which only some entries are needed
"""

from coupler.linear.factors import Cholesky, factors_by_rows
from coupler.linear.products import known_value, product_where, symmetric_product
from coupler.linear.reflections import least_squares, null_space, solve

__all__ = [
    "Cholesky",
    "factors_by_rows",
    "known_value",
    "least_squares",
    "null_space",
    "product_where",
    "solve",
    "symmetric_product",
]
