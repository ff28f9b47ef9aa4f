"""What an accuracy costs."""

from _example_study import example_study, target

from waterjar.view import figures

figure = figures.draw("cost_accuracy", example_study(), cost="seconds")
figures.save(figure, target(__file__), dpi=90)
