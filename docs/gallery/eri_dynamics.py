"""How the rigidity index comes about, epoch by epoch."""

from _example_study import example_study, target

from waterjar.view import figures

study = example_study().select("method in (scratch_t2, interleaved, sgd, derpp)")
figure = figures.draw("eri_dynamics", study, band="std")
figures.save(figure, target(__file__), dpi=72)
