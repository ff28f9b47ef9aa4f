"""Where the slots of each stream route."""

from _example_collective import collective_study
from _example_study import target

from waterjar.view import figures

study = collective_study().select("method in (narrow, ensemble)")
figure = figures.draw("routing", study)
figures.save(figure, target(__file__), dpi=80)
