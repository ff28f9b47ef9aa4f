"""Accuracy on every task after training on every task."""

from _example_study import example_study, target

from waterjar.view import figures

figure = figures.draw("task_matrix", example_study())
figures.save(figure, target(__file__), dpi=90)
