"""Manifold capacity and geometry of labelled points (GLUE), and capacity by simulation.

>>> import numpy as np
>>> found = manifold_geometry(np.eye(4), [0, 0, 1, 1], n_t=50)
>>> sorted(found)[:3]
['axis_alignment', 'axis_alignment_inner', 'axis_alignment_inner_se']
"""

from waterjar.diagnose.geometry.capacity import SimulatedCapacity, simulated_capacity
from waterjar.diagnose.geometry.cone import Manifolds, Projections, manifolds, project
from waterjar.diagnose.geometry.manifold import Geometry, geometry_of, manifold_geometry
from waterjar.diagnose.geometry.measure import measure
from waterjar.diagnose.geometry.metrics import FAMILY

__all__ = [
    "FAMILY",
    "Geometry",
    "Manifolds",
    "Projections",
    "SimulatedCapacity",
    "geometry_of",
    "manifold_geometry",
    "manifolds",
    "measure",
    "project",
    "simulated_capacity",
]
