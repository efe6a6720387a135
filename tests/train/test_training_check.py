"""Every wrong setting is named before the first step."""

import pytest
import torch

import castalia
from castalia import MLPRegressor, Training
from castalia.errors import InvalidParameter
from castalia.train import check_training


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"optimizer": "admw"}, "`optimizer` must be .*got 'admw'. Did you mean `adamw`"),
        ({"precision": "fp16"}, "`precision` must be .*got 'fp16'"),
        ({"strategy": "dpp"}, "`strategy` must be .*got 'dpp'. Did you mean `ddp`"),
        ({"schedule": "cosinus"}, "`schedule` must be .*got 'cosinus'. Did you mean `cosine`"),
        ({"weight_decay": -1}, "`weight_decay` must be a number of at least 0; got -1"),
        ({"clip": 0}, "`clip` must be a positive number, .* or None; got 0"),
        (
            {"clip": ("value", -1)},
            r"`clip` must be .*\('value', positive number\).*got \('value', -1",
        ),
        ({"clip": ("norm", 1)}, r"`clip` must be .*; got \('norm', 1\)"),
        ({"accumulate": 0}, "`accumulate` must be a whole number of at least 1; got 0"),
        ({"accumulate": 1.5}, "`accumulate` must be a whole number of at least 1; got 1.5"),
        ({"patience": 0}, "`patience` must be a whole number of at least 1 or None; got 0"),
        ({"validation": 1.5}, "`validation` must be a share from 0 up to 1, or .*; got 1.5"),
        ({"patience": 3, "validation": 0}, "`patience=3` needs validation rows"),
        ({"compile": "fast"}, "`compile` must be True, False, 'auto' or .*; got 'fast'"),
        ({"device": "gpu"}, "`device` must be 'auto', 'cpu', .*; got 'gpu'"),
        ({"callbacks": [3]}, "`callbacks` must be castalia.Callback objects; got 3"),
        ({"checkpoint_every": 5}, "`checkpoint_every=5` needs a place to write; set `run`"),
        ({"average": "mean"}, "`average` must be None, 'ema', 'swa', .*; got 'mean'"),
    ],
    ids=str,
)
def test_a_wrong_setting_is_named_with_its_rule(settings, message):
    with pytest.raises(InvalidParameter, match=message):
        MLPRegressor(training=Training(**settings)).fit([[0.0], [1.0]], [0.0, 1.0])


def test_anything_but_a_training_is_refused():
    with pytest.raises(InvalidParameter, match="`training` must be a castalia.Training or None"):
        MLPRegressor(training={"clip": 1}).fit([[0.0], [1.0]], [0.0, 1.0])


def test_the_defaults_pass():
    check_training(Training())


def test_settings_are_read_and_set_by_name():
    training = Training().set_params(clip=2.0)
    assert training.get_params()["clip"] == 2.0
    with pytest.raises(InvalidParameter, match="no setting `optimiser`.*Did you mean `optimizer`"):
        training.set_params(optimiser="adam")


def test_classes_and_optimizers_of_torch_are_saved_by_name(tmp_path):
    given = torch.optim.RAdam([torch.zeros(1)], lr=0.02)
    training = Training(optimizer=given, schedule=("StepLR", {"step_size": 5}), validation=0)
    X = torch.randn(40, 2, generator=torch.Generator().manual_seed(0)).numpy()
    model = MLPRegressor(hidden=(4,), epochs=2, training=training, random_state=0).fit(X, X[:, 0])
    castalia.save(model, tmp_path / "model")
    again = castalia.load(tmp_path / "model")
    assert again.training.optimizer in (("radam", {"lr": 0.02}), ["radam", {"lr": 0.02}])
    assert again.training.schedule == training.schedule
    assert (again.predict(X) == model.predict(X)).all()


def test_a_layer_with_a_rate_of_zero_stays_as_it_was():
    X = torch.randn(40, 2, generator=torch.Generator().manual_seed(0)).numpy()

    def fitted(**settings):
        training = Training(validation=0, **settings)
        model = MLPRegressor(hidden=(4,), epochs=2, training=training, random_state=0)
        return dict(model.fit(X, X[:, 0]).module_.named_parameters())

    moved = fitted()
    first = next(iter(moved))
    layer = first.rpartition(".")[0]
    kept = fitted(optimizer=("adam", {"rates": {layer: 0.0}}))
    start = fitted(optimizer=("sgd", {"lr": 1e-30}))
    assert torch.equal(kept[first], start[first])
    assert not torch.equal(moved[first], start[first])
    last = list(moved)[-1]
    assert not torch.equal(kept[last], start[last])
