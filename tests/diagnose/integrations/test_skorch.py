"""Skorch's nets are watched by a callback; skorch is imported when a test needs it."""

import pickle
from importlib import import_module

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

X, Y = np.random.default_rng(0).normal(size=(20, 3)).astype("float32"), np.arange(20) % 2


def doctor_callback(**settings):
    return import_module("castalia.diagnose.integrations.skorch").DoctorCallback(**settings)


def net(callback):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 2), nn.Softmax(dim=1))
    kind = import_module("skorch").NeuralNetClassifier
    return kind(module, max_epochs=2, verbose=0, callbacks=[callback])


def test_a_net_is_watched_and_its_history_told(doctors, said):
    callback = doctor_callback()
    fitted = net(callback).fit(X, Y)
    (doctor,) = doctors
    assert doctor.module is fitted.module_
    assert doctor.optimizers == [fitted.optimizer_]
    history = fitted.history[:, ("valid_loss", "valid_acc")]
    assert doctor.epochs == [tuple(pytest.approx(x) for x in row) for row in history]
    assert doctor.closed
    assert callback.diagnosis.codes == ("CST112",)
    assert said() == ["WARNING"]


def test_going_on_with_a_net_is_a_training_of_its_own(doctors, said):
    callback = doctor_callback(mute=["CST112"])
    net(callback).fit(X, Y).partial_fit(X, Y)
    assert [len(doctor.epochs) for doctor in doctors] == [2, 2]
    assert callback.diagnosis.codes == ()
    assert said() == ["INFO", "INFO"]


def test_a_net_with_a_doctor_can_be_cloned_and_pickled_after_its_training():
    fitted = net(doctor_callback(mute=["CST207"])).fit(X, Y)
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict(X), fitted.predict(X))
    twin = clone(fitted)
    assert twin.callbacks[0].get_params() == {"mute": ["CST207"]}
    assert twin.callbacks[0].diagnosis is None


def test_a_watched_training_ends_with_the_same_bits():
    watched = net(doctor_callback()).fit(X, Y).predict_proba(X)
    torch.manual_seed(0)
    plain = net(doctor_callback()).set_params(callbacks=[]).fit(X, Y).predict_proba(X)
    assert np.array_equal(watched, plain)
