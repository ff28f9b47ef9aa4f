"""What each stream brings, and which pairs bring the same."""

from _example_collective import collective_study
from _example_study import target

from waterjar.view import figures

study = collective_study().select("method in (narrow, ensemble)")
figure = figures.draw("contributions", study)
figures.save(figure, target(__file__), dpi=80)
