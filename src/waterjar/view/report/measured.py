"""Tables of what was measured: metrics down, learners across, every number with its interval and n."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from waterjar.diagnose.over_seeds import interval_words
from waterjar.diagnose.registry import find_family
from waterjar.view.numbers import estimate_or_reason, long_label
from waterjar.view.report.blocks import Block, Items, Table, Text
from waterjar.view.report.model import Model

_CAPTION = "↑ higher is better, ↓ lower."


def metric_table(
    model: Model,
    family: str,
    title: str,
    first: Sequence[str] = (),
    caption: str = _CAPTION,
    *,
    more: str = "",
    others: bool = True,
    last: Mapping[str, Mapping[str, str]] | None = None,
) -> list[Block]:
    """The metrics of a family in a table, the `first` ones first; `others` follow unless they are not wanted.

    The caption begins with what the intervals are and ends with `more`. `last` has rows for the end, by their head:
    cell -> text. Metrics that no learner has a value of are left out (and listed at the end of the report, with the
    reason).
    """
    order = list(dict.fromkeys([*first, *(find_family(family).metrics if others else ())]))
    frame = model.means[(model.means["family"] == family) & model.means["metric"].isin(order)]
    known = set(frame.loc[frame["n"] > 0, "metric"])
    if not known:
        return []
    cells = list(dict.fromkeys(frame["cell"]))
    lines = {(line.metric, line.cell): line for line in frame.itertuples(index=False)}
    rows = []
    for metric in (model.diagnosis.declared(name) for name in order if name in known):
        units = "byte" if metric.units == "byte" else "1"  # others stand in the label
        texts = [estimate_or_reason(lines.get((metric.name, cell)), metric, units, with_n=True) for cell in cells]
        rows.append((long_label(metric), *texts))
    rows += [(head, *(texts[cell] for cell in cells)) for head, texts in (last or {}).items()]
    numeric = tuple(range(1, len(cells) + 1))
    level = model.diagnosis.confidence(family)
    made = interval_words(frame.loc[frame["metric"].isin(known), "interval"], level)
    layered = model.diagnosis.results[family].sizes.get("layer", 1) > 1
    over = " What each layer has is shown as the mean over layers." if layered else ""
    caption = f"Mean over seeds with its {made} and the number of seeds.{over} {caption} {more}".rstrip()
    table = Table(f"{family}_table", title, ("metric", *cells), tuple(rows), frame, caption, numeric)
    beyond = tuple(model.diagnosis.out_of_range(family))
    said: list[Block] = [Text("Beyond the range of their metric:"), Items(beyond)] if beyond else []
    return [table, *said]
