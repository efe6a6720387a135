import lightning.pytorch as pl
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from castalia.diagnose.integrations.lightning import DoctorCallback

DATA = TensorDataset(torch.randn(8, 3), torch.arange(8) % 2)
# Lightning's own advice, and its use of what torch has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")


class Automatic(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 2)
        self.logged = []

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, i):
        return F.cross_entropy(self(batch[0]), batch[1])

    def validation_step(self, batch, i):
        outputs = self(batch[0])
        self.log("val_loss", F.cross_entropy(outputs, batch[1]))
        self.log("val_acc", (outputs.argmax(1) == batch[1]).float().mean())

    def on_validation_end(self):
        if not self.trainer.sanity_checking:
            found = self.trainer.callback_metrics
            self.logged.append((found["val_loss"].item(), found["val_acc"].item()))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Manual(Automatic):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.other = nn.Linear(3, 2)

    def training_step(self, batch, i):
        for net, optimizer in zip((self.net, self.other), self.optimizers(), strict=True):
            optimizer.zero_grad()
            self.manual_backward(F.cross_entropy(net(batch[0]), batch[1]))
            optimizer.step()

    def configure_optimizers(self):
        return [torch.optim.SGD(net.parameters(), lr=0.1) for net in (self.net, self.other)]


def fit(module, callback):
    trainer = pl.Trainer(
        max_epochs=2,
        callbacks=[callback],
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    loader = DataLoader(DATA, batch_size=4)
    trainer.fit(module, loader, loader)
    return trainer


@pytest.mark.parametrize("kind, n_optimizers", [(Automatic, 1), (Manual, 2)])
def test_a_lightning_training_is_watched_from_its_first_step(doctors, said, kind, n_optimizers):
    module, callback = kind(), DoctorCallback()
    trainer = fit(module, callback)
    (doctor,) = doctors
    assert doctor.module is module
    assert doctor.optimizers == trainer.optimizers
    assert len(doctor.optimizers) == n_optimizers
    assert doctor.epochs == [tuple(pytest.approx(x) for x in logged) for logged in module.logged]
    assert len(doctor.epochs) == 2
    assert doctor.closed
    assert callback.diagnosis.codes == ("CST112",)
    assert said() == ["WARNING"]


def test_a_training_that_breaks_is_diagnosed_too(doctors, said):
    class Broken(Automatic):
        def training_step(self, batch, i):
            raise RuntimeError("broken")

    callback = DoctorCallback(mute=["CST112"])
    with pytest.raises(RuntimeError, match="broken"):
        fit(Broken(), callback)
    assert doctors[0].closed
    assert callback.diagnosis.codes == ()
    assert said() == ["INFO"]


def test_a_watched_training_ends_with_the_same_bits():
    def trained(callback):
        pl.seed_everything(0, verbose=False)
        module = Automatic()
        fit(module, callback)
        return module.net.weight.detach()

    assert torch.equal(trained(DoctorCallback()), trained(pl.Callback()))
