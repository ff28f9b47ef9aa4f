"""Where the numbers come from: versions, commit, kind of machine, times. No names of people or hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from waterjar.run.annotations import told
from waterjar.run.cells import flat
from waterjar.view.numbers import counted, quantity
from waterjar.view.report.blocks import Block, Table
from waterjar.view.report.model import Model

TITLE = "Provenance"
ORDER = 110
_LEFT_OUT = ("started", "ended", "seconds")


def blocks(model: Model) -> list[Block]:
    """What all sessions have in common or do not, and a line per run; nothing where there is no run."""
    if not model.study.entries:
        return []
    attributes = {run.path.name: run.attributes for run in model.study}
    sessions = [session for run in attributes.values() for session in run["provenance"].get("sessions", [])]
    made: list[Block] = []
    facts = _facts(sessions)
    if facts:
        frame = pd.DataFrame(facts, columns=["what", "value", "sessions"])
        rows = tuple((what, value, counted(n, "session")) for what, value, n in facts)
        words = (
            "A session is a process that trained a run, or took it up again. Two lines of one name: sessions differ."
        )
        made.append(Table("provenance", "Software and machines", ("what", "value", "in"), rows, frame, words))
    made.append(_runs(model, attributes))
    if model.study.annotations:
        made.append(_annotations(model))
    return made


def _annotations(model: Model) -> Table:
    """What was told of runs after they were recorded, and the hashes of the files that say it."""
    frame = pd.DataFrame(
        [(run, told(known), known.digest) for run, known in model.study.annotations.items()],
        columns=["run", "annotation", "sha256"],
    )
    rows = tuple(
        (line.run, line.annotation, " ".join(one[:12] for one in line.sha256.split())) for line in frame.itertuples()
    )
    words = "Not recorded, but added afterwards beside the sealed runs; every number of these runs rests on it."
    return Table("annotations", "What was annotated", ("run", "annotation", "SHA-256"), rows, frame, words)


def _facts(sessions: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
    counts: dict[tuple[str, str], int] = {}
    for session in sessions:
        for key, value in flat({k: v for k, v in session.items() if k not in _LEFT_OUT}).items():
            if value is None or value == []:
                continue
            shown = quantity(float(value), "byte") if key.endswith("memory_bytes") else _text(value)
            pair = (key.removeprefix("versions.").replace("_bytes", "").replace(".", ": "), shown)
            counts[pair] = counts.get(pair, 0) + 1
    order = {name: i for i, (name, _) in enumerate(counts)}
    found = [(what, value, n) for (what, value), n in counts.items()]
    return sorted(found, key=lambda fact: (min(order[what] for what in order if what == fact[0]), -fact[2], fact[1]))


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _runs(model: Model, of_run: Mapping[str, Any]) -> Table:
    lines: list[dict[str, Any]] = []
    for entry in model.study.entries:
        attributes = of_run[entry.name]
        sessions = attributes["provenance"].get("sessions", [])
        spent = sum(float(session.get("seconds") or 0.0) for session in sessions)
        lines.append(
            {
                "run": entry.name,
                "cell": model.names[entry.cell_id],
                "seeds": ", ".join(map(str, entry.seeds)),
                "status": entry.status,
                "started": str(sessions[0].get("started", "")) if sessions else "",
                "ended": str(sessions[-1].get("ended", "") or "") if sessions else "",
                "seconds": spent,
                "sessions": len(sessions),
                "run_id": entry.run_id,
                "cell_id": entry.cell_id,
                "data_fingerprint": str(attributes.get("data_fingerprint") or ""),
            }
        )
    frame = pd.DataFrame(lines)
    rows = tuple(
        (
            line["run"],
            line["cell"],
            line["seeds"],
            line["status"],
            line["started"] or "–",
            line["ended"] or "–",
            quantity(line["seconds"], "s"),
            (line["data_fingerprint"][:12] or "–"),
        )
        for line in lines
    )
    columns = ("run", "learner", "seeds", "status", "started", "ended", "time", "data fingerprint")
    return Table("runs", "The runs", columns, rows, frame, "Times are in UTC; a fingerprint names the data.", (6,))
