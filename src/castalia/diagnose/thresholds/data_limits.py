"""Thresholds of rows, columns, labels, outputs and sequences."""

from castalia.diagnose.thresholds.limit_record import Limit

__all__ = ["DATA"]

DATA = {
    # --- scales and columns
    "inputs.large": Limit(
        20.0, "corpus", "largest size of a column; healthy up to 1.5, unscaled ones from 207"
    ),
    "inputs.small": Limit(0.02, "corpus", "largest size of a column"),
    "inputs.apart": Limit(100.0, "corpus", "largest over median spread of columns"),
    "inputs.far": Limit(0.2, "chosen", "times inputs.small: the finding is surer"),
    "inputs.same": Limit(0.9, "chosen", "share of the input that no row changes"),
    "inputs.pixels": Limit(0.2, "corpus", "median over largest maximum of columns: one scale"),
    "targets.large": Limit(20.0, "corpus", "size of regression targets"),
    "targets.small": Limit(0.02, "corpus", "spread of regression targets"),
    "targets.far": Limit(0.2, "chosen", "times targets.small: the finding is surer"),
    "targets.outside": Limit(0.02, "corpus", "share of targets outside 0 to 1"),
    "columns.constant_share": Limit(0.3, "corpus", "share of columns; borders of images have less"),
    "columns.many": Limit(0.2, "chosen", "share of columns, above which the finding is surer"),
    "columns.serial": Limit(0.99, "corpus", "share of distinct values in an identifier"),
    "columns.informative": Limit(0.1, "corpus", "variance of the target that a column explains"),
    "columns.uniform": Limit(0.08, "corpus", "distance of sorted values from a straight line"),
    "columns.grid": Limit(0.02, "corpus", "distance of gaps from multiples of the smallest"),
    # --- classes and labels
    "classes.rare": Limit(0.1, "corpus", "share of the rarest class over an even share"),
    "classes.rare_share": Limit(0.4, "corpus", "share of a class over an even share, for recall"),
    "classes.given_up": Limit(0.25, "chosen", "recall of rare classes that are hardly recognised"),
    "classes.recall": Limit(0.5, "corpus", "the same, below which it is a warning"),
    "classes.margin": Limit(0.02, "corpus", "accuracy above the share of the commonest class"),
    "classes.found": Limit(0.1, "corpus", "share of the ones that are found, of many zeros"),
    "classes.other_shares": Limit(0.15, "corpus", "distance of class shares between both sides"),
    "labels.noise": Limit(
        0.08, "corpus", "errors among the surer half of the answers; clean data below 0.05"
    ),
    "labels.noise_ratio": Limit(
        0.5, "corpus", "the same over the errors of all; clean data below 0.4"
    ),
    "labels.noise_margin": Limit(
        0.15,
        "corpus",
        "added to the errors over those of guessing; a bent coin -0.04, noise from 0.2",
    ),
    "labels.memorised": Limit(0.12, "corpus", "training minus validation accuracy"),
    "labels.too_sure": Limit(
        0.15, "corpus", "confidence above accuracy: it says nothing of labels"
    ),
    "labels.guessing": Limit(0.8, "corpus", "errors over those of guessing: nothing can be said"),
    "labels.worse": Limit(
        0.1,
        "chosen",
        "validation minus training accuracy, of equal rows and no dropout: 0 by theory",
    ),
    "labels.several": Limit(0.05, "corpus", "share of rows with several labels, or none"),
    # --- rows and splits
    "rows.shared": Limit(0.02, "corpus", "share of validation rows seen in training"),
    "rows.shared_tokens": Limit(0.3, "corpus", "the same of tokens, which may meet by chance"),
    "rows.shared_many": Limit(0.1, "chosen", "the same, above which the finding is surer"),
    "rows.repeat": Limit(0.01, "corpus", "share of rows that stand twice in a batch"),
    "rows.all_training": Limit(0.95, "corpus", "share of a batch that is training rows on purpose"),
    "rows.lower_batches": Limit(
        0.25, "corpus", "lower quartile over mean of the shares of batches"
    ),
    "rows.in_one_piece": Limit(
        0.95, "corpus", "rows of the loss over rows given: nodes of a graph"
    ),
    "rows.unmistakable": Limit(0.5, "corpus", "distinct values of the median column over rows"),
    "rows.part": Limit(0.9, "corpus", "validation rows over training rows: only part of them"),
    "rows.again": Limit(0.05, "corpus", "share of training rows that come again"),
    "rows.seldom": Limit(0.5, "corpus", "rows that come again over those expected: altered"),
    "rows.alone": Limit(0.97, "corpus", "accuracy or R² of one column alone"),
    "rows.alone_margin": Limit(0.1, "corpus", "how far the next best column lies below"),
    "rows.few": Limit(200, "corpus", "distinct rows; with a gap to validation, more help most"),
    "rows.few_ratio": Limit(1.5, "corpus", "validation over training loss, of few rows"),
    "rows.few_loss": Limit(0.15, "corpus", "validation loss over that of guessing, of few rows"),
    "rows.shift": Limit(
        0.75, "corpus", "area under the curve; random splits 0.36 to 0.58, shifted ones 1.0"
    ),
    "rows.shift_altered": Limit(
        0.97, "chosen", "the same where training rows are altered on the way: turned, cut, moved"
    ),
    "rows.shift_clear": Limit(0.9, "chosen", "the same, above which the finding is surer"),
    "order.between": Limit(4.0, "corpus", "shuffled 0.2 to 3.9, ordered from 14"),
    "tokens.unseen": Limit(0.1, "chosen", "share of validation tokens that training never met"),
    # --- outputs
    "outputs.same": Limit(
        1e-3, "corpus", "spread of the outputs over rows, over that of the targets"
    ),
    "outputs.negative": Limit(1e-3, "definition", "below minus this, a likelihood's loss is wrong"),
    "outputs.negative_share": Limit(0.2, "corpus", "share of the steps with such a loss"),
    "outputs.slack": Limit(0.02, "chosen", "distance from a bound in spreads that does not count"),
    "outputs.out_of_reach": Limit(0.03, "corpus", "share of targets that outputs cannot take"),
    "outputs.learnt": Limit(0.8, "corpus", "share taken away: superfluous outputs are silent"),
    # --- codes and sequences
    "latent.silent": Limit(0.02, "corpus", "nats of a dimension that carries next to nothing"),
    "latent.share": Limit(0.7, "corpus", "share of silent dimensions; healthy codes up to 0.5"),
    "future.change": Limit(
        1e-4, "definition", "rounding leaves 1e-6; a leak as much as the future itself"
    ),
    "future.copied": Limit(
        0.98, "chosen", "targets equal to the token just read; a masked model leaves most out"
    ),
    "padding.share": Limit(0.1, "corpus", "share of padding among the targets"),
    "padding.severe": Limit(0.3, "chosen", "the same, above which it is an error"),
    "padding.positions": Limit(0.5, "corpus", "targets over tokens: one for each position"),
    "padding.first_step": Limit(0.2, "corpus", "share of rows that are empty from the first step"),
    "padding.only_there": Limit(0.95, "corpus", "share of a token that stands at the ends of rows"),
    "padding.padded_rows": Limit(0.3, "corpus", "share of rows that end with a run of it"),
    "padding.inside": Limit(0.2, "corpus", "share of rows that begin with it"),
}
