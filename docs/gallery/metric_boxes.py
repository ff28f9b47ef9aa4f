"""Metrics of five learners, a box over seeds each."""

from _example_study import example_study, target

from waterjar.view import figures

metrics = ["average_accuracy", "forgetting", "effective_rank"]
figure = figures.draw("metric_boxes", example_study(), metrics=metrics)
figures.save(figure, target(__file__), dpi=90)
