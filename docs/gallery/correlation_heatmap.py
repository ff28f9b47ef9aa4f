"""Which diagnostics move together over runs."""

from _example_study import example_study, target

from waterjar.view import figures

figure = figures.draw(
    "correlation_heatmap",
    example_study(),
    metrics=["pd", "sfr_rel", "patched_accuracy", "average_accuracy", "forgetting", "learning_time", "seconds"],
)
figures.save(figure, target(__file__), dpi=90)
