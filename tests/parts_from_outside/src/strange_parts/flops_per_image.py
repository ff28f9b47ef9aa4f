"""A metric: floating-point operations per training image."""

import math

from waterjar.diagnose.cost import ResourceUse
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result


@metric(
    "flops_per_image",
    family="cost",
    long_name="floating-point operations per training image",
    formula="sum of flops / sum of images",
    direction="lower",
    range=(0, math.inf),
    citation="strange-parts",
    needs=("resources/flops", "resources/images"),
    made_of=("flops",),
)
def flops_per_image(resources: ResourceUse) -> Result:
    """One number per run, the same for all its repeats."""
    flops, images = resources.total("flops"), resources.total("images")
    return resources.each(None if flops is None or not images else flops / images)
