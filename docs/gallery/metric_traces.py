"""Metrics of three learners over training, over epochs or over tasks."""

from _example_study import example_study, target

from waterjar.view import figures

study = example_study().select("method in (sgd, ewc_on, derpp)")
metrics = [
    "average_accuracy",
    "forgetting",
    "learning_time",
    "effective_rank",
    "feature_variance",
    "weight_change_init",
]
figure = figures.draw("metric_traces", study, metrics=metrics)
figures.save(figure, target(__file__), dpi=80)
