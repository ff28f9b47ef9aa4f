"""Stability against plasticity: forgetting and learning accuracy, a point per seed."""

from _example_study import example_study, target

from waterjar.view import figures

study = example_study().select("method in (sgd, ewc_on, derpp)")
figure = figures.draw("metric_scatter", study, x="forgetting", y="learning_accuracy")
figures.save(figure, target(__file__), dpi=90)
