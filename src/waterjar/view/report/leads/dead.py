"""Networks that died: whose, when, and whether they came back. What dead is, who trained them said in /events."""

from __future__ import annotations

from waterjar.run.events import Event, events_of
from waterjar.view.numbers import listed
from waterjar.view.report.leads._claims import FEW
from waterjar.view.report.model import Model

TITLE = "Dead networks"
ORDER = 21
_DEAD, _ALIVE = "dead_network", "network_alive_again"


def sentences(model: Model) -> list[str]:
    """A sentence for every learner and way to die, with the seeds that went it; nothing where no run says so."""
    together: dict[tuple[str, str, str], list[str]] = {}
    for cell, entries in model.study.cells.items():
        for entry in entries:
            events = events_of(model.study.open(entry))
            for place, event in enumerate(events):
                if event.kind == _DEAD:
                    key = (model.names[cell], event.message, _end(event, events[place:]))
                    together.setdefault(key, []).append(str(event.seed))
    said = [
        f"In {name}, {message} ({'seed' if len(seeds) == 1 else 'seeds'} {listed(seeds)}), {end}."
        for (name, message, end), seeds in together.items()
    ]
    more = len(said) - FEW
    return [*said[:FEW], f"{more} more {'network' if more == 1 else 'networks'} died."] if more > 0 else said


def _end(dead: Event, later: list[Event]) -> str:
    back = [event.message for event in later if event.kind == _ALIVE and event.seed == dead.seed]
    return f"until {back[0]}" if back else "and so to the end of its training"
