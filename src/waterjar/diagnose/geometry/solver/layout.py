"""How the kernels see points, and the rows of the arrays that they work in.

Three ways to see the same unit vectors u_i. GRAM reads products from the Gram matrix, and the dimension disappears.
ROWS takes products of the u_i when needed: for a single problem, or for too many points. EXACT orthogonalises the
members instead of factoring their Gram matrix, which squares the condition: for what the others cannot resolve.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

GRAM, ROWS, EXACT = 0, 1, 2
DEPENDENT = 1e-13  # squared distance of u_i from the span of the members below which it is not added
DEPENDENT_EXACT = 1e-20  # the same, where distances are not differences of squares

# Rows and columns are numbers of numpy's: of a literal, numba looks up anew for each value how to index an array.
# Rows of `v` (.., member).
C, COLUMN, SIGN, BETA, Z, INVERSE = np.arange(6)
VECTORS = 6
# C: R'^-1 h, where R'R = factor'factor is the members' Gram matrix and h_i = u_i . t
# COLUMN: of a member to be
# SIGN: y
# BETA: feasible coefficients
# Z: coefficients without the constraint
# INVERSE: 1 / diagonal of the factor: divisions take most of the time in small problems
# Rows of `ids` (.., member or point to be one).
MEMBERS, QUEUE = np.arange(2)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Coarse = NDArray[np.float32]
Flags = NDArray[np.bool_]
