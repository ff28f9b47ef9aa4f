"""How far a representation moves: every snapshot against every other."""

from _example_study import example_study, target

from waterjar.view import figures

study = example_study().select("method in (scratch_t2, sgd, derpp) and seed in (1, 2)")
figure = figures.draw("drift_matrix", study, eval_sets=["t1_all"])
figures.save(figure, target(__file__), dpi=90)
