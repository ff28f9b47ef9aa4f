"""The whole suite in one call: streams, contributions, failure, shifts and attacks, recorded as a probe run."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor, nn

from waterjar.diagnose import collective as metrics_of
from waterjar.diagnose.collective.answers import label_log_likelihood, right_answers
from waterjar.diagnose.collective.best import best_stream
from waterjar.diagnose.result import NOT_A_NUMBER
from waterjar.diagnose.robustness import (
    ROBUSTNESS_VARIABLES,
    Robustness,
    record_robustness,
    robustness_labels,
    to_dataset,
)
from waterjar.errors import WaterjarError
from waterjar.probe.collective import modules
from waterjar.probe.collective.adapt import adapt
from waterjar.probe.collective.coalitions import MOST_EXACT, places_of
from waterjar.probe.collective.evaluation import Evaluation, under_the_seeds_keys
from waterjar.probe.collective.failure import StreamFailure, stream_failure
from waterjar.probe.collective.gathered import gathered
from waterjar.probe.collective.live import ABSENCES, LiveCollective, absences_of, size_of
from waterjar.probe.collective.protocol import first
from waterjar.probe.collective.record import (
    check_labels,
    collected,
    collective_labels,
    read_sets,
    record_once,
    record_orders,
    say,
)
from waterjar.probe.collective.samples import Samples
from waterjar.probe.collective.stages import Stages
from waterjar.probe.collective.still import measured
from waterjar.probe.pixels import normaliser
from waterjar.probe.robust import check_settings, robustness
from waterjar.run.disk import refuse_taken
from waterjar.run.probe_runs import other_model
from waterjar.run.reader import Run, open_run
from waterjar.run.recorder import Recorder
from waterjar.run.rows import Reasoned
from waterjar.run.source import steps_of

TRAIN, VAL, TEST = "train", "val", "test"
_PAIR = 2
"""The fewest samples of which one can stand in for another."""
_TRAINED = 1
"""The epoch of a model without a source: epoch 0 would say that it was not trained."""


def full_evaluation(
    collective: Any,
    train: Any,
    val: Any,
    test: Any,
    path: str | os.PathLike[str],
    *,
    config: Mapping[str, Any] | None = None,
    source: str | os.PathLike[str] | Run | None = None,
    control: Any = None,
    normalise: tuple[Any, Any] | None = None,
    robust: Mapping[str, Any] | None = None,
    absences: Sequence[str] | str | None = None,
    draws: int = 100,
    orders: int | None = None,
    batch_size: int = 256,
    seed: int = 0,
    progress: bool = True,
) -> Evaluation:
    """Evaluate a collective once, with everything it can be asked, and record it as a run at `path`.

    Linear probes are trained on `train`, the best stream is chosen on `val`, everything is scored on `test`. The model
    is left as it was. What it cannot tell is said in `passed_over`, and costs nothing else.

    Parameters
    ----------
    collective : a `LiveCollective`, or a model that `adapt` takes.
    train, val, test : (inputs, labels), a data set or a loader each.
    config : of the probe run; says by default that it is a full evaluation, of which seed and model.
    source : the sealed run of the training that this evaluates, if there is one; its last step is the one evaluated.
        Where it holds other logits of the same samples at that step, the result has a `remark`. Without a source the
        model is taken for trained, and stands at epoch 1.
    control : a matched ensemble (as `adapt` takes it), one wide network, or any inputs -> logits: robustness is
        compared with it, too.
    normalise : (mean, std) by channel if inputs are normalised pixels; else they are taken for pixels.
    robust : settings of `waterjar.probe.robustness`, as {"attacks": ["fgsm"], "severities": [3]}.
    absences : how streams are absent in coalitions: by default all that the model can do, of more than 8 streams the
        first of removed, zeroed and resampled.
    orders : of more than 8 streams, see `coalitions`.
    draws : random halves of streams that fail.
    progress : whether to say on standard error how far it is.
    """
    refuse_taken(path)
    live = adapt(collective)
    data = read_sets({TRAIN: train, VAL: val, TEST: test})
    settings = {"seed": seed, "batch_size": batch_size, **(robust or {})}
    check_settings(settings)
    absences = None if absences is None else absences_of(absences)
    _check_asked(live, data[TEST], absences, normalise, draws, seed)
    places_of(len(live.streams), orders, seed)
    against = None if control is None else _control(control)
    trained = None if source is None else _training(source)
    some = gathered(live, data[TRAIN].first(batch_size), batch_size, seed)
    check_labels(data, some.arrays["collective_logits"].shape[-1])
    how, passed_over = _absences(live, data[TEST], absences)
    stages = Stages(5, shown=progress)
    stages.begin("streams, coalitions, gradients")
    found = collected(
        [live],
        data,
        absences=how,
        gradients=True,
        orders=orders,
        batch_size=batch_size,
        seed=seed,
        only=(TEST,),
        progress=stages.tick,
    )
    passed_over |= found.passed_over
    stages.begin("stream failure")
    failure = _failure(live, data[TEST], draws, batch_size, seed, stages, passed_over)
    stages.begin("shifts and attacks")
    best = _best(live, found.arrays, data[VAL])
    answers = _robustness(live, best, data[TEST], against, normalise, settings, stages, passed_over)
    stages.begin("recording")
    labels = {**collective_labels(live, how, orders=orders, seed=seed)}
    labels |= {} if answers is None else robustness_labels(answers)
    labels |= {} if failure is None else {"failure": list(failure)}
    with _recorder(path, config, trained, data, labels, live, seed) as (recorder, at):
        record_once(recorder, [live], data, passed_over)
        record_orders(recorder, [live], how, orders, seed)
        recorder.log(
            **at, performance={"accuracy": _accuracies(found.arrays, data)}, snapshot={"streams": found.arrays}
        )
        if answers is not None:
            record_robustness(recorder, answers)
        if failure is not None:
            ends = {"accuracy": failure.accuracy, "accuracy_low": failure.low, "accuracy_high": failure.high}
            recorder.probe("stream_failure", {name: _numbers(values[None]) for name, values in ends.items()})
        say(recorder, passed_over)
    stages.begin("measuring")
    run = open_run(path)
    metrics = metrics_of.measure(run, validation=VAL, test=(TEST,), probe_on=TRAIN, resampling_seed=seed)
    coupled = live.independent is False
    told = under_the_seeds_keys(metrics, size_of(live.module), failure, answers, passed_over, coupled=coupled)
    stages.end()
    remark = "" if trained is None else other_model(open_run(trained.path), run)
    return Evaluation(_tree(metrics, failure, answers), run, passed_over, told, remark)


def _check_asked(
    live: LiveCollective, samples: Samples, absences: Sequence[str] | None, normalise: Any, draws: int, seed: int
) -> None:
    """Refuse what could only fail after everything else was computed."""
    for absence in absences or ():
        live.check(absence)
        if absence == "resampled":
            samples.others(seed)
    if draws < 1:
        raise WaterjarError(f"draws={draws}: expected 1 or more")
    if callable(normalise):
        raise WaterjarError("normalise is a function, from which no pixels can be computed: expected (mean, std)")
    normaliser(normalise)
    _pixels(samples.inputs, normalise)


def _absences(live: LiveCollective, samples: Samples, asked: Sequence[str] | None) -> tuple[list[str], dict[str, str]]:
    """How streams are absent in coalitions, and why not in another way."""
    passed_over = {name: why for name, why in live.cannot().items() if name in ABSENCES}
    if asked is not None:
        return list(asked), passed_over
    able = [how for how in live.absences if how != "resampled" or len(samples) >= _PAIR]
    if "resampled" in live.absences and "resampled" not in able:
        passed_over["resampled"] = "the test set has one sample, and no other one whose outputs could stand in"
    if len(live.streams) <= MOST_EXACT:
        return able, passed_over
    why = f"left out of {len(live.streams)} streams (more than {MOST_EXACT}), unless absences= asks for it"
    return able[:1], passed_over | dict.fromkeys(able[1:], why)


@contextlib.contextmanager
def _recorder(
    path: str | os.PathLike[str],
    config: Mapping[str, Any] | None,
    source: Run | None,
    data: Mapping[str, Samples],
    labels: dict[str, list[str]],
    live: LiveCollective,
    seed: int,
) -> Iterator[tuple[Recorder, dict[str, Any]]]:
    """A recorder for the one step of a probe run, and where in training that stands."""
    about = {"probe": "full_evaluation", "model": type(live.module).__name__, "evaluation_seed": seed}
    settings: dict[str, Any] = {"eval_sets": [TRAIN, VAL, TEST], "labels": labels, "variables": ROBUSTNESS_VARIABLES}
    settings["summary"] = False
    settings["eval_sizes"] = {name: len(one) for name, one in data.items()}
    at: dict[str, Any] = {"epoch": _TRAINED}
    if source is not None:
        steps = steps_of(source)
        last = max(steps)
        at = {key: steps[last][key] for key in ("epoch", "train_task")} | {"step": last}
        settings |= {"source": source, "seeds": source.seeds, "tasks": source.attributes["tasks"]}
        about["of"] = source.run_id
    with Recorder(path, about if config is None else dict(config), **settings) as recorder:
        yield recorder, at


def _training(source: str | os.PathLike[str] | Run) -> Run:
    """The run of the training that is evaluated."""
    run = source if isinstance(source, Run) else open_run(source)
    if len(run.seeds) != 1:
        raise WaterjarError(f"source has {len(run.seeds)} repeats: expected one, since one model is evaluated")
    return run


def _failure(
    live: LiveCollective,
    samples: Samples,
    draws: int,
    batch_size: int,
    seed: int,
    stages: Stages,
    passed_over: dict[str, str],
) -> StreamFailure | None:
    """Streams at zero, as in the seed document; else as they can be absent."""
    order = [how for how in ("zeroed", "removed", "resampled") if how in live.absences]
    if len(samples) < _PAIR and "resampled" in order:
        order.remove("resampled")
    if not order:
        passed_over["stream_failure"] = "no stream can be absent"
        return None
    if order[0] != "zeroed":
        passed_over["stream_failure"] = f"streams that fail are {order[0]}: they cannot be set to zero"
    return stream_failure(live, samples, order[0], draws=draws, batch_size=batch_size, seed=seed, progress=stages.tick)


def _robustness(
    live: LiveCollective,
    best: str | None,
    samples: Samples,
    control: tuple[Callable[[Tensor], Tensor], nn.Module | None] | None,
    normalise: tuple[Any, Any] | None,
    settings: dict[str, Any],
    stages: Stages,
    passed_over: dict[str, str],
) -> Robustness | None:
    """The collective, its best stream and the control, shifted and attacked alike; None where there are no images."""
    pixels = _pixels(samples.inputs, normalise)
    if isinstance(pixels, str):
        passed_over["robustness"] = passed_over["adversarial"] = pixels
        return None
    asked = [0]

    def counted(model: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        def call(x: Tensor) -> Tensor:
            asked[0] += 1
            stages.tick(asked[0])
            return model(x)

        return call

    models = {"collective": counted(live.logits)}
    if best is not None:
        models["best_stream"] = counted(lambda x: live.stream_logits(x, best))
    with contextlib.ExitStack() as stack:
        device = stack.enter_context(measured(live.module, settings["seed"], gradients=True))
        if control is not None:
            answer, module = control
            models["ensemble"] = counted(answer)
            if module is not None:
                stack.enter_context(measured(module, settings["seed"], gradients=True))
        labels = torch.from_numpy(samples.labels)
        try:
            found = robustness(models, pixels.to(device), labels, normalise=normalise, **settings)
        except WaterjarError as error:  # these images, or this model, cannot be asked so: said, and costs nothing else
            passed_over["robustness"] = passed_over["adversarial"] = str(error)
            return None
    for note in found.notes:
        passed_over[note.partition(" ")[0]] = note
    return found


def _control(given: Any) -> tuple[Callable[[Tensor], Tensor], nn.Module | None]:
    """Inputs -> logits, and the module to be put into evaluation mode meanwhile, if it is one."""
    if isinstance(given, LiveCollective) or modules.fits(given):
        live = adapt(given)
        return live.logits, live.module
    if isinstance(given, nn.Module):
        return lambda x: first(given(x)), given
    if not callable(given):
        raise WaterjarError(f"control is a {type(given).__name__}: expected a network, several, or inputs -> logits")
    return given, None


def _best(live: LiveCollective, arrays: Mapping[str, Any], samples: Samples) -> str | None:
    """The best stream on validation data, among the others; None where streams have no logits."""
    if "logits" not in arrays:
        return None
    logits = arrays["logits"][VAL][0][: len(samples)]
    accuracy = right_answers(logits, samples.labels).mean(axis=0)
    likely = label_log_likelihood(logits, samples.labels).mean(axis=0)
    return None if np.isnan(accuracy).all() else live.streams[best_stream(accuracy, likely, live.streams)]


def _pixels(inputs: Any, normalise: tuple[Any, Any] | None) -> Tensor | str:
    """(sample, channel, row, column) in [0, 1], or why there are none."""
    if not isinstance(inputs, Tensor) or inputs.ndim != 4:
        return "the inputs are no images (sample, channel, row, column): there is nothing to shift or to attack"
    if not inputs.is_floating_point():
        return f"the images are {str(inputs.dtype).removeprefix('torch.')}: expected pixels in [0, 1], as floats"
    pixels = inputs
    if normalise is not None:
        normaliser(normalise)(inputs[:1])  # says what does not fit
        mean, std = (torch.as_tensor(one, dtype=inputs.dtype, device=inputs.device) for one in normalise)
        pixels = inputs * std.reshape(-1, 1, 1) + mean.reshape(-1, 1, 1)
    low, high = float(pixels.min()), float(pixels.max())
    if low < -1e-4 or high > 1 + 1e-4:
        return f"the images lie in [{low:g}, {high:g}], and pixels in [0, 1]: pass normalise=(mean, std)"
    return pixels.clamp(0, 1)


def _numbers(values: NDArray[np.float64]) -> Reasoned:
    return Reasoned(values, np.where(np.isnan(values), NOT_A_NUMBER, 0).astype(np.uint8))


def _accuracies(arrays: Mapping[str, Any], data: Mapping[str, Samples]) -> dict[str, float]:
    return {
        name: float(right_answers(arrays["collective_logits"][name][0][: len(samples)], samples.labels).mean())
        for name, samples in data.items()
    }


def _tree(metrics: xr.Dataset, failure: StreamFailure | None, answers: Robustness | None) -> xr.DataTree:
    parts = {"collective": metrics}
    if answers is not None:
        parts["robustness"] = to_dataset(answers)
    if failure is not None:
        ends = {"accuracy": failure.accuracy, "accuracy_low": failure.low, "accuracy_high": failure.high}
        parts["stream_failure"] = xr.Dataset(
            {name: ("failure", values) for name, values in ends.items()}, {"failure": list(failure)}
        )
    return xr.DataTree.from_dict(parts)
