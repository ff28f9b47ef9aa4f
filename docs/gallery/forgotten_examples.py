"""Which examples three learners forget, of the first task and the second."""

from _example_study import example_study, target

from waterjar.view import figures

study = example_study().select("method in (interleaved, sgd, ewc_on, derpp)")
figure = figures.draw("forgotten_examples", study)
figures.save(figure, target(__file__), dpi=90)
