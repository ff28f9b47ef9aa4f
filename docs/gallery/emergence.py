"""Is a collective more than its parts? Of an ensemble, and of streams whose heads nobody trained."""

from _example_collective import collective_study
from _example_study import target

from waterjar.view import figures

study = collective_study().select("method in (ensemble, untrained_heads)")
figure = figures.draw("emergence", study)
figures.save(figure, target(__file__), dpi=72)
