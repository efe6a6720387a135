"""How a training runs: one value object for every estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from castalia.errors import InvalidParameter
from castalia.optim import named_optimizer, named_schedule
from castalia.utils.text import did_you_mean, listing

__all__ = ["Training"]


@dataclass
class Training:
    """Settings of the loop that are not the model's own.

    Parameters
    ----------
    optimizer
        Name (``castalia.optim.OPTIMIZERS``, or any class of ``torch.optim``, in any case), a name
        and arguments, such as ``("muon", {"momentum": 0.9})``, an optimizer, whose class, arguments
        and rate are taken, or a callable ``(parameters, lr=…) -> Optimizer``. An argument
        ``rates`` gives layers rates of their own: ``("adamw", {"rates": {"head": 10.0}})``
        multiplies that of all parameters whose names begin so.
        ``"conjugate_gradient"``, ``"newton"``, ``"gauss_newton"`` and ``"hessian_free"`` find the
        length of their steps, so ``lr`` is not used; they want large batches.
    schedule
        Learning-rate schedule: a name, a ``castalia.optim.Schedule``, a scheduler of torch with its
        arguments, such as ``("StepLR", {"step_size": 300})``, counted in steps, a function of step
        and number of steps, or None for a constant rate.
    weight_decay
        Decay of weight matrices inside the optimizer; biases are exempt.
    clip
        Largest allowed norm of the gradient; ``("value", v)`` cuts each of its numbers to the range
        from -v to v instead; None leaves it alone.
    accumulate
        Number of micro-batches a batch is cut into; the step equals that of the whole batch.
    average
        ``"ema"``, ``("ema", decay)`` or ``"swa"``: train on, predict with averaged weights.
        ``"lookahead"`` or ``("lookahead", decay)``: go back to the average every fifth step.
    patience
        Stop after this many epochs without a better validation loss, and restore the best weights.
    validation
        Share of the rows held out (none when that gives fewer than 10 rows), 0 to train on
        everything, or ``(X, y)``.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"mps"``.
    precision
        ``"float32"``, ``"tf32"``, ``"bf16"``, ``"float64"``, or ``"auto"``: on CUDA bf16 where the
        chip has it and the step is large, tf32 products otherwise; on the CPU float64 for at most
        100 rows, float32 otherwise.
    compile
        ``"auto"`` records small CUDA steps as a graph; True or a ``torch.compile`` mode compiles
        the network; False neither.
    step
        ``"auto"`` takes each step in the fastest way there is (``settings_["step"]`` says which);
        ``"plain"`` as one would write it: backward, clip, ``optimizer.step``. The weights are the
        same.
    strategy
        ``"single"``, ``"ddp"``, ``"fsdp"``; ``"auto"``: ddp in several processes, else single.
    workers
        Processes that this training starts and that train together, as under ``torchrun``: on this
        machine, or on the cluster of a ``castalia.cluster`` block. None: no others.
    shard
        With ``"fsdp"``: how many processes divide the weights; groups of so many hold copies
        (hybrid sharding). None: all of them.
    offload
        With ``"fsdp"``: keep weights, gradients and optimizer in the memory of the CPU.
    recompute
        Compute what is inside each block (layer of a list, such as those of a transformer) again
        for its gradient instead of keeping it: less memory, a third more time, the same weights.
    callbacks
        ``castalia.Callback`` objects.
    run
        Folder of the run, such as ``"runs/titanic"``; metrics and checkpoints go there, and the
        same call resumes it.
    checkpoint_every
        Steps between checkpoints of a ``run``; None: by the clock, ten seconds apart or as far as
        keeps writing below 2 % of the time. A kill costs no more than what came after the last.
    watch
        Whether the doctor inspects sampled steps, which changes nothing in the training; what it
        finds is in ``diagnosis_`` and in the run. ``"auto"``: when the training is expected to take
        a second or more, or has a run; True: always; False: never.
    verbose
        True, False, or ``"auto"``: a progress bar on a terminal when the training takes more than a
        second.

    Examples
    --------
    >>> Training(optimizer="sgd", clip=1.0).get_params()["clip"]
    1.0
    """

    optimizer: str | tuple[str, dict[str, Any]] | Callable[..., Any] = "adam"
    schedule: Any = None
    weight_decay: float = 0.0
    clip: float | tuple[str, float] | None = None
    accumulate: int = 1
    average: Any = None
    patience: int | None = None
    validation: Any = 0.1
    device: str = "auto"
    precision: str = "auto"
    compile: Any = "auto"
    step: str = "auto"
    strategy: str = "auto"
    workers: int | None = None
    shard: int | None = None
    offload: bool = False
    recompute: bool = False
    callbacks: Sequence[Any] = ()
    run: Any = None
    checkpoint_every: int | None = None
    watch: Any = "auto"
    verbose: Any = "auto"

    def __post_init__(self) -> None:
        self.optimizer = named_optimizer(self.optimizer)
        self.schedule = named_schedule(self.schedule)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings as a dict, so that searches can reach ``training__optimizer``."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **settings: Any) -> Training:
        """Change settings by name."""
        known = [field.name for field in fields(self)]
        for name, value in settings.items():
            if name not in known:
                raise InvalidParameter(
                    f"Training: has no setting `{name}`; it has "
                    f"{listing(known, 'and', 20)}.{did_you_mean(name, known)}"
                )
            setattr(self, name, value)
        return self
