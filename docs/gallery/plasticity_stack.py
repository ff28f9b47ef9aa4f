"""Nine metrics of features and weights over training."""

from _example_study import example_study, target

from waterjar.view import figures

study = example_study().select("method in (sgd, derpp) and seed in (1, 2, 3)")
figure = figures.draw("plasticity_stack", study, band="std")
figures.save(figure, target(__file__), dpi=72)
