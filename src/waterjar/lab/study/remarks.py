"""What there is to say about a declaration that is valid: limits that limit nothing, words that wait."""

from __future__ import annotations

from waterjar.lab.config import resolve_device
from waterjar.lab.study.kinds import Declared
from waterjar.run.shelf import found_parts
from waterjar.run.study import Study

_MEGABYTE = 10**6


def notes(declaration: Declared, study: Study | None = None) -> list[str]:
    """What is said before the training; or, of the runs of a `study`, what is said after it."""
    if study is not None:
        return [*_over_the_limit(declaration, study), *_other_versions(study)]
    found = _about_the_limit(declaration)
    if declaration.analysis.attention_analysis:
        found.append("analysis.attention_analysis is not acted on yet: attention cannot be recorded")
    return found


def _other_versions(study: Study) -> list[str]:
    """Runs whose parts from outside were of another package or version than is installed: a number may differ."""
    here = {f"{part.shelf}.{part.name}": part.origin for part in found_parts()}
    found: dict[str, list[str]] = {}
    for run in study:
        sessions = run.attributes["provenance"]["sessions"]
        parts = {pair for session in sessions for pair in session.get("parts", {}).items()}
        for part, origin in sorted(parts):
            if here.get(part) != origin:
                told = f"trained with {part} of {origin}, and {here.get(part, 'none')} is installed"
                found.setdefault(told, []).append(run.path.name)
    return [f"{', '.join(names[:3])}{' …' if len(names) > 3 else ''}: {told}" for told, names in found.items()]


def _about_the_limit(declaration: Declared) -> list[str]:
    limit = declaration.resources.gpu_memory_limit
    if limit is None:
        return []
    device = resolve_device(declaration.resources.device)
    if device != "cuda":
        return [f"resources.gpu_memory_limit is {limit:g} MB, and limits nothing on the device '{device}'"]
    import torch  # noqa: PLC0415 - kept out of the way of those who only read declarations

    there = torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory / _MEGABYTE
    return [f"resources.gpu_memory_limit is {limit:g} MB, and the device has {there:.0f} MB"] if limit > there else []


def _over_the_limit(declaration: Declared, study: Study) -> list[str]:
    limit = declaration.resources.gpu_memory_limit
    if limit is None:
        return []
    peaks = {run.path.name: run["resources"].get("peak_device_memory") for run in study if "resources" in run.nodes}
    taken = {name: float(peak.max()) / _MEGABYTE for name, peak in peaks.items() if peak is not None and peak.size}
    found = [
        f"{name} took {most:.0f} MB on the device, more than resources.gpu_memory_limit, which is {limit:g} MB"
        for name, most in taken.items()
        if most > limit
    ]
    silent = len(study) - len(taken)
    if silent and resolve_device(declaration.resources.device) == "cuda":
        found.append(
            f"{silent} of {len(study)} runs did not record what they took on the device, so that "
            "resources.gpu_memory_limit was not checked"
        )
    return found
