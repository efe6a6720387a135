"""Trainings by Lightning, in a file of their own: importing Lightning takes seconds."""

import lightning.pytorch as pl
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

DATA = TensorDataset(torch.randn(8, 3), torch.arange(8) % 2)


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
