"""Strategies side by side, with corrected tests against a baseline."""

from _example_study import example_study, target

from waterjar.view import figures

figure = figures.draw("strategy_comparison", example_study(), metrics=["patched_accuracy", "masked_accuracy"])
figures.save(figure, target(__file__), dpi=90)
