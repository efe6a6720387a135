"""Trainers of transformers are watched by a callback; it is imported when a test needs it."""

from importlib import import_module

import pytest
import torch
import torch.nn.functional as F
from torch import nn

ROWS = [{"x": torch.randn(3), "labels": torch.tensor(i % 2)} for i in range(8)]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x, labels):
        logits = self.fc(x)
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


class BrokenNet(Net):
    def forward(self, x, labels):
        raise RuntimeError("broken")


def accuracy(predicted):
    return {"accuracy": float((predicted.predictions.argmax(1) == predicted.label_ids).mean())}


def doctor_callback():
    return import_module("castalia.diagnose.integrations.transformers").DoctorCallback()


def trainer(folder, callback, kind=Net, **settings):
    torch.manual_seed(0)
    transformers = import_module("transformers")
    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=2,
        per_device_train_batch_size=4,
        eval_strategy="epoch",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        learning_rate=0.1,
        **settings,
    )
    return transformers.Trainer(
        kind(),
        arguments,
        train_dataset=ROWS,
        eval_dataset=ROWS,
        compute_metrics=accuracy,
        callbacks=[callback] if callback else None,
    )


@pytest.mark.parametrize("settings", [{}, {"eval_on_start": True}], ids=["plain", "eval-on-start"])
def test_a_trainer_is_watched_and_its_evaluations_told(doctors, said, tmp_path, settings):
    callback = doctor_callback()
    one = trainer(tmp_path, callback, **settings)
    one.train()
    (doctor,) = doctors
    assert doctor.module is one.model
    (optimizer,) = doctor.optimizers
    held = [p for group in optimizer.param_groups for p in group["params"]]
    assert {id(p) for p in held} == {id(p) for p in one.model.parameters()}
    assert type(optimizer).__module__.startswith("torch.optim")
    rows = [row for row in one.state.log_history if "eval_loss" in row and row["step"] > 0]
    logged = [(pytest.approx(row["eval_loss"]), row["eval_accuracy"]) for row in rows]
    assert doctor.epochs == logged
    assert len(logged) == 2
    assert doctor.closed
    assert callback.diagnosis.codes == ("CST112",)
    assert said() == ["WARNING"]
    one.evaluate()
    assert len(doctor.epochs) == 2


def test_the_metric_for_the_best_model_is_the_score(doctors, tmp_path):
    callback = doctor_callback()
    one = trainer(tmp_path, callback, metric_for_best_model="kappa", greater_is_better=True)
    one.compute_metrics = lambda predicted: {"accuracy": 0.1, "kappa": 0.7}
    one.train()
    assert [score for _, score in doctors[0].epochs] == [0.7, 0.7]


def test_a_training_that_breaks_can_still_be_diagnosed(doctors, tmp_path):
    callback = doctor_callback()
    with pytest.raises(RuntimeError, match="broken"):
        trainer(tmp_path, callback, BrokenNet).train()
    assert callback.diagnosis.codes == ("CST112",)


def test_a_watched_training_ends_with_the_same_bits(tmp_path):
    def trained(callback):
        one = trainer(tmp_path, callback)
        one.train()
        return one.model.fc.weight.detach()

    assert torch.equal(trained(doctor_callback()), trained(None))
