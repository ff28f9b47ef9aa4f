"""Accuracy under shifts and attacks, of a collective beside its best stream and an ensemble."""

from _example_collective import collective_study
from _example_study import target

from waterjar.view import figures

study = collective_study().select("method = narrow")
figure = figures.draw("shift_severity", study)
figures.save(figure, target(__file__), dpi=80)
