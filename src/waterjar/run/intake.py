"""What a training loop hands to a recorder, group by group, turned into the rows of the schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from waterjar.errors import WaterjarError, brief, unknown_name
from waterjar.run.arrays import cast, fitting
from waterjar.run.codec import Storage
from waterjar.run.coordinates import check_name, layer_name
from waterjar.run.examples import Examples, example_row
from waterjar.run.rows import LayerTable, Row, flatten_parameters, snapshot_row, step_row
from waterjar.run.schema import BY_LAYER, STEP, Variable, takes_every_name, variables_of
from waterjar.run.writer import TreeWriter

Values = Mapping[str, object]
Rows = dict[str, dict[str, Row]]
"""Group -> variable -> its row."""

STEP_GROUPS = ("performance", "train", "expert", "resources", "monitor", "probes", "examples")
"""What a step may hold."""
SNAPSHOTS = ("features", "weights", "attention", "attribution", "streams", "outputs")
"""What a snapshot may hold."""


def check_labels(labels: NDArray[Any], classes: Sequence[str], where: str) -> None:
    """Refuse labels that are no places among the classes of the run, if it has named them; -1 is no sample."""
    if not classes or not labels.size or labels.dtype.kind not in "iu":
        return
    low, high = labels.min(), labels.max()
    if low < -1 or high >= len(classes):
        wrong, named = low if low < -1 else high, brief(", ".join(classes))
        raise WaterjarError(
            f"{where} has a label {wrong}, and the run {len(classes)} classes ({named}): expected 0 to "
            f"{len(classes) - 1}, places in classes=[...], which are all that the network chooses among (-1: no sample)"
        )


class Intake:
    """Knows what a run may record: its sets, repeats and declared variables. Nothing is written here."""

    def __init__(
        self,
        identity: Mapping[str, Any],
        variables: Mapping[str, Variable],
        storage: Storage,
        writer: TreeWriter,
    ) -> None:
        self._eval_sets = list(identity["eval_sets"])
        self._probe_sets: list[str] = identity["probe_sets"]
        self._repeats = len(identity["seeds"])
        self._classes: list[str] = identity["classes"] or []
        self._variables = variables
        self._storage = storage
        self._writer = writer

    def steps(self, given: Mapping[str, object]) -> tuple[Rows, Examples | None]:
        """The rows of a step, group by group, and which examples they are of, if they have any.

        What a probe found is a number per repeat, which goes by the probe's name, or several by theirs.
        """
        told: dict[str, Any] = {group: values for group, values in given.items() if values is not None}
        for group, values in told.items():
            if not isinstance(values, Mapping):
                raise WaterjarError(f"{group}={values!r}: expected a mapping name -> values")
        for name, found in told.pop("probes", {}).items():
            told[f"probes/{layer_name(name, 'probe')}"] = found if isinstance(found, Mapping) else {name: found}
        rows: Rows = {}
        examples: Examples | None = None
        for group, values in told.items():
            if group == "examples":
                rows[group], examples = self._examples(group, values, ("step",))
                continue
            sizes = {**self._sizes(group), "eval_set": len(self._eval_sets)}
            own = rows.setdefault(group, {})
            for name, value in values.items():
                variable, label = self._variable(group, name, ("step",)), f"{group}['{name}']"
                if "eval_set" in variable.dims and not self._eval_sets:
                    raise WaterjarError(f"{label} is per eval_set, but the run has none: open it with eval_sets=[...]")
                with fitting(label):
                    own[name] = step_row(value, variable, sizes, self._eval_sets, label, self._storage.step_dtype)
                sizes |= dict(zip(own[name].dims, own[name].values.shape, strict=True))
        return {group: found for group, found in rows.items() if found}, examples

    def snapshot(self, given: object) -> tuple[Rows, LayerTable | None, Examples | None]:
        """The rows of a snapshot, the table of its parameters, and which examples its outputs are of."""
        if not isinstance(given, Mapping):
            raise WaterjarError(f"snapshot={type(given).__name__}: expected a mapping features, weights ... -> arrays")
        rows: Rows = {}
        table: LayerTable | None = None
        examples: Examples | None = None
        for group, value in given.items():
            if group not in SNAPSHOTS:
                raise unknown_name("snapshot", group, SNAPSHOTS)
            if group == "weights":
                array: object = value
                if isinstance(value, Mapping):
                    array, table = flatten_parameters(value, self._repeats)
                    self._writer.check_layers(table)
                rows[group] = {"weights": self._shot(group, "weights", array)}
            elif not isinstance(value, Mapping):
                raise WaterjarError(f"{group}={type(value).__name__}: expected a mapping name -> array")
            elif group == "outputs":
                rows[group], examples = self._examples(group, value, ("snapshot",))
            else:
                rows |= self._shots(group, value)
        return rows, table, examples

    def once(self, group: str, arrays: Values) -> tuple[dict[str, Row], LayerTable | None, Examples | None]:
        """Arrays that are written once."""
        if group == "examples":
            rows, examples = self._examples(group, arrays, ("repeat",))
            return rows, None, examples
        rows = {}
        table: LayerTable | None = None
        for name, value in arrays.items():
            variable = self._variable(group, name, ("repeat", "eval_set"))
            if (group, name) == ("weights", "initial") and isinstance(value, Mapping):
                value, table = flatten_parameters(value, self._repeats)  # noqa: PLW2901
            label = f"{group}['{name}']"
            with fitting(label):
                rows[name] = snapshot_row(value, variable, self._sizes(group), self._probe_sets, label, "keep")
        if group == "probe_samples" and "label" in rows:
            check_labels(rows["label"].values, self._classes, "probe_samples['label']")
        return rows, table, None

    def _examples(self, group: str, values: Values, first: tuple[str, ...]) -> tuple[dict[str, Row], Examples]:
        examples: Examples = self._writer.attributes.get("example_sets", {})
        rows: dict[str, Row] = {}
        for name, value in values.items():
            variable = self._variable(group, name, first)
            label = f"{group}['{name}']"
            sizes = self._sizes(group)
            with fitting(label):
                row, examples = example_row(
                    value, variable, sizes, self._eval_sets, examples, label, self._storage.example_dtype
                )
                wanted = self._storage.snapshot_dtype if variable.dims[0] == "snapshot" else "keep"
                keep = row.values.dtype.kind != "f"  # as of all snapshots
                rows[name] = replace(row, values=cast(row.values, "keep" if keep else wanted, label))
        return rows, examples

    def _shots(self, group: str, value: Values) -> Rows:
        """The rows of a group of snapshots; of one by layer, a group for each."""
        rows: Rows = {}
        known = variables_of(group)
        sizes: dict[str, int] = {}  # what one array has along a dimension, the others must have
        for name, array in value.items():
            if group not in BY_LAYER or (group == "attention" and name in known):
                row = rows.setdefault(group, {})[name] = self._shot(group, name, array, sizes)
                sizes |= dict(zip(self._variable(group, name, ("snapshot",)).dims[1:], row.values.shape, strict=True))
                continue
            below = f"{group}/{layer_name(name, 'method' if group == 'attribution' else 'layer')}"
            inside: Values = (
                array if group == "attention" and isinstance(array, Mapping) else {next(iter(known)): array}
            )
            rows[below] = {key: self._shot(below, key, one) for key, one in inside.items()}
        return rows

    def _shot(self, group: str, name: str, value: object, beside: Mapping[str, int] | None = None) -> Row:
        variable = self._variable(group, name, ("snapshot",))
        sizes = {**(beside or {}), **self._sizes(group)}
        with fitting(group):
            return snapshot_row(value, variable, sizes, self._probe_sets, group, self._storage.snapshot_dtype)

    def _variable(self, group: str, name: str, first: tuple[str, ...]) -> Variable:
        known = {key.rpartition("/")[2]: v for key, v in self._variables.items() if key.rpartition("/")[0] == group}
        known = {**variables_of(group), **known}
        if takes_every_name(group) and name not in known and first == ("step",):
            return Variable(STEP, check_name(name, group, STEP))
        fitting = {key: variable for key, variable in known.items() if variable.dims[0] in first}
        if name not in fitting:
            hint = f"Declare others with Recorder(variables={{'{group}/{name}': Variable(...)}})"
            raise unknown_name(f"{group}: variable", name, fitting, hint)
        return fitting[name]

    def _sizes(self, group: str) -> dict[str, int]:
        return {**self._writer.sizes(group), "repeat": self._repeats, "eval_set": len(self._probe_sets)}
