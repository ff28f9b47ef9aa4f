"""Manifold geometry over training, with simulated capacity over the calculated one."""

from _example_study import example_study, target

from waterjar.view import figures

study = example_study().select("method in (sgd, derpp) and seed in (1, 2, 3)")
figure = figures.draw("geometry_stack", study, band="std", n_t=30, simulate_every=4, n_trials=30)
figures.save(figure, target(__file__), dpi=72)
