"""Thresholds of the active examination.

Differences of error rates and losses must also exceed their sampling error by ``examine.sure``
standard errors, so that small data keeps quiet by itself.
"""

from castalia.diagnose.thresholds.limit_record import Limit

__all__ = ["EXAMINATION"]

EXAMINATION = {
    # --- sampling error
    "examine.sure": Limit(3.0, "definition", "standard errors; chance passes them once in 1,000"),
    "examine.very_sure": Limit(5.0, "definition", "the same, for what steers all trials"),
    "examine.leak_sure": Limit(4.0, "definition", "the same: nothing but a leak passes them"),
    "examine.learned": Limit(0.02, "tests", "relative rise of the loss on mixed-up rows"),
    # --- tiny fit
    "examine.tiny_accuracy": Limit(0.95, "tests", "all but none of 16; quiet 1.0, planted 0.6"),
    "examine.tiny_r2": Limit(0.95, "tests", "R² on the tiny rows; quiet 0.99, planted 0.7"),
    "examine.tiny_fall": Limit(0.3, "tests", "of the first loss; a text repeats its prefixes"),
    "examine.tiny_stuck": Limit(0.02, "tests", "fall of a generative loss, which has a floor"),
    "examine.tiny_moves": Limit(0.01, "chosen", "relative change of a loss that hardly moves"),
    "examine.tiny_learning": Limit(0.7, "chosen", "last over first loss, when time was up"),
    # --- learning rate
    "examine.rate_high": Limit(8.0, "tests", "times the best rate; quiet 3"),
    "examine.rate_low": Limit(
        0.04, "tests", "times the best rate; plain descent at 0.01 has 0.03 of it and works"
    ),
    "examine.high_progress": Limit(0.5, "tests", "of the fall at the best rate; 0.8, planted 0.3"),
    "examine.low_progress": Limit(
        0.1, "tests", "quiet 0.14 (plain descent at 0.01), planted 0.05 (Adam at 1e-5)"
    ),
    "examine.low_error": Limit(0.02, "chosen", "the same, below which it is an error"),
    "examine.rate_enough": Limit(0.8, "chosen", "fall over that at the best rate: nearly as good"),
    "examine.rate_learnable": Limit(0.1, "chosen", "fall at the best rate over the first loss"),
    # --- the input
    "examine.blind": Limit(1e-4, "definition", "spread of outputs over size; rounding 1e-7"),
    "examine.input_matters": Limit(0.01, "tests", "relative rise of the loss on mixed-up inputs"),
    # --- baselines
    "examine.signal": Limit(0.85, "tests", "error of a model of the columns over guessing"),
    "examine.better": Limit(0.75, "tests", "error of a baseline over the network's"),
    "examine.better_by": Limit(0.03, "tests", "the same as a difference of error rates"),
    "examine.copied": Limit(0.7, "chosen", "correlation of targets and inputs: an autoencoder"),
    "examine.no_better": Limit(0.1, "tests", "gain over guessing that is none, as a share of it"),
    "examine.well_ratio": Limit(1.1, "chosen", "error over the best baseline's: it does well"),
    "examine.well_margin": Limit(0.01, "chosen", "the same, added"),
    "examine.underfit": Limit(1.5, "tests", "training error over the best baseline's; quiet 1.1"),
    "examine.underfit_by": Limit(0.05, "tests", "the same as a difference"),
    "examine.levelled": Limit(0.9, "tests", "last quarter of the loss over the one before"),
    "examine.chance": Limit(0.9, "tests", "error on shuffled labels over that of chance"),
    # --- more data
    "examine.still_falling": Limit(0.15, "tests", "fall of the error from half the rows to all"),
    "examine.falling_by": Limit(0.02, "tests", "the same, absolute"),
    "examine.data_gap": Limit(
        0.12, "tests", "validation less training error; digits with 1,400 rows 0.03, with 80 0.25"
    ),
    # --- rows and columns
    "examine.shift_auc": Limit(0.65, "tests", "random splits stay below 0.56 with 300 rows"),
    "examine.shift_sure": Limit(0.55, "tests", "what AUC less its standard errors must exceed"),
    "examine.shift_column": Limit(0.6, "chosen", "AUC of a column that is named"),
    "examine.shift_column_by": Limit(0.1, "chosen", "how far it may lie below the best column"),
    "examine.shift_clear": Limit(0.8, "chosen", "AUC above which the finding is surer"),
    "examine.shift_error": Limit(0.95, "chosen", "AUC above which it is an error"),
    "examine.shared_rows": Limit(0.01, "tests", "of validation rows; random splits share none"),
    "examine.shared_least": Limit(3, "tests", "number of rows shared"),
    "examine.shared_anyway": Limit(0.1, "tests", "share that counts where rows repeat anyway"),
    "examine.shared_error": Limit(0.05, "chosen", "share above which copies are an error"),
    "examine.natural_bits": Limit(12.0, "definition", "rarer than n² coincidences need, in bits"),
    "examine.distinct": Limit(0.95, "tests", "share of different values in measurements"),
    "examine.near": Limit(0.05, "tests", "of the median distance of neighbours in training"),
    "examine.near_rows": Limit(0.05, "tests", "share of validation rows that near"),
    "examine.near_margin": Limit(0.02, "tests", "added to four times the share in training"),
    "examine.column_alone": Limit(0.995, "tests", "balanced accuracy or r² of one column alone"),
    "examine.column_others": Limit(0.95, "tests", "score of the others: no surprise then"),
    "examine.column_gap": Limit(0.03, "tests", "gap between classes over the column's range"),
    "examine.scale_high": Limit(30.0, "tests", "root mean square; digits 7, pixels to 255 80"),
    "examine.scale_low": Limit(1e-3, "chosen", "root mean square of the inputs"),
    "examine.scale_ratio": Limit(100.0, "tests", "between columns; quiet 30 (one-hot)"),
    "examine.scale_wide": Limit(10.0, "tests", "spread of the widest column, for that ratio"),
    "examine.target_high": Limit(30.0, "tests", "root mean square; scores of 0 to 10 below it"),
    "examine.target_low": Limit(1e-3, "chosen", "root mean square of the targets"),
    "examine.target_outside": Limit(0.05, "tests", "share of targets that outputs cannot reach"),
    "examine.sparse": Limit(0.8, "tests", "share of zeros from which empty columns are ordinary"),
    "examine.neighbours": Limit(0.2, "tests", "correlation of neighbouring columns of an image"),
    "examine.neighbours_ratio": Limit(1.5, "tests", "the same over that of distant columns"),
    "examine.copied_loss": Limit(0.01, "definition", "loss of copying tokens: they are the target"),
    "examine.gradient_error": Limit(1e-3, "definition", "relative error of a gradient"),
    "examine.flat": Limit(1e-9, "definition", "numeric over analytic slope: straight-through"),
    # --- classes and labels
    "examine.rare": Limit(0.05, "chosen", "share of a class that is worth a word"),
    "examine.rare_even": Limit(0.4, "chosen", "the same over an even share"),
    "examine.rare_short": Limit(1 / 21, "tests", "share that a short training should find"),
    "examine.ignored": Limit(0.1, "tests", "recall of a rare class that counts as ignored"),
    "examine.noise_ratio": Limit(
        0.55, "tests", "confident over all errors; clean 0.38, noisy 0.63"
    ),
    "examine.noise_margin": Limit(0.1, "tests", "the same over what guessing leaves; clean 0.09"),
    "examine.noise_rate": Limit(0.03, "tests", "errors of the confident half; clean 0.002"),
    "examine.noise_clear": Limit(0.08, "chosen", "the same, above which the finding is surer"),
    "examine.noise_signal": Limit(0.65, "tests", "error over guessing: no verdict above it"),
    "examine.doubt": Limit(0.2, "chosen", "probability of another label above that of the row's"),
    # --- generalisation
    "examine.gap": Limit(0.1, "tests", "validation error less training error; digits 0.03"),
    "examine.gap_ratio": Limit(2.0, "tests", "validation loss over training loss"),
    "examine.calibration": Limit(0.1, "tests", "expected calibration error; quiet 0.05"),
    "examine.calibration_far": Limit(1.5, "chosen", "times that, above which it is surer"),
    "examine.dropout": Limit(0.5, "published", "rates from which lowering dropout is tried"),
    "examine.decay": Limit(5e-3, "published", "weight decay, part of the gradient, likewise"),
    "examine.regular_better": Limit(0.7, "tests", "error without the penalty over error with it"),
    # --- batch statistics and causality
    "examine.norm_loss": Limit(
        1.5,
        "tests",
        "loss with running statistics over loss with those of the batch; quiet 2.1, but then the "
        "error hardly rises",
    ),
    "examine.norm_error": Limit(0.05, "tests", "rise of the error; quiet 0.01, planted 0.4"),
    "examine.norm_batch": Limit(4, "definition", "rows: variances of 4 values are off by half"),
    "examine.norm_momentum": Limit(0.02, "chosen", "momentum that is too slow for its steps"),
    "examine.future": Limit(1e-4, "definition", "change of an output; rounding is 1e-6"),
    "examine.shifted": Limit(0.95, "tests", "share of the targets that equal the next input"),
}
