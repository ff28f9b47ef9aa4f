"""The config: what is refused and how, and that a run's identity holds every setting."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from lab.binary.tiny_binary import tiny
from waterjar.errors import WaterjarError
from waterjar.lab.binary import BinaryConfig, parse_config
from waterjar.lab.binary.experiment import run_id_of

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"training": {"epochs": 10, "log_frequency": 4}}, "log_frequency 4 does not divide the 10 epochs"),
        ({"training": {"epochs": 10, "log_frequency": 4}}, "1, 2, 5"),
        ({"learner": "sll"}, "did you mean 'sl'"),
        ({"learner": "rl", "learner_settings": {"baselin": "none"}}, "did you mean 'baseline'"),
        ({"options": [{"name": "reply"}]}, "did you mean 'replay'"),
        ({"options": [{"name": "redo", "settings": {"every": 0}}]}, "option 'redo': setting 'every' is 0"),
        ({"options": [{"name": "redo"}, {"name": "redo"}]}, "each at most once"),
        ({"network": "cnnn"}, "did you mean 'cnn'"),
        (
            {"network": "small_cnn", "network_settings": {}, "options": [{"name": "layer_norm"}]},
            "'layer_norm' is unknown",
        ),
        ({"training": {"optimiser": {"name": "sgdd"}}}, "did you mean 'sgd'"),
        ({"recording": {"eval_tasks": [0, 3]}}, "tasks are 0 to 2"),
        ({"recording": {"features": ["a", "a"]}}, "must be different ones"),
        ({"tasks": {"number": 2, "classes": [1, 1]}}, "must be different ones"),
        ({"tasks": {"number": 2, "classes_per_task": 1}}, "classes_per_task"),
        ({"seeds": [1, 1], "repeats": None}, "must be different ones"),
        ({"seeds": [1, 2], "repeats": 3}, "leave one of them out"),
        ({"repeats": None}, "give `repeats`"),
        ({"repeats": True}, "is true: expected a whole number"),
        ({"randm_baseline": True}, "did you mean 'random_baseline'"),
        ({"random_baseline": True, "training": {"lr_readout": 0.0}}, "learns by its readout alone"),
    ],
)
def test_refused_with_words_that_help(changes: dict[str, object], words: str) -> None:
    with pytest.raises(WaterjarError, match=words.replace("(", r"\(")):
        tiny(**changes)


def test_not_a_mapping_is_pydantics_to_say() -> None:
    with pytest.raises(ValidationError):
        BinaryConfig.model_validate(3)


def test_plain_data_make_the_same_run() -> None:
    config = tiny(learner="rl", options=[{"name": "replay"}, {"name": "layer_norm"}], seed=4)
    plain = config.to_plain()
    assert plain["method"] == "rl+replay+layer_norm"
    assert plain["learner_settings"] == {"baseline": "batch", "decay": 0.99, "entropy": 0.0}
    assert plain["options"][0]["settings"] == {"size": 500, "samples": None, "replay": "later_tasks"}
    assert plain["training"]["optimiser"] == {"name": "sgd", "settings": {"momentum": 0.0, "weight_decay": 0.0}}
    again = parse_config(plain)
    assert again.to_plain() == plain
    assert run_id_of(again, "data") == run_id_of(config, "data")


def test_settings_left_at_their_defaults_or_written_out_are_one_run() -> None:
    written = tiny(options=[{"name": "l2_init", "settings": {"strength": 1e-3}}])
    assert run_id_of(written, "d") == run_id_of(tiny(options=[{"name": "l2_init"}]), "d")
    assert run_id_of(written, "d") != run_id_of(tiny(), "d")


def test_a_repeats_seed_does_not_hang_on_how_many_there_are() -> None:
    assert tiny(repeats=5).repeat_seeds[:2] == tiny(repeats=2).repeat_seeds
    assert len(set(tiny(repeats=50).repeat_seeds)) == 50
    assert not set(tiny(seed=1).repeat_seeds) & set(tiny(seed=2).repeat_seeds)
    assert tiny(seeds=[3, 9], repeats=None).repeat_seeds == (3, 9)
