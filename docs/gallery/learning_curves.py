"""Learning curves: what was evaluated, over epochs."""

from _example_study import example_study, target

from waterjar.view import figures

figure = figures.draw("learning_curves", example_study(), eval_sets=["t1_all", "t2_all_normal"])
figures.save(figure, target(__file__), dpi=90)
