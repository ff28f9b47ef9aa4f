"""What a run of the Einstellung laboratory would cost: small copies of it are really run, and scaled up.

Two copies, of few and of more images, tell what grows with the images from what does not:

    run  =  fixed + Σ_phase [ (epochs + 1) evaluation + epochs epoch(images) + end of task(images) ]

each a straight line through the two copies. A run that is begun counts with what is left of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from waterjar.lab.data import ImageData, to_cache
from waterjar.lab.evaluation import evaluation_sets
from waterjar.lab.examples import LOGIT_BYTES, STATIC_BYTES, STEP_BYTES, count_examples
from waterjar.lab.scenarios import phases
from waterjar.lab.study.job import Job, checkpoints_of
from waterjar.lab.study.kinds import Cost, Run
from waterjar.lab.study.kinds.einstellung.rehearsal import (
    FEWEST,
    Growth,
    Rehearsal,
    evaluated_images,
    few_images,
    most_per_class,
    rehearse_copy,
    small_copy,
)
from waterjar.lab.study.parts import Resources
from waterjar.lab.study.progress import look
from waterjar.lab.study.rehearsal import allotted, rehearsal_folder
from waterjar.lab.tasks import arrange

_LARGER = 4
_TOO_SLOW = 10.0  # seconds of the smallest copy, beside which what does not grow is nothing: one copy is enough
_LINE = 120  # bytes that a further file adds to the root and the manifest

Line = tuple[float, float]
"""What there is at none, and what each one adds."""


@dataclass(frozen=True)
class Rehearsals:
    """Copies of one run."""

    few: Rehearsal
    more: Rehearsal


def rehearse(job: Job, data: ImageData, resources: Resources, run: Run, seconds: float) -> tuple[Rehearsals, float]:
    """A few rehearsals of a run, and how much longer the very first took: what is compiled and loaded then."""
    copy = small_copy(job.config)
    settings = resources.model_dump(mode="json")

    def go(per_class: int) -> Rehearsal:
        with rehearsal_folder() as folder:
            cache = to_cache(few_images(data, job.config, per_class), folder)
            found: Rehearsal = run(rehearse_copy, copy.model_dump(mode="json"), str(cache), settings)
            return found

    cold = go(FEWEST)
    few = more = go(FEWEST)
    per_class, most = FEWEST, most_per_class(data, job.config)
    while per_class < most and more.seconds < (_TOO_SLOW if more is few else seconds):
        per_class = min(most, per_class * _LARGER)
        more = go(per_class)
    return Rehearsals(few, more), max(0.0, cold.seconds - few.seconds)


def _line(few: tuple[float, float], more: tuple[float, float]) -> Line:
    """Through two points (images, seconds), neither part below 0; through 0 if the points are one.

    >>> _line((10, 3.0), (30, 7.0)), _line((10, 3.0), (30, 12.0)), _line((10, 3.0), (30, 2.0)), _line((4, 2), (4, 2))
    ((1.0, 0.2), (0.0, 0.4), (2.0, 0.0), (0.0, 0.5))
    """
    if more[0] <= few[0]:
        return 0.0, more[1] / more[0]
    slope = (more[1] - few[1]) / (more[0] - few[0])
    if slope <= 0.0:
        return more[1], 0.0
    base = more[1] - slope * more[0]
    return (base, slope) if base >= 0.0 else (0.0, more[1] / more[0])


def _at(line: Line, images: float) -> float:
    return line[0] + line[1] * images


def cost(job: Job, data: ImageData, tried: Rehearsals) -> Cost:
    """What is left of a run, by its rehearsals."""
    few, more = tried.few, tried.more
    tasks = arrange(data, job.config)
    stretches = phases(tasks, job.config)
    showing = _line((few.evaluated, few.evaluation), (more.evaluated, more.evaluation))
    probed = [len(chosen.rows) for chosen in evaluation_sets(tasks) if len(chosen.rows)]
    samples = min(job.config.recording.samples, *probed)
    evaluation = _at(showing, evaluated_images(tasks, job.config))
    features = showing[1] * samples * len(probed) if job.config.recording.features else 0.0
    most = job.config.learner_settings.get("fisher_samples") or max(len(phase.rows) for phase in stretches)
    steps, snapshots = [], 0
    for phase, short, long in zip(stretches, few.phases, more.phases, strict=True):
        epoch = _at(_line((short.images, short.epoch), (long.images, long.epoch)), len(phase.rows))
        end = _at(
            _line((min(most, short.images), short.end), (min(most, long.images), long.end)), min(most, len(phase.rows))
        )
        steps += [evaluation] + [evaluation + epoch] * phase.epochs
        steps[-1] += end
        due = phase.epochs // job.config.recording.every + 1
        snapshots += due
        steps[-1] += due * features
    images = [sum(phase.images for phase in copy.phases) for copy in (few, more)]
    fixed = _at(_line((images[0], few.fixed), (images[1], more.fixed)), sum(map(len, tasks.train_rows.values())))
    there = allotted(job.path) + allotted(checkpoints_of(job.path))
    size = more.rest + more.best
    size += sum(_grown(array, {"step": len(steps), "snapshot": snapshots}, samples) for array in more.arrays)
    outputs = LOGIT_BYTES * tasks.n_classes * snapshots if job.config.recording.outputs else 0
    size += count_examples(tasks, job.config.recording) * (STATIC_BYTES + STEP_BYTES * len(steps) + outputs)
    return Cost(fixed + sum(steps[look(job).steps :]), max(0, size - there), more.last)


def _grown(array: Growth, rows: dict[str, int], samples: int) -> int:
    """Bytes of an array's files when it is complete."""
    chunks = -(-rows.get(array.along, array.rows) // array.rows_a_chunk)
    factor = chunks / max(1, -(-array.rows // array.rows_a_chunk))
    share = samples / array.samples if array.samples else 1.0
    return round(array.bytes * factor * share + max(0.0, factor - 1.0) * array.files * _LINE)
