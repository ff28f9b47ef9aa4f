"""The pattern of the triplet (AD, PD, SFR_rel): each sign by an interval that is clear of 0."""

from __future__ import annotations

import math
from typing import NamedTuple

from waterjar.diagnose.rigidity.curves import ROUNDING
from waterjar.errors import WaterjarError

CLASSICAL = "classical_einstellung"
SHORTCUT = "shortcut_rigidity"
SLOW = "slow_adaptation"
BENIGN = "benign_transfer"
INCONCLUSIVE = "inconclusive"
BASELINE = "baseline"
"""Not a pattern: the cell that others are compared with."""
FLOOR = "bound_by_floor"
"""Not a pattern: with the shortcut masked neither side is above chance, so that SFR_rel says nothing of its own."""
FLOOR_UNKNOWN = "floor_unknown"
"""Not a pattern: so few images show neither that a masked accuracy is above chance nor that both are at the floor."""
UNLEARNED = "nobody_learned"
"""Not a pattern: neither side is above guessing, so that there is nothing to compare."""

PATTERNS = (CLASSICAL, SHORTCUT, SLOW, BENIGN, INCONCLUSIVE)


class Bounds(NamedTuple):
    """An interval of a mean; NaN where there is none."""

    low: float
    high: float
    resolution: float = 0.0
    """How far from the truth an interval WITHOUT width may be; one that has width needs no such guard.

    An epoch is known to one evaluation: seeds that all say -1 make an interval without width, and still the true
    delays may lie anywhere above -2 and below 0. Infinite: nothing is known of the spread, the interval bounds
    nothing."""

    @property
    def above(self) -> bool:
        """Clear of 0, and positive."""
        return self.low - self._blur > 0

    @property
    def below(self) -> bool:
        """Clear of 0, and negative."""
        return self.high + self._blur < 0

    def under(self, margin: float) -> bool:
        """Whether the upper bound lies below a margin."""
        return self.high + self._blur < margin

    @property
    def _blur(self) -> float:
        return self.resolution if self.flat else 0.0

    @property
    def flat(self) -> bool:
        """Whether the interval has no width but for rounding: all seeds gave the very same value."""
        return self.high - self.low <= ROUNDING

    @property
    def known(self) -> bool:
        """Whether there is an interval, and it bounds something."""
        return not (math.isnan(self.low) or math.isnan(self.high) or math.isinf(self._blur))


def rigidity_pattern(ad: Bounds, pd: Bounds, sfr_rel: Bounds, *, margin: float = 0.05) -> str:
    """Name what the three intervals show together.

    | pattern | AD | PD | SFR_rel |
    |---|---|---|---|
    | classical_einstellung | > 0 | > 0 | > 0 |
    | shortcut_rigidity | < 0 | < 0 | > 0 |
    | slow_adaptation | > 0 | > 0 | not > 0 |
    | benign_transfer | | upper bound < margin | upper bound < margin |
    | inconclusive | | otherwise | |

    The first that fits. Gu & Shi, "The Einstellung Rigidity Index"; an interval that is missing fits nothing.

    >>> rigidity_pattern(Bounds(-9, -5), Bounds(-0.2, -0.1), Bounds(0.1, 0.2))
    'shortcut_rigidity'
    """
    if isinstance(margin, bool) or not isinstance(margin, int | float) or not margin >= 0:
        raise WaterjarError(f"margin={margin!r}: expected a difference of accuracies from 0 on")
    slower = ad.above and pd.above
    if slower and sfr_rel.above:
        return CLASSICAL
    if ad.below and pd.below and sfr_rel.above:
        return SHORTCUT
    if slower and sfr_rel.known:
        return SLOW
    if pd.under(margin) and sfr_rel.under(margin):
        return BENIGN
    return INCONCLUSIVE
