"""A representation as a cloud of points, and what comparing it with others needs, computed once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from waterjar.diagnose.calling import worked_out
from waterjar.diagnose.magnitude import in_range
from waterjar.diagnose.representation import Representation
from waterjar.diagnose.result import Result
from waterjar.errors import WaterjarError


@dataclass(frozen=True)
class Cloud:
    """Features (sample, unit) of one snapshot and repeat, to be compared with those of the same samples elsewhere."""

    features: NDArray[np.floating]
    missing: Result | None

    @classmethod
    def of(cls, points: Points) -> Cloud:
        """As it is if it is one already, so that comparisons share what they need."""
        if isinstance(points, Cloud):
            return points
        shot = Representation.of(points)
        return cls(shot.features, shot.missing)

    @worked_out
    def centred(self) -> NDArray[np.float64]:
        """Features minus their mean over samples; exactly 0 for a unit that never changes, however large it is.

        In units of a power of two if they are extreme (see `in_range`): no comparison depends on the scale of a cloud.
        """
        wide = in_range(self.features)[0]
        apart: NDArray[np.float64] = wide - wide[0]
        if self.features.dtype == np.float64:  # what differs may be extreme where features are not
            apart, _ = in_range(apart)
        apart -= apart.mean(axis=0)
        return apart

    @worked_out
    def squares(self) -> NDArray[np.float64]:
        """Squared norm of every centred sample: the diagonal of the Gram matrix."""
        squares: NDArray[np.float64] = np.einsum("su,su->s", self.centred, self.centred)
        return squares

    @worked_out
    def own_square(self) -> float:
        """||A^T A||_F^2 of the centred features: asked for in every comparison."""
        return inner_square(self, self)

    @property
    def total(self) -> float:
        """Squared Frobenius norm of the centred features: n times the total variance."""
        return float(self.squares.sum())

    @property
    def is_wide(self) -> bool:
        """Whether there are more units than samples: then Gram matrices of samples are the cheaper form."""
        samples, units = self.features.shape
        return bool(samples < units)

    @worked_out
    def gram(self) -> NDArray[np.float64]:
        """Inner products of centred samples (sample, sample); asked for only if there are more units than samples."""
        return self.centred @ self.centred.T

    @worked_out
    def factor(self) -> NDArray[np.float64]:
        """R (sample, sample) of centred = R^T Q^T: stands for the cloud, up to a rotation, in fewer dimensions."""
        (r,) = linalg.qr(self.centred.T, mode="r", check_finite=False)
        return r[: len(self.features)]  # type: ignore[no-any-return]


Points = ArrayLike | Cloud
"""What array functions take: (sample, unit), or a Cloud, which spares computing things twice."""


def same_samples(a: Points, b: Points) -> tuple[Cloud, Cloud]:
    """Both as clouds; an error if they cannot be of the same samples."""
    one, two = Cloud.of(a), Cloud.of(b)
    if len(one.features) != len(two.features):
        raise WaterjarError(
            f"representations of {len(one.features)} and {len(two.features)} samples: expected the same samples"
        )
    return one, two


def inner_square(a: Cloud, b: Cloud) -> float:
    """||A^T B||_F^2 = tr(K L) of centred features, by the cheaper of the two."""
    if a.is_wide and b.is_wide:
        return float(np.vdot(a.gram, b.gram))
    cross = a.centred.T @ b.centred
    return float(np.vdot(cross, cross))
