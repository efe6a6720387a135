"""What is minimised: one file a learning principle."""

from castalia.objectives.adversarial import Adversarial, fgsm, pgd
from castalia.objectives.adversarial_game import (
    AdversarialGame,
    HingeGame,
    Minimax,
    NonSaturating,
    Wasserstein,
    optimal_discriminator,
)
from castalia.objectives.augmented import Augmented
from castalia.objectives.auxiliary import AuxiliaryLM
from castalia.objectives.bidirectional import BidirectionalLM
from castalia.objectives.contrastive_divergence import ContrastiveDivergence, ExactLikelihood
from castalia.objectives.denoising_loss import Denoising
from castalia.objectives.detection import AnchorYOLOLoss, YOLOLoss
from castalia.objectives.elbo import (
    ELBO,
    PartlyLabelledELBO,
    SequentialELBO,
    evidence_lower_bound,
    gaussian_kl,
    importance_weights,
    log_normal,
    optimal_posterior,
    reparametrise,
)
from castalia.objectives.forecast_loss import (
    ForecastLikelihood,
    ForecastLoss,
    ForecastQuantiles,
    pinball,
)
from castalia.objectives.in_batch_contrast import InBatchContrast
from castalia.objectives.layer_reconstruction import LayerReconstruction
from castalia.objectives.layered import Layered
from castalia.objectives.likelihood import (
    LIKELIHOODS,
    BernoulliLikelihood,
    GaussianLikelihood,
    LaplaceLikelihood,
    Likelihood,
    MixtureLikelihood,
    MultinoulliLikelihood,
    PoissonLikelihood,
)
from castalia.objectives.link_loss import LinkLoss
from castalia.objectives.margin import Hinge, Logistic, PerceptronLoss, ZeroOne, margins
from castalia.objectives.masked import MaskedLM
from castalia.objectives.mean_discrepancy import MMD, energy_distance, mmd
from castalia.objectives.member_loss import MemberLoss
from castalia.objectives.negative_log_likelihood import NegativeLogLikelihood
from castalia.objectives.next_sentence import NextSentence
from castalia.objectives.next_token import CarriedLM, CausalLM
from castalia.objectives.objective import BatchPenalty, Objective, Penalty, weighted_mean
from castalia.objectives.penalties import L1, L2, Lq, Tied
from castalia.objectives.pixel_cross_entropy import PixelCrossEntropy
from castalia.objectives.prefix import PrefixLM
from castalia.objectives.reconstruction import CodeSparsity, Reconstruction, corrupted
from castalia.objectives.representation import ActivationSparsity, CodeNorm, Contractive
from castalia.objectives.row_likelihoods import (
    LevelLikelihood,
    LogisticLikelihood,
    MixedLikelihood,
    RowLikelihood,
)
from castalia.objectives.sequence_cross_entropy import SequenceCrossEntropy
from castalia.objectives.sequence_step_losses import (
    NextStep,
    NextSymbol,
    NodeCrossEntropy,
    StepCrossEntropy,
    StepSquaredError,
    ValueLosses,
)
from castalia.objectives.similarity import Contrastive, Triplet
from castalia.objectives.span_corruption import SpanCorruption
from castalia.objectives.style_loss import StyleLoss, gram, total_variation
from castalia.objectives.supervised import (
    AbsoluteError,
    BinaryCrossEntropy,
    CrossEntropy,
    SquaredError,
    class_loss,
    smooth_labels,
)
from castalia.objectives.surrogate import Surrogate
from castalia.objectives.tag_and_span_losses import SpanCrossEntropy, TagCrossEntropy
from castalia.objectives.velocity_prediction import VelocityPrediction, ddim_step, signal_shares
from castalia.probability import (
    bayes_error,
    bayes_optimal,
    conditional,
    cross_entropy,
    entropy,
    is_pdf,
    is_pmf,
    kl_divergence,
    map_hypothesis,
    marginal,
    posterior,
    self_information,
)

__all__ = [
    "evidence_lower_bound",
    "optimal_posterior",
    "optimal_discriminator",
    "PartlyLabelledELBO",
    "SequentialELBO",
    "MMD",
    "AdversarialGame",
    "HingeGame",
    "Minimax",
    "NegativeLogLikelihood",
    "VelocityPrediction",
    "NonSaturating",
    "Wasserstein",
    "ddim_step",
    "energy_distance",
    "mmd",
    "signal_shares",
    "LayerReconstruction",
    "ELBO",
    "CodeSparsity",
    "LevelLikelihood",
    "LogisticLikelihood",
    "MixedLikelihood",
    "Reconstruction",
    "RowLikelihood",
    "corrupted",
    "gaussian_kl",
    "importance_weights",
    "log_normal",
    "reparametrise",
    "L1",
    "L2",
    "LIKELIHOODS",
    "AbsoluteError",
    "ActivationSparsity",
    "Adversarial",
    "AnchorYOLOLoss",
    "Augmented",
    "AuxiliaryLM",
    "BatchPenalty",
    "BernoulliLikelihood",
    "BidirectionalLM",
    "BinaryCrossEntropy",
    "CarriedLM",
    "CausalLM",
    "CodeNorm",
    "Contractive",
    "Contrastive",
    "ContrastiveDivergence",
    "CrossEntropy",
    "Denoising",
    "ExactLikelihood",
    "ForecastLikelihood",
    "ForecastLoss",
    "ForecastQuantiles",
    "GaussianLikelihood",
    "Hinge",
    "InBatchContrast",
    "LaplaceLikelihood",
    "Layered",
    "Likelihood",
    "LinkLoss",
    "Logistic",
    "Lq",
    "MaskedLM",
    "MemberLoss",
    "MixtureLikelihood",
    "MultinoulliLikelihood",
    "NextSentence",
    "NextStep",
    "NextSymbol",
    "Objective",
    "Penalty",
    "PerceptronLoss",
    "PixelCrossEntropy",
    "PoissonLikelihood",
    "PrefixLM",
    "SequenceCrossEntropy",
    "SpanCorruption",
    "SpanCrossEntropy",
    "SquaredError",
    "NodeCrossEntropy",
    "StepCrossEntropy",
    "StepSquaredError",
    "ValueLosses",
    "StyleLoss",
    "Surrogate",
    "TagCrossEntropy",
    "Tied",
    "Triplet",
    "YOLOLoss",
    "ZeroOne",
    "bayes_error",
    "bayes_optimal",
    "class_loss",
    "conditional",
    "cross_entropy",
    "entropy",
    "fgsm",
    "gram",
    "is_pdf",
    "is_pmf",
    "kl_divergence",
    "map_hypothesis",
    "marginal",
    "margins",
    "pgd",
    "pinball",
    "posterior",
    "self_information",
    "smooth_labels",
    "total_variation",
    "weighted_mean",
]
