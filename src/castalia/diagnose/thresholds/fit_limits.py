"""Thresholds of generalisation: overfitting, underfitting, regularisation and calibration."""

from castalia.diagnose.thresholds.limit_record import Limit

__all__ = ["FIT"]

FIT = {
    # --- overfitting
    "fit.rise": Limit(
        1.25,
        "corpus",
        "validation loss at the end over its least; healthy up to 1.4, 95 % below 1.1; overfitted "
        "from 1.3, so with a second sign",
    ),
    "fit.rise_least": Limit(0.02, "corpus", "the same rise over the least loss itself"),
    "fit.rise_share": Limit(0.03, "chosen", "rise over the guessing loss; less changes no answer"),
    "fit.train_falls": Limit(0.9, "corpus", "training loss since the least validation loss"),
    "fit.gap": Limit(2.5, "corpus", "validation over training loss at the end"),
    "fit.matters": Limit(0.25, "corpus", "validation loss over that of guessing: not a trifle"),
    "fit.score_gap": Limit(0.15, "corpus", "training minus validation accuracy"),
    # --- underfitting, and no better than guessing
    "fit.flat": Limit(0.93, "corpus", "late loss over the loss before: no longer falling"),
    "fit.learnt": Limit(0.95, "corpus", "share of the guessing loss taken away: nothing is left"),
    "fit.underfit": Limit(0.5, "corpus", "the same, below which a flat loss is too high"),
    "fit.simple": Limit(0.08, "chosen", "score of a simple model minus the network's"),
    "fit.simple_least": Limit(0.1, "chosen", "score of a simple model that has learnt something"),
    "fit.beats": Limit(0.02, "chosen", "the network's score above a simple model's"),
    "fit.guess": Limit(0.97, "corpus", "final loss over that of guessing"),
    "fit.hardly": Limit(0.85, "corpus", "the same, worth a remark: much in the data may be chance"),
    "fit.little_learnt": Limit(0.3, "corpus", "share taken away, below which validation counts"),
    "fit.answers": Limit(0.1, "corpus", "accuracy above the share of the commonest class"),
    # --- regularisation
    "fit.penalty": Limit(0.5, "chosen", "share of the loss that is no error"),
    "fit.penalty_least": Limit(0.15, "corpus", "penalty over the loss of guessing"),
    "fit.held_back": Limit(0.6, "corpus", "share of the guessing loss taken away: still poor"),
    "fit.held_back_loss": Limit(0.5, "corpus", "last loss over the first, guessing unknown"),
    "fit.far_learnt": Limit(0.9, "corpus", "share taken away in spite of far too strong penalties"),
    "dropout.strong": Limit(0.65, "published", "usual rates are 0.1 to 0.5"),
    "dropout.far": Limit(0.75, "published", "a rate beyond all custom"),
    "decay.strong": Limit(0.05, "published", "usual: 1e-5 to 1e-2, as part of the gradient"),
    "decay.far": Limit(4.0, "chosen", "times either of these: beyond all custom"),
    "decay.decoupled": Limit(1.0, "published", "usual rates of AdamW are 0.01 to 0.1"),
    # --- calibration
    "calibration.error": Limit(0.12, "corpus", "confidence minus accuracy on validation rows"),
    "calibration.falling": Limit(0.9, "corpus", "last fifth of the loss over the one before"),
    "smoothing.usual": Limit(0.2, "published", "label smoothing; 0.1 in Szegedy et al., 2016"),
    # --- our own estimators
    "estimator.crawls": Limit(0.05, "chosen", "share of the loss that a linear model took away"),
    "estimator.as_steep": Limit(0.5, "chosen", "last over first gradient of a linear model"),
    "estimator.falls": Limit(0.05, "chosen", "fall from the first to the last third of few steps"),
    "estimator.rate_helped": Limit(0.98, "chosen", "least over first loss of a range test"),
    "estimator.penalty": Limit(1e-3, "published", "C; searches usually begin at 0.001"),
    "estimator.gain": Limit(1e-3, "chosen", "gain of the score for which a remedy is kept"),
    "estimator.likely": Limit(0.5, "chosen", "confidence of a remark that becomes a remedy"),
    # --- preflight
    "preflight.initial": Limit(0.3, "chosen", "distance of the first loss from its expectation"),
    "preflight.tiny": Limit(0.95, "chosen", "accuracy or R² on two dozen rows"),
    "preflight.mixed": Limit(1.01, "chosen", "loss on mixed-up rows over that on rows as they are"),
    "preflight.chance": Limit(0.05, "chosen", "R² on shuffled targets that is chance"),
}
