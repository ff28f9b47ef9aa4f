"""Watching a plain torch loop: accuracy and loss per evaluation set, features, weights and gradients, in one call.

watch = wj.watch(model, layers=["fc1"], eval_sets={"digits01": (x, y), "digits23": loader})
with watch.recorder("runs/naive-0", {"method": "naive"}, seeds=[0], tasks=["digits01", "digits23"]) as recorder:
    for task in tasks:
        for epoch in range(1, 11):
            loss = train(model, task)
            recorder.log(epoch=epoch, train_task=task, **watch(train={"loss": loss}))
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.nn.parameter import UninitializedParameter

from waterjar.errors import WaterjarError, brief, unknown_name
from waterjar.probe import _evaluation as evaluation
from waterjar.probe._features import features_of, layers_of
from waterjar.probe.untouched import device_of, left_as_it_was
from waterjar.run.coordinates import flag
from waterjar.run.intake import STEP_GROUPS, Values
from waterjar.run.recorder import Recorder

Batches: TypeAlias = "tuple[Any, Any] | Iterable[Any]"
"""(inputs, labels) as two tensors, or what gives such pairs whenever it is gone through: a DataLoader, a list."""
Forward: TypeAlias = "Callable[[nn.Module, Any, str], torch.Tensor]"
Loss: TypeAlias = "Callable[[torch.Tensor, torch.Tensor], torch.Tensor]"


class Watch:
    """What is looked at whenever it is called; made by `watch`. One network: several repeats at once are no case of it.

    Training does not notice: weights, gradients, buffers, modes and all random generators are what they were, to the
    bit. A data set that draws from a generator of its own is the one thing that cannot be put back.
    """

    def __init__(
        self,
        model: nn.Module,
        layers: Mapping[str, Callable[[torch.Tensor], torch.Tensor] | None],
        eval_sets: Mapping[str, evaluation.EvalSet],
        samples: Mapping[str, evaluation.Samples],
        *,
        forward: Forward | None,
        loss: Loss | None,
        weights: bool,
    ) -> None:
        self._model = model
        self._layers = dict(layers)
        self._sets = dict(eval_sets)
        self._samples = dict(samples)
        self._forward = forward
        self._loss = loss
        self._weights = weights

    def __call__(self, *, snapshot: bool | Values = True, **known: Values | None) -> dict[str, dict[str, Any]]:
        """Look once: what `Recorder.log` takes, `recorder.log(epoch=epoch, train_task=task, **watch())`.

        - `performance`: accuracy (if labels are class numbers) and mean loss of every evaluation set, in eval mode.
        - `train`: `gradient_norm`, the norm of `.grad` as it stands: of the last batch before this call, after whatever
          clipping was done. Call it before `zero_grad`; without any gradient there is none in it.
        - `snapshot`: features of the watched layers on the probe samples, and all parameters. They take most of the
          disk: `watch(snapshot=epoch % 5 == 0)` takes them now and then.

        What the loop knows itself goes through here, by the groups of `Recorder.log`, and is put beside what is seen:
        `watch(train={"loss": loss, "accuracy": accuracy}, monitor={"lr": lr})`, `watch(snapshot={"streams": ...})`.
        """
        for group, values in known.items():
            if group not in STEP_GROUPS:
                raise unknown_name("watch: group", group, (*STEP_GROUPS, "snapshot"))
            if values is not None and not isinstance(values, Mapping):
                raise WaterjarError(f"{group}={brief(repr(values))}: expected a mapping name -> values")
        of_loop = {group: values for group, values in known.items() if values is not None}
        of_loop |= {"snapshot": snapshot} if isinstance(snapshot, Mapping) else {}
        taken = isinstance(snapshot, Mapping) or flag("snapshot", snapshot)
        return _merged(self._seen(snapshot=taken), of_loop, "")

    def _seen(self, *, snapshot: bool) -> dict[str, dict[str, Any]]:
        """What is seen of the network now, by group.

        `train` is there even if empty: `log(train=..., **watch())`, which Python refuses, then fails at the first step
        already, and not after the first epoch of training.
        """
        performance: dict[str, dict[str, Any]] = {}
        shot: dict[str, Any] = {}
        norm = gradient_norm(self._model)
        with self._undisturbed():
            for name, one in self._sets.items():
                found = one.evaluate(self._model, self._forward, self._loss)
                for measure, value in found.items():
                    performance.setdefault(measure, {})[name] = value
            if snapshot and self._layers:
                shot["features"] = self._features()
        if snapshot and self._weights:
            shot["weights"] = {name: one.detach().to("cpu", copy=True) for name, one in self._model.named_parameters()}
        told: dict[str, dict[str, Any]] = {"performance": performance} if performance else {}
        told["train"] = {"gradient_norm": norm} if norm is not None else {}
        return told | ({"snapshot": shot} if shot else {})

    def _undisturbed(self) -> AbstractContextManager[None]:
        generators = [one for kept in self._sets.values() for one in kept.generators]
        return left_as_it_was(self._model, generators)

    def _features(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {layer: {} for layer in self._layers}
        for name, samples in self._samples.items():
            of_layers = features_of(self._model, self._layers, samples, functools.partial(self._pass, name=name))
            for layer, values in of_layers.items():
                found[layer][name] = values[None]  # one repeat
        return found

    def _pass(self, inputs: Any, name: str) -> Any:
        return self._model(inputs) if self._forward is None else self._forward(self._model, inputs, name)

    @property
    def eval_sizes(self) -> dict[str, int]:
        """How many samples the evaluation sets have, of those that say so."""
        return {name: one.size for name, one in self._sets.items() if one.size is not None}

    @property
    def probe_samples(self) -> dict[str, Any]:
        """Labels of the samples whose features are kept: `recorder.once("probe_samples", **watch.probe_samples)`."""
        known = {name: one.probe_labels for name, one in self._samples.items()}
        if not known or not self._layers or any(one is None for one in known.values()):
            return {}
        return {"label": {name: one[None].cpu() for name, one in known.items() if one is not None}}

    def recorder(
        self,
        path: str | os.PathLike[str],
        config: object = None,
        *,
        eval_sets: Sequence[str] | Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> Recorder:
        """A `Recorder` that knows the evaluation sets, their sizes and the probe samples with their labels.

        `eval_sets` says which task each belongs to, if their names do not; all other arguments are the recorder's own.
        """
        names = list(self._sets)
        if eval_sets is not None and set(eval_sets) != set(names):
            raise WaterjarError(f"eval_sets={brief(repr(eval_sets))}: expected those that are watched: {names}")
        own: dict[str, Any] = {"eval_sets": names if eval_sets is None else eval_sets}
        own |= {"eval_sizes": self.eval_sizes} if self.eval_sizes else {}
        own |= {"probe_sets": list(self._samples)} if self._layers else {}
        made = Recorder(path, config, **{**own, **settings})
        try:
            if made.repeats != 1:
                raise WaterjarError(f"{made.repeats} seeds: watch looks at one network, with one seed a run")
            if self.probe_samples:
                made.once("probe_samples", **self.probe_samples)
        except BaseException as error:
            made.__exit__(type(error), error, None)  # the place is not to stay locked
            raise
        return made

    def __repr__(self) -> str:
        """Say what is watched."""
        sets = ", ".join(f"{name} ({'?' if one.size is None else one.size})" for name, one in self._sets.items())
        return f"<waterjar.watch: layers {', '.join(self._layers) or 'none'}; evaluation sets {sets or 'none'}>"


def watch(
    model: nn.Module,
    layers: str | Sequence[str] | Mapping[str, Callable[[torch.Tensor], torch.Tensor] | None] = (),
    eval_sets: Mapping[str, Batches] | None = None,
    *,
    probe: Batches | Mapping[str, Batches] | None = None,
    samples: int = 100,
    forward: Forward | None = None,
    loss: Loss | None = None,
    weights: bool = True,
) -> Watch:
    """Watch a network in a loop of your own: `recorder.log(epoch=epoch, train_task=task, **watch())` records it.

    What the loop knows itself goes through the same call: `**watch(train={"loss": loss, "accuracy": accuracy})`. All
    groups of `Recorder.log` do; what is seen is never replaced.

    Parameters
    ----------
    layers : names of modules (`model.named_modules()`) whose output is kept as features, a row per sample; or a mapping
        name -> function of that output: {"fc1": torch.relu} where the activation is no module.
    eval_sets : name -> (inputs, labels), or a DataLoader that gives such batches. Labels are class numbers, one a
        sample or one a token; of others, `loss` is recorded and no accuracy.
    probe : (inputs, labels) whose features are kept, of one evaluation set by its name, or the same ones throughout; by
        default the first `samples` of every evaluation set. Where labels are of tokens, so are features: a row per
        token, of layers that give (sample, token, unit), from as many of these samples as there are.
    samples : how many samples (tokens) of each evaluation set are kept as probes at most; all sets have equally many.
    forward : forward(model, inputs, name of the evaluation set) -> logits, where model(inputs) is not that: it gives a
        tuple or a mapping, or has a head for every task. Of a probe without a set, the name is that of the first one.
    loss : loss(outputs, labels) -> mean loss of a batch; cross entropy by default.
    weights : whether snapshots have all parameters.
    """
    if not isinstance(model, nn.Module):
        raise WaterjarError(f"watch({brief(repr(model))}): expected a torch.nn.Module")
    model = getattr(model, "_orig_mod", model)  # of torch.compile: the same parameters, and layers that can be seen
    wanted = layers_of(model, layers)
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 1:
        raise WaterjarError(f"samples={samples!r}: expected a whole number, from 1 on")
    if eval_sets is not None and not isinstance(eval_sets, Mapping):
        raise WaterjarError(
            f"eval_sets={brief(repr(eval_sets))}: expected a mapping name -> loader, or (inputs, labels)"
        )
    device_of(model)
    if any(isinstance(one, UninitializedParameter) for one in model.parameters()):
        raise WaterjarError("the network has layers without a size yet: let it see one batch before it is watched")
    sets = {str(name): evaluation.EvalSet(str(name), given) for name, given in (eval_sets or {}).items()}
    if not sets and not wanted and not weights:
        raise WaterjarError("watch() has nothing to watch: give layers, eval_sets or weights=True")
    made = Watch(model, wanted, sets, {}, forward=forward, loss=loss, weights=weights)
    if wanted:
        with made._undisturbed():
            chosen = _samples(sets, probe, samples)
        made = Watch(model, wanted, sets, chosen, forward=forward, loss=loss, weights=weights)
        with made._undisturbed():
            made._features()  # a layer that cannot be watched is told before anything is trained
    return made


def _samples(
    sets: Mapping[str, evaluation.EvalSet], probe: Batches | Mapping[str, Batches] | None, most: int
) -> dict[str, evaluation.Samples]:
    """The samples whose features are kept, equally many of every set."""
    if not sets:
        raise WaterjarError("features are of samples of an evaluation set: give eval_sets")
    if probe is None:
        first = {name: one.first(most) for name, one in sets.items()}
    elif isinstance(probe, Mapping):
        for name in probe:
            if name not in sets:
                raise unknown_name("probe: eval_set", name, sets)
        first = {name: evaluation.EvalSet(f"probe of {name}", given).first() for name, given in probe.items()}
    else:
        name = next(iter(sets))
        first = {name: evaluation.EvalSet("probe", probe).first()}
    first = {name: one.as_probes(most if probe is None else None) for name, one in first.items()}
    kinds = {one.kept is None: name for name, one in first.items()}
    if len(kinds) > 1:
        raise WaterjarError(
            f"eval_sets: labels of '{kinds[False]}' are of tokens, those of '{kinds[True]}' are not: features are of "
            "one or the other; pass probe= to say of which"
        )
    count = min(one.probes for one in first.values())
    return {name: one.as_probes(count) for name, one in first.items()}


def _merged(seen: Mapping[str, Any], known: Mapping[str, Any], where: str) -> dict[str, Any]:
    """What is seen and what the loop knows, side by side; nothing is there twice."""
    found = dict(seen)
    for name, value in known.items():
        at = f"{where}['{name}']" if where else str(name)
        if name not in found:
            found[name] = value
        elif isinstance(value, Mapping) and isinstance(found[name], Mapping):
            found[name] = _merged(found[name], value, at)
        else:
            raise WaterjarError(f"{at} is what watch records itself: expected another name for a value of your own")
    return found


def gradient_norm(model: nn.Module) -> float | None:
    """The norm over all parameters of their gradient as it stands; None where there is none."""
    norms = [float(torch.linalg.vector_norm(one.detach(), dtype=_precise(one.dtype))) for one in _gradients(model)]
    return math.hypot(*norms) if norms else None


def _precise(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def _gradients(model: nn.Module) -> Iterator[torch.Tensor]:
    for parameter in model.parameters():
        if parameter.grad is not None:
            yield parameter.grad.coalesce().values() if parameter.grad.is_sparse else parameter.grad
