"""Manifold geometry on ONE core, beside the solvers that public code uses for it: CPU time, the same t and y.

A line is one ratio: the CPU time of the peer over ours, for the same number of projections, snapshots or trials; rounds
of both alternate, and it is the median over rounds. Points are P classes of M in N dimensions, Gaussian around Gaussian
centres; ReLU features are the same ones, rectified.

projection: ours from the points on (lengths, Gram matrix, n_t = 100), to its KKT residual. cvxopt and jaxopt's OSQP
(float32, compiled, compilation left out) solve the primal problem, as public code does; scipy's nnls the dual one.
DAQP, the quickest exact solver that is public, has its model set up before the clock starts, and gets only t and bounds
anew. They get fewer of the same draws. snapshot: the projections and all measures; theirs are the definitions in
numpy, with pinv.
simulated capacity: a trial is a search for its critical dimension; HiGHS (scipy's linprog) does it by bisection, on the
same projections and dichotomies. Its answers must be ours.

--cold: the CPU seconds of the first calls of a machine, in a process with an empty cache of kernels: a snapshot with
all its standard errors, then simulated capacity. Nearly all of it is compilation; imports are not counted.

Peers that are not installed are passed over and said so.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is imported
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

if "--cold" in sys.argv:
    os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp()

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, nnls

from waterjar.diagnose.geometry import manifold_geometry, manifolds, project, simulated_capacity
from waterjar.diagnose.geometry.capacity import Normals, rotated
from waterjar.diagnose.geometry.draws import dichotomies, directions

Floats = NDArray[np.float64]
SIZES = ((2, 50, 128), (10, 50, 256), (20, 100, 512))
DRAWS = 100


class Case(NamedTuple):
    """Points and draws."""

    name: str
    points: Floats
    labels: NDArray[np.int64]
    t: Floats
    y: Floats

    @property
    def manifolds(self) -> int:
        return int(self.y.shape[1])


def made(manifolds_: int, size: int, dimension: int, relu: bool) -> Case:
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(manifolds_), size)
    points = rng.standard_normal((manifolds_, dimension))[labels] + rng.standard_normal((len(labels), dimension))
    name = f"P={manifolds_} M={size} N={dimension} {'ReLU' if relu else 'Gaussian'}"
    y = dichotomies("uniform", DRAWS, manifolds_, 0)
    return Case(name, np.maximum(points, 0) if relu else points, labels, directions(DRAWS, dimension, 0), y)


# Each peer: lam (draw, point) of the first draws. Setting up (compilation) happens before, and is not timed.
Peer = Callable[[int], Floats]


def by_scipy(case: Case) -> Peer:
    def run(draws: int) -> Floats:
        return np.stack([nnls((case.y[q, case.labels, None] * case.points).T, case.t[q])[0] for q in range(draws)])

    return run


def by_cvxopt(case: Case) -> Peer:
    cvxopt = importlib.import_module("cvxopt")
    cvxopt.solvers.options["show_progress"] = False
    n = case.points.shape[1]
    identity, zero = cvxopt.matrix(np.eye(n)), cvxopt.matrix(np.zeros(len(case.points)))

    def run(draws: int) -> Floats:
        found = []
        for q in range(draws):
            signed = cvxopt.matrix(case.y[q, case.labels, None] * case.points)
            found.append(np.array(cvxopt.solvers.qp(identity, cvxopt.matrix(-case.t[q]), signed, zero)["z"]).ravel())
        return np.stack(found)

    return run


def by_jaxopt(case: Case) -> Peer:
    jax, jaxopt = importlib.import_module("jax"), importlib.import_module("jaxopt")
    jnp = jax.numpy
    points, identity = jnp.asarray(case.points, jnp.float32), jnp.eye(case.points.shape[1], dtype=jnp.float32)
    zero = jnp.zeros(len(case.points), jnp.float32)
    solver = jaxopt.OSQP()

    @jax.jit  # type: ignore[untyped-decorator]
    def one(t: Any, y: Any) -> Any:
        signed = y[case.labels, None] * points
        return solver.run(params_obj=(identity, -t), params_ineq=(signed, zero)).params.dual_ineq

    t, y = jnp.asarray(case.t, jnp.float32), jnp.asarray(case.y, jnp.float32)

    def run(draws: int) -> Floats:
        return np.stack([np.asarray(one(t[q], y[q]), np.float64) for q in range(draws)])

    run(1)
    return run


def by_daqp(case: Case) -> Peer:
    model = importlib.import_module("daqp").Model()
    positive = case.y[:, case.labels] > 0  # y x . r <= 0 is a bound from above or below: the points stay as they are
    upper, lower = np.where(positive, 0.0, 1e30), np.where(positive, -1e30, 0.0)
    nothing = np.zeros(len(case.points), np.int32)  # no start from the draw before, as for all others
    model.setup(np.eye(case.points.shape[1]), -case.t[0], case.points, upper[0], lower[0])

    def run(draws: int) -> Floats:
        found = []
        for q in range(draws):
            model.update(f=-case.t[q], bupper=upper[q], blower=lower[q], sense=nothing)
            found.append(np.abs(model.solve()[3]["lam"]))
        return np.stack(found)

    return run


PEERS: dict[str, Callable[[Case], Peer]] = {
    "DAQP": by_daqp,
    "scipy nnls": by_scipy,
    "cvxopt": by_cvxopt,
    "jaxopt OSQP": by_jaxopt,
}
SNAPSHOT_FLOORS = {(2, "jaxopt OSQP"): 300.0, (2, "cvxopt"): 170.0, (10, "jaxopt OSQP"): 1500.0}
COLD_CEILING = 25.0
FLOORS = {"DAQP": 7.0, "scipy nnls": 36.0, "cvxopt": 120.0, "jaxopt OSQP": 500.0}
"""0.9 of what the code before the checks of its edges read in the same run: against nnls 40 to 45, by machine."""


def measures(case: Case, lam: Floats) -> float:
    """The definitions in numpy, as one would write them down; the radius, so that nothing is left out."""
    draws = len(lam)
    by_manifold = lam.reshape(draws, case.manifolds, -1)
    weights = by_manifold / np.maximum(by_manifold.sum(axis=2, keepdims=True), 1e-300)
    anchors = np.einsum("qpm,pmn->qpn", weights, case.points.reshape(case.manifolds, -1, case.points.shape[1]))
    center = anchors.mean(axis=0)
    b, c = [], []
    for q in range(draws):
        axes = anchors[q] - center
        along = axes @ case.t[q]
        b.append(along @ np.linalg.pinv(axes @ axes.T) @ along)
        c.append(along @ np.linalg.pinv(center @ center.T + axes @ axes.T) @ along)
        unit = axes / np.linalg.norm(axes, axis=1, keepdims=True)
        _ = np.abs(unit @ unit.T).mean(), np.abs(center @ unit.T).mean()
    return float(np.sqrt(np.mean(c) / np.mean(np.subtract(b, c))))


def cpu(action: Callable[[], object], least: float) -> float:
    """CPU seconds of one call, repeated for at least `least` seconds."""
    count, begin = 0, time.process_time()
    while True:
        action()
        count += 1
        spent = time.process_time() - begin
        if spent >= least:
            return spent / count


def say(what: str, ratio: float, floor: float) -> bool:
    fine = ratio >= floor
    print(f"{what}: ratio {ratio:.0f}, floor {floor:g}, {'OVER' if fine else 'UNDER - missed'}", flush=True)
    return fine


class Race(NamedTuple):
    """How long to race: rounds, and CPU seconds a round."""

    rounds: int
    seconds: float

    def run(
        self,
        what: str,
        ours: Callable[[], object],
        theirs: Callable[[], object],
        share: float,
        floor: float,
        more: float = 0.0,
    ) -> bool:
        """Race. `share` of our work is what theirs does; `more` are seconds that they need besides, for all of it."""
        ours()
        pairs = [(cpu(ours, self.seconds), cpu(theirs, self.seconds) / share + more) for _ in range(self.rounds)]
        mine, other = (statistics.median(times) for times in zip(*pairs, strict=True))
        ratio = statistics.median(their / our for our, their in pairs)
        return say(f"{what}: {1e3 * other:.3g} / {1e3 * mine:.3g} ms", ratio, floor)


def agree(case: Case, name: str, lam: Floats) -> None:
    """The peer's p against ours: the bench compares answers to the same question."""
    draws = len(lam)
    p = np.einsum("qi,qi,in->qn", lam, case.y[:draws, case.labels], case.points)
    ours = project(manifolds(case.points, case.labels), case.t[:draws], case.y[:draws]).points()
    off = np.linalg.norm(p - ours, axis=1).max() / np.linalg.norm(case.t[:draws], axis=1).min()
    limit = {"DAQP": 1e-9, "scipy nnls": 1e-9, "cvxopt": 1e-2, "jaxopt OSQP": 0.1}[name]
    if not off < limit:
        sys.exit(f"{case.name}: {name} and we differ by {off:.1e} of |t|")


def projections(case: Case, race: Race, names: list[str]) -> list[bool]:
    """The projection stage, and for ReLU features of P = 2 and 10 the whole snapshot."""
    fine = []
    for name in names:
        what = f"projection, {case.name} / {name}"
        try:
            peer = PEERS[name](case)
        except ImportError as error:
            print(f"{what}: not measured ({error})", flush=True)
            continue
        few = max(1, min(DRAWS, {2: 40, 10: 6, 20: 1}[case.manifolds]))
        agree(case, name, peer(few))

        def ours() -> object:
            return project(manifolds(case.points, case.labels), case.t, case.y)

        def snapshot() -> object:
            return manifold_geometry(case.points, case.labels, n_t=DRAWS)

        fine.append(race.run(what, ours, lambda: peer(few), few / DRAWS, FLOORS[name]))  # noqa: B023
        floor = SNAPSHOT_FLOORS.get((case.manifolds, name))
        if floor and "ReLU" in case.name:
            lam = np.abs(peer(few))
            whole = np.tile(lam, (DRAWS // few + 1, 1))[:DRAWS]  # as many anchors as a snapshot has
            snapshot()
            extra = statistics.median(cpu(lambda: measures(case, whole), 0.2) for _ in range(3))  # noqa: B023
            what = f"snapshot, {case.name} / {name}"
            fine.append(race.run(what, snapshot, lambda: peer(few), few / DRAWS, floor, extra))  # noqa: B023
    return fine


def by_highs(case: Case, trials: int) -> NDArray[np.int64]:
    """Critical dimensions by bisection, each test a linear program."""
    of = manifolds(case.points, case.labels)
    points = rotated(of)
    drawn = Normals(0, points.shape[1]).first(np.arange(trials), points.shape[1])
    found = []
    for trial in range(trials):
        z = case.y[trial, of.owner, None] * (points @ drawn[trial].T)
        low, high = 0, points.shape[1] + 1
        while high - low > 1:
            n = (low + high) // 2
            a = -z[:, :n]
            status = linprog(np.zeros(n), A_ub=a, b_ub=-np.ones(len(a)), bounds=(None, None), method="highs").status
            low, high = (low, n) if status == 0 else (n, high)
        found.append(high if high <= points.shape[1] else case.points.shape[1] + 1)
    return np.array(found)


def simulated(case: Case, race: Race) -> bool:
    trials, peer = (DRAWS, {2: 10, 10: 3}.get(case.manifolds, 1)) if case.manifolds < 20 else (20, 1)
    ours = simulated_capacity(case.points, case.labels, n_trials=trials)
    theirs: list[NDArray[np.int64]] = []
    fine = race.run(
        f"simulated capacity, {case.name} / HiGHS, per {trials} trials",
        lambda: simulated_capacity(case.points, case.labels, n_trials=trials),
        lambda: theirs.append(by_highs(case, peer)),
        peer / trials,
        200.0 if case.manifolds == 2 else 30.0,
    )
    if (theirs[0] != ours["critical"][:peer]).any():
        sys.exit(f"{case.name}: HiGHS finds {theirs[0]}, we {ours['critical'][:peer]}")
    return fine


def cold() -> bool:
    """First calls: the kernels that a study with geometry needs are compiled."""
    case, seconds = made(*SIZES[1], True), []
    for first in (manifold_geometry, simulated_capacity):
        begin = time.process_time()
        first(case.points, case.labels)
        seconds.append(time.process_time() - begin)
    fine = sum(seconds) <= COLD_CEILING
    told = f"{seconds[0]:.1f} geometry + {seconds[1]:.1f} simulated capacity = {sum(seconds):.1f}"
    print(f"first calls, CPU seconds: {told}, ceiling {COLD_CEILING:g}, {'UNDER' if fine else 'OVER - missed'}")
    return fine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round, and without the largest size")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS))
    parser.add_argument(
        "--cold", action="store_true", help="nothing but the first calls, with an empty cache of kernels"
    )
    given = parser.parse_args()
    if given.cold:
        fast = cold()
        shutil.rmtree(os.environ["NUMBA_CACHE_DIR"])
        sys.exit(0 if fast else 1)
    warnings.simplefilter("ignore")
    race = Race(1, 0.05) if given.quick else Race(7, 0.2)
    print(f"{race.rounds} rounds, load {os.getloadavg()[0]:.1f}", flush=True)
    cases = [made(*size, relu) for size in SIZES[: 2 if given.quick else 3] for relu in (False, True)]
    fine = [result for case in cases for result in projections(case, race, given.peers)]
    fine += [simulated(case, race if case.manifolds < 20 else Race(1, race.seconds)) for case in cases]
    sys.exit(0 if all(fine) else 1)


if __name__ == "__main__":
    main()
