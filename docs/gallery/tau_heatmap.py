"""How much of the delay is the choice of the threshold."""

from _example_study import example_study, target

from waterjar.view import figures

figure = figures.draw("tau_heatmap", example_study())
figures.save(figure, target(__file__), dpi=90)
