"""The rigidity index of every learner, at a threshold of your choice."""

from _example_study import example_study, target

from waterjar.view import figures

figure = figures.draw("eri_summary", example_study(), threshold=0.7)
figures.save(figure, target(__file__), dpi=90)
