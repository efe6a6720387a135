"""One table of thresholds.

The thresholds that a finding shows beside its measurement, with what set each. "Suite" is
``evidence/corpus``, 65 healthy trainings and 274 faulty ones; ``python -m evidence doctor``
runs it. "Chosen" says that nobody measured the number.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LIMITS", "Limit", "limit"]


@dataclass(frozen=True)
class Limit:
    """A threshold.

    Attributes
    ----------
    value
        The number.
    why
        The experiment, theorem or convention that set it.
    """

    value: float
    why: str


LIMITS = {
    # --- optimisation
    "rate.grown": Limit(
        2.0, "a loss that ends at twice its start; suite: healthy at most 1.03 of it"
    ),
    "rate.ratio": Limit(
        0.1, "early median; suite: too high rates 0.1 to 13; healthy up to 0.5, so never alone"
    ),
    "rate.turning": Limit(
        -0.3, "on a quadratic, steps beyond 1/curvature give negative cosines; healthy above -0.16"
    ),
    "rate.died": Limit(0.6, "share of a layer alive at the start and dead at the end; chosen"),
    "rate.spike": Limit(5.0, "highest early loss over the first; suite: healthy at most 2.6"),
    "rate.slow": Limit(3e-4, "suite: healthy medians 5e-3 and more, too low rates up to 3e-4"),
    "rate.taken_back": Limit(
        1e-3,
        "last rate over the first, where half of the steps were made below a hundredth; chosen",
    ),
    "rate.slow_learnt": Limit(0.6, "chosen: more than half of the guessing loss is still there"),
    "gradient.shrinks": Limit(
        1e-3, "first over last layer; suite: healthy plain nets above 0.08, vanishing below 1e-2"
    ),
    "gradient.per_layer": Limit(0.3, "suite: healthy plain nets keep 0.4 and more per layer"),
    "gradient.grows": Limit(
        1e3, "first over last layer, or over a sequence; suite: healthy below 1"
    ),
    "gradient.spike": Limit(100.0, "largest over median norm; suite: healthy at most 82"),
    "units.dead": Limit(
        0.6, "share of a layer; suite: healthy ReLU layers up to 0.47, dead ones from 0.83"
    ),
    "units.dead_hurting": Limit(0.4, "chosen lower when the loss is also poor"),
    "units.saturated": Limit(
        0.6, "suite: healthy hidden layers up to 0.27, saturated ones from 0.65"
    ),
    "units.equal": Limit(0.9, "share of rows equal to another: chance gives 0"),
    "start.loss": Limit(
        3.0, "first loss over that of guessing; suite: healthy up to 3.1, 95 % below 2.4"
    ),
    "start.depth": Limit(
        100.0, "growth or decay of the spread over depth; He and Glorot keep it within 5"
    ),
    "end.falling": Limit(
        0.1, "fall in the last fifth; suite: early stops 0.03 to 0.56, so with much left to learn"
    ),
    "end.gain": Limit(0.03, "extrapolated fall over the loss of guessing; chosen"),
    "end.left": Limit(
        0.8, "suite: early stops have learnt up to 0.73, one 0.88 that still fell by half"
    ),
    "steps.stale": Limit(0.5, "share of looks with left-over gradients: 0 or 1 in practice"),
    "steps.few": Limit(60, "updates in all; suite: healthy trainings make 90 and more"),
    "curvature.ratio": Limit(
        100.0,
        "suite: healthy below 20 but for one of 132 that is fitted; ill-conditioned 178 to 8e5",
    ),
    "noise.loss": Limit(
        0.8,
        "chosen; suite: healthy up to 4 once nearly fitted, so only at tiny batches and a poor fit",
    ),
    "turning.zigzag": Limit(
        -0.5, "a quadratic at its limit of stability gives -1; suite: healthy above -0.16"
    ),
    "batch.norm": Limit(4, "numbers per channel: the variance of 4 is off by 80 % typically"),
    "batch.hasty": Limit(0.7, "momentum above which the last batch decides; torch's default 0.1"),
    "modes.random": Limit(1e-3, "two answers to the same rows; rounding leaves 1e-6"),
    "modes.steps": Limit(0.3, "share of steps in evaluation mode; chosen"),
    "batch.running": Limit(1.0, "distance of running from batch mean in its spreads, late"),
    # --- data
    "inputs.large": Limit(
        20.0,
        "largest size of a column; suite: healthy up to 1.5, unscaled ones from 207",
    ),
    "inputs.small": Limit(0.02, "largest size of a column"),
    "inputs.apart": Limit(100.0, "largest over median spread of columns"),
    "targets.large": Limit(20.0, "size of regression targets"),
    "targets.small": Limit(0.02, "spread of regression targets"),
    "classes.rare": Limit(0.1, "share of the rarest class over an even share, below it rare"),
    "labels.noise": Limit(
        0.08, "errors among the surer half of the answers; clean data below 0.05"
    ),
    "labels.noise_ratio": Limit(0.5, "the same over the errors of all; clean data below 0.4"),
    "labels.noise_margin": Limit(
        0.15, "added to the errors over those of guessing; suite: a bent coin -0.04, noise from 0.2"
    ),
    "labels.worse": Limit(
        0.1, "validation minus training accuracy, of equal rows and no dropout: 0 by theory; chosen"
    ),
    "rows.shared": Limit(0.02, "share of validation rows seen in training"),
    "rows.alone": Limit(0.97, "accuracy or R² of one column alone, with no other near it"),
    "rows.few": Limit(200, "distinct rows; with a gap to validation, more of them help most"),
    "rows.shift": Limit(0.75, "suite: random splits 0.36 to 0.58, shifted ones 1.0"),
    "rows.shift_altered": Limit(
        0.97, "the same where training rows are altered on the way: turned, cut, moved; chosen"
    ),
    "order.between": Limit(4.0, "suite: shuffled 0.2 to 3.9, ordered from 14"),
    # --- generalisation
    "fit.rise": Limit(
        1.25, "suite: healthy up to 1.4, 95 % below 1.1; overfitted from 1.3, so with a second sign"
    ),
    "fit.rise_share": Limit(
        0.03, "rise of the validation loss over that of guessing; chosen: less changes no answer"
    ),
    "fit.gap": Limit(2.5, "validation over training loss at the end"),
    "fit.score_gap": Limit(0.15, "training minus validation accuracy"),
    "fit.baseline": Limit(0.9, "baseline's loss over the network's"),
    "fit.penalty": Limit(0.5, "share of the loss that is no error; chosen"),
    "fit.simple": Limit(0.08, "score of a simple model minus the network's; chosen"),
    "fit.guess": Limit(0.97, "final loss over that of guessing"),
    "fit.hardly": Limit(0.85, "the same, only worth a remark: much in the data may be chance"),
    "dropout.strong": Limit(0.65, "usual rates are 0.1 to 0.5"),
    "decay.strong": Limit(0.05, "usual rates are 1e-5 to 1e-2 where decay is part of the gradient"),
    "decay.decoupled": Limit(1.0, "usual rates of AdamW are 0.01 to 0.1"),
    "calibration.error": Limit(0.12, "expected calibration error on validation rows"),
    "inputs.same": Limit(0.9, "share of the input that no row changes; chosen"),
    "outputs.same": Limit(1e-3, "spread of the outputs over rows, over that of the targets"),
    "latent.silent": Limit(
        0.02, "nats per dimension: below it a dimension carries next to nothing"
    ),
    "latent.share": Limit(0.7, "share of silent dimensions; suite: healthy codes up to 0.5"),
    "future.change": Limit(1e-4, "rounding leaves 1e-6; a leak as much as the future itself"),
    "future.copied": Limit(
        0.98, "targets equal to the token just read; chosen: a masked model leaves most out"
    ),
    "tokens.unseen": Limit(0.1, "share of validation tokens that training never met; chosen"),
    "padding.share": Limit(0.1, "share of padding among the targets"),
}


def limit(name: str) -> float:
    """Return a threshold by name."""
    return LIMITS[name].value
