"""The whole report as JSON: every text, every table, every number. Pictures are left to whoever reads it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pandas as pd

from waterjar._version import __version__
from waterjar.run.shown import json_text
from waterjar.view.report.blocks import Block, Chart, Pictures, Report, Table, Verdicts


def render(report: Report) -> str:
    """The report as text of JSON; what is missing is null."""
    sections = [
        {"name": section.name, "title": section.title, "blocks": [_block(block) for block in section.blocks]}
        for section in report.sections
    ]
    whole = {
        "title": report.title,
        "lead": report.lead,
        "status": asdict(report.status),
        "waterjar": __version__,
        "roots": list(report.roots),
        "sections": sections,
    }
    return json_text(whole, indent=1) + "\n"


def _block(block: Block) -> dict[str, Any]:
    kind = {"kind": type(block).__name__.lower()}
    if isinstance(block, Chart):
        told = {key: getattr(block, key) for key in ("name", "title", "caption", "alt", "figure")}
        return {**kind, **told, "settings": dict(block.settings), "data": records(block.frame)}
    if isinstance(block, Table):
        told = {key: getattr(block, key) for key in ("name", "title", "caption")}
        return {**kind, **told, "data": records(block.frame)}
    if isinstance(block, Pictures):
        return {**kind, "name": block.name, "caption": block.caption, "pictures": [p.caption for p in block.pictures]}
    if isinstance(block, Verdicts):
        return {**kind, "name": block.name, "title": block.title, "data": records(block.frame)}
    return {**kind, **asdict(block)}


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A table as one mapping per row; NaN becomes null."""
    rows: list[dict[str, Any]] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return rows
