"""A doctor that records what it receives."""

import torch

from castalia.diagnose.record import Record


class FakeDoctor:
    """Takes the place of the doctor; `said` is what it received, in order."""

    made = ()  # a list of its own in every test, see the fixture

    def __init__(self, module, optimizer=None, loss_fn=None, task=None, on_finding=None):
        self.module, self.optimizers = module, list(optimizer or ())
        self.logs, self.epochs, self.closed = [], [], False
        self.failed, self.record = None, Record()
        FakeDoctor.made.append(self)

    def beside(self, others, known):
        self.others = others

    def reads(self, again):
        self.again = again

    def log(self, loss=None, outputs=None, targets=None, inputs=None):
        grad = torch.is_grad_enabled()
        self.logs.append({"loss": loss, "outputs": outputs, "targets": targets, "grad": grad})

    def raised(self, outputs, targets):
        self.failed = outputs, targets

    def epoch(self, validation_loss=None, validation_score=None):
        self.epochs.append((validation_loss, validation_score))

    validated = epoch

    def diagnosis(self, mute=()):
        from castalia.diagnose import Diagnosis, finding

        found = finding("CST112", "error", 0.9, "Gradients are never reset.", "Reset them.")
        return Diagnosis((found,) if "CST112" not in mute else (), ("A note.",))

    def close(self):
        self.closed = True
