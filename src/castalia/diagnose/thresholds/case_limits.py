"""Thresholds of quantities that several rules share."""

from castalia.diagnose.thresholds.limit_record import Limit

__all__ = ["CASE"]

CASE = {
    # --- rounding and chance
    "rounding.zero": Limit(1e-12, "definition", "spreads below it are none; a divisor at least"),
    "rounding.constant": Limit(1e-9, "definition", "spread of what does not vary, in float64"),
    "rounding.equal": Limit(1e-6, "definition", "difference of equal numbers in float32"),
    "rounding.row_sum": Limit(1e-4, "definition", "distance of the sum of probabilities from 1"),
    "rounding.eigenvalue": Limit(1e-10, "definition", "eigenvalue over the largest; below it 0"),
    "rounding.smallest": Limit(1e-29, "definition", "tolerance of rows that are all zero"),
    "chance.variance": Limit(0.25, "definition", "variance of a fair coin, the largest of a share"),
    "chance.even": Limit(0.5, "definition", "probability above which a binary answer is yes"),
    # --- how far a training has come
    "case.late": Limit(0.6, "corpus", "share of the steps after which answers are final"),
    "case.last_quarter": Limit(0.75, "definition", "share of the steps before the last quarter"),
    "case.at_the_end": Limit(0.8, "definition", "share of the steps before the last fifth"),
    "case.trifle": Limit(0.1, "chosen", "part of the guessing loss that a first loss is at least"),
    "case.bias": Limit(0.02, "chosen", "bias of an entropy over it; of few classes it is none"),
    "case.stuck": Limit(0.1, "corpus", "share of the guessing loss taken away; below it, nothing"),
    "case.stuck_loss": Limit(0.95, "corpus", "last loss over the first, where guessing is unknown"),
    "case.signed": Limit(0.05, "chosen", "least share of losses below zero"),
    "case.level": Limit(1.01, "chosen", "loss of a fifth over that of the fifth before: no rise"),
    "case.thrives": Limit(0.8, "chosen", "loss of the last fifth over that of the first"),
    "case.poor": Limit(0.5, "corpus", "share of the guessing loss taken away that is too little"),
    "case.well": Limit(0.9, "corpus", "the same, above which nothing did harm"),
    "case.nearly_right": Limit(0.93, "corpus", "validation accuracy of hardly any error"),
    "case.few_wrong": Limit(0.8, "corpus", "validation accuracy where a handful of rows is wrong"),
    "case.same_gap": Limit(0.08, "corpus", "difference of accuracies that hardly differ"),
    "case.shifted": Limit(0.9, "corpus", "targets equal to the next input: a language model"),
    "case.smoothing_spread": Limit(0.02, "corpus", "spread of the label smoothing over batches"),
    "case.smoothing_least": Limit(0.01, "chosen", "label smoothing that counts as any"),
}
