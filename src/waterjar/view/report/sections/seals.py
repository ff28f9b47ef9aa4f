"""Whether every run is what it was when it was sealed."""

from __future__ import annotations

import pandas as pd

from waterjar.view.report.blocks import Block, Heading, Items, Table, Text
from waterjar.view.report.model import Model

TITLE = "Seals"
ORDER = 120
_MOST = 12


def blocks(model: Model) -> list[Block]:
    """The state of every seal, its root hash, and what does not hold; nothing without a run or a ledger."""
    if not model.seals:
        return []
    frame = pd.DataFrame(
        [
            {
                "run": seal.run,
                "state": seal.state,
                "root_hash": seal.root,
                "problems": "; ".join(seal.problems),
                "probe_of": seal.probe_of,
            }
            for seal in model.seals
        ]
    )
    rows = tuple((seal.title, seal.state, seal.root or "–") for seal in model.seals)
    made: list[Block] = [
        model.status,
        Text(
            "A seal is a checksum over every file of a run, and its root hash a checksum over those. Compare it with "
            "what the authors printed; waterjar verify, or sha256sum alone, checks the files."
        ),
        Table("seals", "Root hashes", ("run", "state", "root hash"), rows, frame),
    ]
    troubled = [seal for seal in model.seals if seal.problems]
    if troubled:
        said = []
        for seal in troubled:
            more = len(seal.problems) - _MOST
            text = "; ".join(seal.problems[:_MOST]) + (f"; and {more} more" if more > 0 else "")
            said.append((f"{seal.title} ({seal.state})", text))
        made += [Heading("What does not hold"), Items(tuple(said))]
    return made
