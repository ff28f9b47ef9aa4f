"""The reporting template of the seed document on collectives, filled in: its lines, its bands and its tables.

Every line has a measured number with its interval, or says why there is none. The bands are the seed's words and stand
here alone: the report shows intervals against controls instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from waterjar._version import __version__
from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.registry import find_metric
from waterjar.diagnose.study import Diagnosis
from waterjar.errors import WaterjarError
from waterjar.run.schema import MEANINGS, REASONS
from waterjar.view.figures._collective import (
    SAMPLES,
    SHARE,
    Places,
    at_places,
    estimates,
    last_places,
    measured,
    own_last,
    recorded_streams,
)
from waterjar.view.numbers import listed, no_width, number
from waterjar.view.report import blocks as b
from waterjar.view.report.leads.collective import distrusted, weak_heads
from waterjar.view.report.renderers.markdown import escape
from waterjar.view.report.renderers.seed_tables import ENTROPY_BANDS, RHO_BANDS, band, grid, tables
from waterjar.view.results import by_cell, dataset_name

_SHIFTS = {"Gaussian Noise": "gaussian_noise", "Contrast": "contrast", "Blur": "blur", "Rotation": "rotation"}
_LADDER, _SEVERITY, _ATTACK, _EPS = "seed", 3, "fgsm", "0.03"
_LOGITS = "logits of the collective were not recorded (streams/collective_logits)"
_BOTH = "logits of the streams, or of the collective, were not recorded"
_LACKING = {
    "collective_accuracy": _LOGITS,
    "best_individual": _BOTH,
    "emergence_ratio": _BOTH,
    "error_reduction": _BOTH,
    "individual_accuracy": "logits of the streams were not recorded (streams/logits)",
    "ablation": "it takes coalitions of streams, or a rule that makes the collective of its streams' outputs",
    "emergence_ratio_isolated": "streams were not asked alone (streams/isolated_logits)",
    "emergence_ratio_probe": "features of streams were not recorded (streams/pooled)",
    "fingerprint_diversity": "fingerprints were not recorded (streams/fingerprint)",
    "anchor_entropy": "affinities to anchors were not recorded (streams/affinity)",
    "dead_anchors": "affinities to anchors were not recorded (streams/affinity)",
    "routing_entropy": "routing weights were not recorded (streams/route_weight)",
    "parameter_efficiency": "streams/parameters was not written",
    "parameter_efficiency_trainable": "streams/trainable_parameters was not written",
}
"""What a line needs, where that was not recorded."""
_UNLABELLED = "no sample has a label (probe_samples/label)"
_WITHOUT_LABELS = ("fingerprint_diversity", "anchor_entropy", "dead_anchors", "routing_entropy")
"""Lines that need no labels."""
_WHY = MEANINGS | {"not_recorded": "it was not measured", "not_a_number": "what was recorded for it holds NaN"}
_AT_CHANCE = (
    "the best stream's head is not surely above one constant answer: a ratio against it says nothing of the collective"
)
_BELOW_PROBE = (
    "the best stream's head tells far less than a linear probe reads of its features: a ratio against it says how weak "
    "it is, and nothing of the collective"
)


def render(report: b.Report) -> str:
    """The template of every collective of a study, and the seed's tables below them."""
    diagnosis = report.source
    if diagnosis is None or "collective" not in diagnosis.results:
        why = (
            "nothing was measured"
            if diagnosis is None
            else diagnosis.passed_over.get("collective", "it was not measured")
        )
        raise WaterjarError(f"the reporting template is that of collectives, and there is none here: {why}")
    robust = dict(by_cell(measured(diagnosis, "robustness", {}))) if "robustness" in diagnosis.results else {}
    sizes, unlabelled = _recorded(diagnosis)
    data = dataset_name(diagnosis.study) or "unnamed data"
    parts = [f"# {escape(report.title)}", escape(report.lead)]
    parts += [f"Nothing is shown of what was recorded twice: {escape(why)}." for _, why in diagnosis.study.left_out]
    parts += [f"Numbers of two networks stand side by side: {escape(why)}." for why in diagnosis.study.other_models]
    for cell, one in by_cell(measured(diagnosis, "collective", {})):
        level = diagnosis.confidence("collective")
        shown = Collective(one, robust.get(cell), sizes.get(cell, []), level, unlabelled=cell in unlabelled)
        parts += [f"## Results for {escape(data)}: {escape(cell)}", *shown.parts(diagnosis)]
    parts += [tables(), f"Made by waterjar {__version__}; root hashes: {', '.join(report.roots) or 'unsealed'}."]
    return "\n\n".join(parts) + "\n"


def _recorded(diagnosis: Diagnosis) -> tuple[dict[str, list[tuple[float | None, float | None]]], set[str]]:
    """cell -> (all, trainable) parameters of every repeat; cells none of whose samples has a label."""
    found: dict[str, list[tuple[float | None, float | None]]] = {}
    unlabelled = set()
    for cell, runs in recorded_streams(diagnosis, {}, "the template counts parameters and labels"):
        found[cell] = [
            (run.once("parameters", repeat), run.once("trainable_parameters", repeat))
            for run in runs
            for repeat in range(len(run.run.seeds))
        ]
        if all(run.sample_labels(run.test, repeat) is None for run in runs for repeat in range(len(run.run.seeds))):
            unlabelled.add(cell)
    return found, unlabelled


class Collective:
    """One collective, line by line."""

    def __init__(
        self, one: xr.Dataset, robust: xr.Dataset | None, sizes: list[Any], confidence: float, *, unlabelled: bool
    ) -> None:
        self.one, self.robust, self.sizes, self.confidence = one, robust, sizes, confidence
        self.unlabelled = unlabelled
        self.places = last_places(one)

    def parts(self, diagnosis: Diagnosis) -> list[str]:
        """The four parts of the template, and what the intervals are."""
        missing = diagnosis.passed_over.get("robustness", "no run was asked under shifts or attacks")
        level = f"{100 * self.confidence:g} %"
        seeds = len(at_places(self.one, "collective_accuracy", self.places)[0])
        how = (
            f"mean over {seeds} seeds with its {level} interval"
            if seeds > 1
            else f"one seed, {level} interval over samples"
        )
        return [
            f"Numbers are those at the end of training: {how}.",
            f"### Core Metrics\n\n{grid(('Metric', 'Value'), self.core())}",
            "### Per-Stream Breakdown\n\n" + grid(("Stream", "Individual Acc", "Contribution"), self.streams()),
            "### Robustness\n\n" + grid(("Condition", "Accuracy", "Δ from Clean"), self.robustness(missing)),
            "### Diagnostics\n\n" + "\n".join(f"- {head}: {text}" for head, text in self.diagnostics()),
        ]

    def core(self) -> list[tuple[str, str]]:
        """Accuracy, ratio with its band, size and efficiency."""
        return [
            ("Collective Accuracy", self.share("collective_accuracy")),
            ("Best Individual Accuracy", self.share("best_individual")),
            ("Emergence Ratio (ρ)", self.ratio("emergence_ratio", by_heads=True)),
            ("ρ, streams alone", self.ratio("emergence_ratio_isolated", by_heads=True)),
            ("ρ, streams under trained linear probes", self.ratio("emergence_ratio_probe")),
            ("Error taken from the best stream", self.share("error_reduction", within=None, by_heads=True)),
            ("Parameters", self.size()),
            ("Efficiency", self.efficiency("parameter_efficiency", 0)),
            ("Efficiency, trainable parameters", self.efficiency("parameter_efficiency_trainable", 1)),
        ]

    @property
    def caveat(self) -> str:
        """Why a ratio by heads says nothing, in some seed; empty where it says something."""
        for name, words in (("best_at_chance", _AT_CHANCE), ("best_below_probe", _BELOW_PROBE)):
            if (at_places(self.one, name, self.places)[0] > 0).any():
                return f". Caveat: {words}"
        return ""

    def share(self, name: str, within: tuple[float, float] | None = SHARE, *, by_heads: bool = False) -> str:
        """An accuracy in percent."""
        limits = (-math.inf, 1.0) if within is None else within
        line = estimates(self.one, name, self.places, within=limits).iloc[0]
        if not np.isfinite(line["mean"]):
            return self.why(name)
        return _percent(line) + (self.caveat if by_heads else "")

    def ratio(self, name: str, *, by_heads: bool = False) -> str:
        """A ratio with the seed's band, and what the band is worth."""
        line = estimates(self.one, name, self.places, within=(0.0, math.inf)).iloc[0]
        if math.isnan(line["mean"]):
            return self.why(name)
        caveat = self.caveat if by_heads else ""
        if math.isinf(line["mean"]):
            own = at_places(self.one, name, self.places)[0]
            text = f"infinite in {int(np.isinf(own).sum())} of {len(own)} seeds: the best stream is never right there"
            return text + caveat
        return f"{_plain(line)}: {band(RHO_BANDS, line['mean'], line['low'], line['high'])}{caveat}"

    def size(self) -> str:
        """How many parameters, in millions."""
        known = {whole for whole, _ in self.sizes if whole is not None}
        if not known:
            return "not recorded: streams/parameters was not written"
        trained = {own for _, own in self.sizes if own is not None}
        text = " or ".join(_millions(size) for size in sorted(known))
        return text + (f" ({' or '.join(_millions(own) for own in sorted(trained))} trainable)" if trained else "")

    def efficiency(self, name: str, place: int) -> str:
        """Accuracy in percent per million parameters."""
        sizes = [pair[place] for pair in self.sizes]
        most = max((1e6 / size for size in sizes if size), default=math.inf)  # where every answer is right
        line = estimates(self.one, name, self.places, within=(0.0, most)).iloc[0]
        if math.isnan(line["mean"]):
            return self.why(name)
        return _percent(line, unit=" % per M params")

    def streams(self) -> list[tuple[str, str, str]]:
        """Accuracy and contribution (accuracy lost without it) of each stream."""
        names = [str(name) for name in self.one["stream"].values]
        accuracy = estimates(self.one, "individual_accuracy", self.places, "stream", within=SHARE)
        weak = [f" ({words})" if words else "" for words in weak_heads(self.one, self.places)]
        lost, how = self.contributions(len(names))
        rows = []
        for i, name in enumerate(names):
            line = accuracy.iloc[i]
            if line["n"] == 0 and "not_recorded" in str(line["reason"]) and accuracy["n"].any():
                continue  # a stream of another collective
            own = _percent(line) if np.isfinite(line["mean"]) else self.why("individual_accuracy")
            given = lost.iloc[i] if lost is not None else None
            told = (
                self.why("ablation")
                if given is None or math.isnan(given["mean"])
                else f"{_percent(given, '+')} ({how})"
            )
            rows.append((escape(name, 80), own + (weak[i] if np.isfinite(line["mean"]) else ""), told))
        return rows or [("none", "not recorded", "not recorded")]

    def contributions(self, count: int) -> tuple[Any, str]:
        """Accuracy lost without each stream, of the first way to be absent that is known."""
        for absence in (str(name) for name in self.one["absence"].values):
            found = estimates(self.one.sel(absence=absence), "ablation", self.places, "stream")
            if len(found) == count and found["mean"].notna().any():
                return found, absence
        return None, ""

    def robustness(self, missing: str) -> list[tuple[str, str, str]]:
        """Clean, the seed's shifts at its own strength, and FGSM."""
        if self.robust is None:
            names = ("Clean", *_SHIFTS, f"Adversarial (ε={_EPS})")
            return [(name, f"not recorded: {missing}", "-") for name in names]
        clean = self.clean()
        rows = [("Clean", _percent(clean) if clean is not None else "not recorded", "-")]
        wanted: dict[str, tuple[str, dict[str, Any]]] = {
            **{words: ("shifted_accuracy", {"ladder": _LADDER, "shift": shift, "severity": _SEVERITY})
               for words, shift in _SHIFTS.items()},
            f"Adversarial (ε={_EPS})": ("attacked_accuracy", {"attack": _ATTACK, "eps": _EPS}),
        }  # fmt: skip
        for words, (name, at) in wanted.items():
            line = self.condition(name, at)
            if line is None:
                place = "/".join(map(str, at.values()))
                rows.append((words, f"not recorded: {place} was not asked", "-"))
                continue
            away = "-" if clean is None else f"{100 * (line['mean'] - clean['mean']):+.2f}%".replace("-", "−")
            signs = distrusted(self.robust) if name == "attacked_accuracy" else []
            doubt = f" (attacks are not to be trusted: {listed(signs)})" if signs else ""
            rows.append((words, _percent(line) + doubt, away))
        return rows

    def clean(self) -> Any:
        """Accuracy without a shift; where that is the collective's on the same samples, the same line as above."""
        line = self.condition("model_clean_accuracy", {})
        own = estimates(self.one, "collective_accuracy", self.places, within=SHARE).iloc[0]
        same = line is not None and line["n"] == own["n"] and math.isclose(line["mean"], own["mean"], abs_tol=1e-9)
        return own if same else line

    def condition(self, name: str, at: dict[str, Any]) -> Any:
        """The accuracy of the first model under a condition; None where nobody looked."""
        one = self.robust
        if one is None or name not in one or not one.sizes.get("model"):
            return None
        for dim, label in at.items():
            if label not in list(one[dim].values):
                return None
        chosen = one.isel(model=0).sel(at)
        places: Places = own_last(chosen, name)
        line = estimates(chosen, name, places, within=SHARE).iloc[0]
        return line if np.isfinite(line["mean"]) else None

    def diagnostics(self) -> list[tuple[str, str]]:
        """Diversity, anchors and routing, each beside its value before training."""
        entropy = self.beside("routing_entropy")
        share = estimates(self.one, "routing_entropy_normalised", self.places).iloc[0]
        if np.isfinite(share["mean"]):
            words = band(ENTROPY_BANDS, share["mean"], share["low"], share["high"])
            entropy += f"; over log K {_plain(share)}: {words} (low entropy may be collapse, too)"
        return [
            ("Fingerprint Diversity", self.beside("fingerprint_diversity") + self.target()),
            ("Anchor Utilization Entropy", self.beside("anchor_entropy", " of its maximum")),
            ("Dead Anchors", self.beside("dead_anchors")),
            ("Average Routing Entropy", entropy),
        ]

    def target(self) -> str:
        """The seed's target for diversity, where there is a number."""
        line = estimates(self.one, "fingerprint_diversity", self.places).iloc[0]
        if math.isnan(line["mean"]):
            return ""
        verdict = "met" if line["mean"] > 0.8 else "missed"
        return f"; target > 0.8 {verdict} (random fingerprints of 64 components have 0.90)"

    def beside(self, name: str, unit: str = "") -> str:
        """A number at the end, and before training."""
        line = estimates(self.one, name, self.places, within=find_metric(name).own_range).iloc[0]
        if math.isnan(line["mean"]):
            return self.why(name)
        first = (
            self.one[f"{name}_initial"].values.astype(float) if f"{name}_initial" in self.one else np.full(1, np.nan)
        )
        known = first[np.isfinite(first)]
        before = number(float(known.mean())) if len(known) else "not recorded"
        return f"{_plain(line, unit)} (before training {before})"

    def why(self, name: str) -> str:
        """Why there is no number."""
        if name not in self.one:
            return "not recorded: it was not measured"
        codes = reasons_of(self.one, name)
        order = ("repeat", "snapshot", *(str(dim) for dim in codes.dims if dim not in ("repeat", "snapshot")))
        values = codes.transpose(*order).values
        kept = np.flatnonzero(self.places >= 0)
        own = values[kept, self.places[kept]] if len(kept) else values
        told = np.bincount(own[own > 0].ravel()).argmax() if (own > 0).any() else 1
        if REASONS[told] == "not_recorded":
            if self.unlabelled and name not in _WITHOUT_LABELS:
                return f"not recorded: {_UNLABELLED}"
            return f"not recorded: {_LACKING.get(name, _WHY['not_recorded'])}"
        return f"not recorded: {REASONS[told].replace('_', ' ')} ({_WHY[REASONS[told]]})"


def _percent(line: Any, sign: str = "", unit: str = "%") -> str:
    return f"{100 * line['mean']:{sign}.2f}{unit}".replace("-", "−") + _bounds(line, lambda end: f"{100 * end:.2f}")


def _plain(line: Any, unit: str = "") -> str:
    return f"{number(line['mean'])}{unit}{_bounds(line, number)}"


def _bounds(line: Any, shown: Callable[[float], str]) -> str:
    """The interval, and what it is over where that is not seeds; none where it has no width, and says nothing."""
    if not line["bounds"] or no_width(line["low"], line["high"], 1.0):
        return ""
    text = f" [{shown(line['low'])}, {shown(line['high'])}]".replace("-", "−")
    return f"{text} over samples" if line["bounds"] == SAMPLES else text


def _millions(size: float) -> str:
    return f"{size / 1e6:.1f}M" if size >= 1e5 else f"{size / 1e6:.4f}M"
