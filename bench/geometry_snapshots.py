"""Manifold geometry on 2,000 snapshots of trained ReLU networks: how many have values, and whether they are right.

Small networks learn to tell P = 2, 10 or 20 classes apart, with learning rates from too small to too large, widths from
4 to 256, one to three hidden layers, from before the first step until classes collapse; some units are dead, by chance
or on purpose. A snapshot is one hidden layer at one moment: 50 float32 points a class, as a run records them. Layers
that are dead as a whole or have overflowed have no geometry, and are counted apart.

Printed: the share of snapshots with all values among those where t is outside the cone, how many of these lack them
because other anchors are as good (no solver could give them a value), and how many draws were left out. Then five draws
each of 200 snapshots, the two with the largest coefficients among them, are solved again in exact arithmetic (integers
of any length) and without any code of the solver: from the support that is to be judged, points come and go until the
KKT conditions hold to 1e-25, and what `project` found must be that projection.

    python bench/geometry_snapshots.py [--images cifar.npz] [--snapshots 2000] [--checked 200]
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count, pairwise
from typing import Any, NamedTuple

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is imported

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from waterjar.diagnose.geometry import manifolds, project
from waterjar.diagnose.geometry.draws import dichotomies, directions
from waterjar.diagnose.geometry.estimates import SCALARS
from waterjar.diagnose.geometry.manifold import FEW, geometry_of

Floats = NDArray[np.float64]
CLASSES, SIZE, DRAWS = (2, 10, 20), 50, 100
MOMENTS = (0, 10, 40, 150, 600)
BITS = 200  # after the point: of points, t and coefficients
PROVEN, RIGHT = 1e-25, 1e-9


class Snapshot(NamedTuple):
    """One hidden layer at one moment."""

    name: str
    classes: int
    points: Floats
    labels: NDArray[np.int64]


def pictures(classes: int, rng: np.random.Generator, images: str | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs (sample, pixel) and classes, sorted: images of a file (train_x, train_fine) at 8 x 8, or Gaussians."""
    labels = np.repeat(np.arange(classes), SIZE)
    if images is None:
        x = rng.standard_normal((classes, 60))[labels] + rng.standard_normal((len(labels), 60))
    else:
        with np.load(images, allow_pickle=False) as file:
            pixels, fine = file["train_x"], file["train_fine"]
        chosen = rng.choice(np.unique(fine), classes, replace=False)
        rows = [rng.choice(np.flatnonzero(fine == c), SIZE, replace=False) for c in chosen]
        x = pixels[np.concatenate(rows)].astype(np.float64)
        x = x.reshape(len(x), 8, 4, 8, 4, 3).mean(axis=(2, 4)).reshape(len(x), -1)
        x = (x - x.mean()) / x.std()
    return torch.tensor(x, dtype=torch.float32), torch.tensor(labels)


def snapshots(seed: int, images: str | None) -> Iterator[Snapshot]:
    """The hidden layers of one network as it learns."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    classes = CLASSES[seed % 3]
    width = int(rng.choice([4, 8, 16, 32, 64, 128, 256]))
    depth = int(rng.integers(1, 4))
    rate = float(10.0 ** rng.uniform(-3, 0.3))
    dead = float(rng.choice([0.0, 0.0, 0.3, 0.7]))
    x, labels = pictures(classes, rng, images if seed % 2 else None)
    layers = [torch.nn.Linear(a, b) for a, b in pairwise([x.shape[1], *[width] * depth, classes])]
    for layer in layers[:-1]:
        with torch.no_grad():
            layer.bias[torch.tensor(rng.random(width) < dead)] = -1e3
    optimiser = torch.optim.SGD([p for layer in layers for p in layer.parameters()], rate, momentum=0.9)
    name = f"seed {seed} P={classes} width={width} depth={depth} rate={rate:.3g} dead={dead:g}"
    for step in range(MOMENTS[-1] + 1):
        hidden = [x]
        for layer in layers[:-1]:
            hidden.append(torch.relu(layer(hidden[-1])))
        loss = torch.nn.functional.cross_entropy(layers[-1](hidden[-1]), labels)
        if step in MOMENTS:
            for number, layer_output in enumerate(hidden[1:]):
                points = layer_output.detach().numpy().astype(np.float64)
                yield Snapshot(f"{name} step={step} layer={number}", classes, points, labels.numpy())
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()


# The check. A number is an integer times a power of two: sums and products have no error.
Integers = NDArray[Any]


def integers(values: Floats) -> Integers:
    """Values * 2**BITS; all digits of float32 features and of normal numbers are there."""
    mantissas, exponents = np.frexp(values.ravel())
    pairs = zip((mantissas * 2.0**53).astype(np.int64).tolist(), (exponents + (BITS - 53)).tolist(), strict=True)
    return np.array([m << e if e >= 0 else m >> -e for m, e in pairs], object).reshape(values.shape)


def floats(values: Integers, bits: int) -> Floats:
    return np.array([math.ldexp(float(value), -bits) for value in values])


def least_squares(rows: Integers, near: Floats, t: Integers) -> tuple[Integers, Integers] | None:
    """Coefficients (BITS) of the rows and what is left of t (2 BITS): the augmented system, residuals without error."""
    q, r = np.linalg.qr(near.T)
    if np.abs(np.diag(r)).min(initial=1.0) < 1e-14:
        return None
    beta, rest = np.array([0] * len(rows), object), t << BITS
    for _ in range(60):
        lacking = (t << BITS) - rest - (beta @ rows if len(rows) else 0)
        f = floats(lacking, 2 * BITS)
        g = -floats(rows @ rest, 3 * BITS) if len(rows) else np.zeros(0)
        if max(np.abs(f).max(), np.abs(g).max(initial=0.0)) < 1e-32:
            return beta, rest
        h, along = solve_triangular(r, g, trans="T"), q.T @ f
        beta = beta + integers(solve_triangular(r, along - h))
        rest = rest + (integers(q @ h + f - q @ along) << BITS)
    return None


def exactly(signed: Floats, t: Floats, begin: NDArray[np.int64]) -> Floats | None:
    """The projection of t on the cone of the rows, proven; None where no proof was found. It begins with a support."""
    lengths = np.linalg.norm(signed, axis=1)
    alive = np.flatnonzero(lengths > 0)
    near = np.ldexp(signed[alive], -np.frexp(lengths[alive])[1][:, None])  # not rounded
    lengths = np.linalg.norm(near, axis=1)
    rows, target, size = integers(near), integers(t), float(np.linalg.norm(t))
    place = {point: row for row, point in enumerate(alive.tolist())}
    support = [place[point] for point in begin.tolist()]
    before = np.zeros(0)
    for _ in range(100):
        solved = least_squares(rows[support], near[support], target)
        if solved is None:
            return None
        z = floats(solved[0], BITS)
        if (z <= 0).any():  # those of the first support that turn negative go; later, the first that reaches zero does
            if len(before) != len(z):
                support, before = [i for i, value in zip(support, z, strict=True) if value > 0], np.zeros(0)
                continue
            share = [b / (b - value) if value <= 0 else math.inf for b, value in zip(before, z, strict=True)]
            first = int(np.argmin(share))
            before = np.delete(before + share[first] * (z - before), first)
            support = support[:first] + support[first + 1 :]
            continue
        g = floats(rows @ solved[1], 3 * BITS) / (lengths * size)
        if np.abs(g[support]).max(initial=0.0) <= PROVEN and g.max() <= PROVEN:
            return t - floats(solved[1], 2 * BITS)
        g[support] = -math.inf
        support, before = [*support, int(g.argmax())], np.append(z, 0.0)
    return None


def check(one: Snapshot, found: Any, counts: Counter[str]) -> float:
    """Five draws against the proof: how far p is off, as a share of |t|."""
    hardest = np.argsort(-found.size / found.scale)[:2].tolist()
    worst = 0.0
    for q in list(dict.fromkeys([*hardest, *range(5)]))[:5]:
        signed, support = found.y[q, one.labels, None] * one.points, np.flatnonzero(found.coefficients()[q])
        p = exactly(signed, found.t[q], support)
        if p is None:
            counts["not proven"] += 1
            print(f"{one.name}, draw {q}: no proof; coefficients up to {found.size[q] / found.scale[q]:.1e} |t|")
            continue
        off = float(np.linalg.norm(found.points()[q] - p) / found.scale[q])
        squares = abs(found.square[q] - p @ p) / found.scale[q] ** 2
        counts["proven"] += 1
        counts["proven, of these refined"] += bool(found.refined.size and not np.isnan(found.refined[q, 0]))
        if not max(off, squares) <= RIGHT:
            counts["wrong"] += 1
            print(f"{one.name}, draw {q}: p is off by {off:.1e} |t|, |p|^2 by {squares:.1e} |t|^2")
        worst = max(worst, off, squares)
    return worst


def summary(counts: Counter[str], snapshots: int, worst: float) -> float:
    """Print what was counted; the share with a value where t is outside the cone and anchors are unique."""
    print()
    for name, number in counts.items():
        print(f"{name}: {number}")
    outside, there = snapshots - counts["t inside the cone"], counts["t outside, dimension and radius are there"]
    unique = outside - counts["t outside, anchors not unique"]
    print(f"share with a value, of {outside} with t outside the cone: {there / max(outside, 1):.2%}")
    print(f"share with a value, of {unique} of these with unique anchors: {there / max(unique, 1):.2%}")
    print(f"share with a capacity, of all {snapshots}: {counts['capacity is there'] / snapshots:.2%}")
    print(f"p is off by at most {worst:.1e} |t|")
    return there / max(unique, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", help="an npz file with train_x (image, 32, 32, 3) and train_fine")
    parser.add_argument("--snapshots", type=int, default=2000)
    parser.add_argument("--checked", type=int, default=200)
    given = parser.parse_args()
    torch.set_num_threads(1)
    counts: Counter[str] = Counter()
    worst, every, seen = 0.0, max(1, given.snapshots // max(given.checked, 1)), 0
    for seed in count():
        for one in snapshots(seed, given.images):
            if not np.isfinite(one.points).all() or not one.points.any():
                counts["overflowed or dead layers, left aside"] += 1
                continue
            if seen == given.snapshots:
                break
            t = directions(DRAWS, one.points.shape[1], seen)
            found = project(
                manifolds(one.points, one.labels), t, dichotomies("uniform", DRAWS, one.classes, seen), margin=True,
                anchors=True, drop_rounding=True,
            )  # fmt: skip
            told = geometry_of(found, inactive="zero", paired=False)
            gone = {name: told[name].reason for name in SCALARS if told[name].is_missing}
            inside, free = ("inside_cone" in gone.values()), ("not_unique" in gone.values())
            counts[f"P = {one.classes}"] += 1
            counts["t inside the cone"] += inside
            whole = np.linalg.norm(found.t - found.points(), axis=1) <= RIGHT * found.scale
            counts["t inside the cone, and no unit dead"] += inside and bool(whole.mean() > FEW)
            counts["t outside, anchors not unique"] += free
            counts["capacity is there"] += "capacity" not in gone
            counts["t outside, all values are there"] += not gone
            counts["t outside, dimension and radius are there"] += "dimension" not in gone and "radius" not in gone
            counts["snapshots with directions left out as rounding"] += found.directions.dropped > 0
            counts["snapshots with directions that may be rounding"] += found.directions.doubtful > 0
            counts["draws refined"] += int((~np.isnan(found.refined[:, :1])).sum())
            counts["snapshots with refined draws"] += bool(found.refined.size)
            lost = float(told["left_out_draws"])
            counts["draws left out"] += 0 if math.isnan(lost) else int(lost)
            if free:
                share, alive = float(told["nonunique_share"]), np.count_nonzero(one.points.any(axis=0))
                active = np.count_nonzero(one.points, axis=1)
                print(
                    f"{one.name}: anchors are not unique in {share:.0%} of the draws; {alive} units alive, "
                    f"{active.mean():.1f} active a sample, in {np.mean(active <= 1):.0%} of the samples one or none",
                    flush=True,
                )
            elif gone and not inside:
                print(f"{one.name}: {', '.join(gone)}: {told[next(iter(gone))].note}", flush=True)
            if given.checked and seen % every == 0:
                counts["snapshots checked"] += 1
                worst = max(worst, check(one._replace(points=found.of.points), found, counts))
            seen += 1
            if seen % 100 == 0:
                print(f"{seen} snapshots of {seed + 1} networks, {time.process_time():.0f} s of CPU", flush=True)
        if seen == given.snapshots:
            break
    sys.exit(0 if summary(counts, given.snapshots, worst) >= 0.995 and not counts["wrong"] else 1)


if __name__ == "__main__":
    main()
