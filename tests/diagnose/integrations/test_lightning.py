"""Lightning's trainings are watched by a callback; Lightning is imported when a test needs it."""

from importlib import import_module

import pytest
import torch

# Lightning's own advice, and its use of what torch has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")


@pytest.fixture
def trainings():
    return import_module("tests.diagnose.integrations.lightning_trainings")


def doctor_callback(**settings):
    return import_module("castalia.diagnose.integrations.lightning").DoctorCallback(**settings)


@pytest.mark.parametrize("kind, n_optimizers", [("Automatic", 1), ("Manual", 2)])
def test_a_lightning_training_is_watched_from_its_first_step(
    trainings, doctors, said, kind, n_optimizers
):
    module, callback = getattr(trainings, kind)(), doctor_callback()
    trainer = trainings.fit(module, callback)
    (doctor,) = doctors
    assert doctor.module is module
    assert doctor.optimizers == trainer.optimizers
    assert len(doctor.optimizers) == n_optimizers
    assert doctor.epochs == [tuple(pytest.approx(x) for x in logged) for logged in module.logged]
    assert len(doctor.epochs) == 2
    assert doctor.closed
    assert callback.diagnosis.codes == ("CST112",)
    assert said() == ["WARNING"]


def test_a_training_that_breaks_is_diagnosed_too(trainings, doctors, said):
    class Broken(trainings.Automatic):
        def training_step(self, batch, i):
            raise RuntimeError("broken")

    callback = doctor_callback(mute=["CST112"])
    with pytest.raises(RuntimeError, match="broken"):
        trainings.fit(Broken(), callback)
    assert doctors[0].closed
    assert callback.diagnosis.codes == ()
    assert said() == ["INFO"]


def test_a_watched_training_ends_with_the_same_bits(trainings):
    def trained(callback):
        trainings.pl.seed_everything(0, verbose=False)
        module = trainings.Automatic()
        trainings.fit(module, callback)
        return module.net.weight.detach()

    assert torch.equal(trained(doctor_callback()), trained(trainings.pl.Callback()))
