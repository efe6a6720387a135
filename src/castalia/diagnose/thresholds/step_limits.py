"""Thresholds of optimisation: rates, gradients, units, the start, the end, and batches."""

from castalia.diagnose.thresholds.limit_record import Limit

__all__ = ["STEPS"]

STEPS = {
    # --- learning rate
    "rate.grown": Limit(2.0, "corpus", "last loss over the first; healthy at most 1.03"),
    "rate.grown_at_once": Limit(1.2, "corpus", "the same where it breaks within three steps"),
    "rate.ratio": Limit(
        0.1,
        "corpus",
        "early median update-to-weight ratio; too high rates 0.1 to 13, healthy up to 0.5, so "
        "never alone",
    ),
    "rate.small": Limit(0.03, "corpus", "update-to-weight ratio below which steps are small"),
    "rate.small_steps": Limit(0.05, "corpus", "the same, where a gradient explodes by itself"),
    "rate.leap": Limit(
        0.1,
        "corpus",
        "share of the loss that a step promises; too high rates from 0.04, most from 0.2, stopped "
        "too early 1e-3 to 0.03; never alone",
    ),
    "rate.promise": Limit(
        6e-4, "corpus", "the same, downwards; too low rates to 4e-4, stopped too early from 1e-3"
    ),
    "rate.promise_long": Limit(
        2e-3, "corpus", "the same after many steps; healthy from 3e-3, a thirtieth of it to 2e-3"
    ),
    "rate.many_steps": Limit(120, "corpus", "steps; those that stopped too early made at most 120"),
    "rate.straight": Limit(
        0.9999, "chosen", "mean cosine of successive gradients: no bend was met in all the training"
    ),
    "rate.usual_promise": Limit(5e-3, "corpus", "the same of trainings that only stop too early"),
    "rate.turning": Limit(
        -0.3,
        "corpus",
        "mean cosine of successive gradients; on a quadratic, steps beyond 1/curvature give "
        "negative ones; healthy above -0.16",
    ),
    "rate.died": Limit(0.6, "chosen", "share of a layer alive at the start and dead at the end"),
    "rate.spike": Limit(5.0, "corpus", "highest early loss over the first; healthy at most 2.6"),
    "rate.thrown": Limit(100.0, "chosen", "the same of steps that throw the network away"),
    "rate.had_learnt": Limit(0.7, "corpus", "last loss over the first where it learnt, then broke"),
    "rate.above_best": Limit(1.3, "corpus", "last loss over the least tenth of the training"),
    "rate.jumps": Limit(0.15, "corpus", "spread of the late loss from step to step over its mean"),
    "rate.slow": Limit(3e-4, "corpus", "median ratio; healthy from 5e-3, too low to 3e-4"),
    "rate.long_enough": Limit(
        2e-3, "corpus", "median ratio; too low to 9e-4, other causes from 6e-3"
    ),
    "rate.conditioned": Limit(1e-3, "chosen", "promise of steps that steep directions do not hold"),
    "rate.tiny": Limit(0.1, "corpus", "times rate.slow: too slow even where the loss has stopped"),
    "rate.travelled": Limit(
        0.1, "corpus", "way of the weights over their size, in a game; healthy from 0.4"
    ),
    "rate.travelled_signed": Limit(0.05, "corpus", "the same of losses below zero; healthy from 1"),
    "rate.still": Limit(1e-5, "corpus", "gradient later over that at first; healthy from 2e-4"),
    "rate.far": Limit(3.5, "chosen", "way of all weights over their size; healthy agents to 2.2"),
    "rate.wild": Limit(0.3, "chosen", "largest early ratio; healthy games to 0.11, an agent 0.5"),
    "rate.scales": Limit(0.01, "definition", "scales of norms begin at 1, or 0.02 around it"),
    "rate.slow_learnt": Limit(0.8, "chosen", "share of the guessing loss taken away"),
    "rate.slow_error": Limit(0.3, "chosen", "the same, below which a low rate is an error"),
    "rate.slow_remark": Limit(0.5, "corpus", "the same, a remark above; too low rates to 0.21"),
    "rate.slow_risen": Limit(1.2, "corpus", "last fifth of the loss over the first: not falling"),
    "rate.steady": Limit(0.2, "corpus", "fall of the last fifth over that of the first"),
    "rate.creeps_steps": Limit(0.7, "corpus", "share of validations below the one before"),
    "rate.creeps_left": Limit(0.7, "corpus", "last validation loss over the first"),
    "rate.annealed": Limit(0.1, "published", "last rate over the highest; cosine ends at 0"),
    "rate.taken_back": Limit(1e-3, "chosen", "last rate of a schedule over the highest"),
    "rate.hundredth": Limit(0.01, "chosen", "rate over that, below which training has ended"),
    "rate.custom_least": Limit(
        4e-5, "chosen", "rate of Adam or RMSprop for random weights; 130 public networks from 1e-4"
    ),
    "rate.custom_most": Limit(
        0.05, "chosen", "the same for several layers; 130 public networks to 0.032"
    ),
    "rate.most_down": Limit(0.01, "chosen", "factor of the lowest rate that is proposed untried"),
    "rate.most_up": Limit(10.0, "chosen", "factor of the highest rate that is proposed untried"),
    "rate.half": Limit(0.5, "chosen", "share of the steps before that end"),
    # --- gradients
    "gradient.shrinks": Limit(1e-3, "corpus", "first over last layer; healthy above 0.08"),
    "gradient.shrinks_normalised": Limit(1e-6, "corpus", "the same with normalising layers"),
    "gradient.per_layer": Limit(0.3, "corpus", "healthy plain nets keep 0.4 and more per layer"),
    "gradient.pace": Limit(0.3, "chosen", "step of the first layer over that of the last"),
    "gradient.geometric": Limit(0.7, "corpus", "correlation of depth and logarithm of the norm"),
    "gradient.grows": Limit(1e3, "corpus", "first over last layer or step; healthy below 1"),
    "gradient.spike": Limit(100.0, "corpus", "largest over median norm; healthy at most 82"),
    "gradient.huge": Limit(
        200.0, "corpus", "early change of the loss over that of the weights, both relative"
    ),
    "gradient.steep": Limit(10.0, "corpus", "the same, below which a leap of the norm is none"),
    "gradient.clipped": Limit(0.7, "chosen", "norm as applied over the norm as computed"),
    "gradient.clipped_share": Limit(0.3, "chosen", "share of the sampled steps that are clipped"),
    "recurrence.amplifies": Limit(1.2, "corpus", "spectral radius of the recurrent weights"),
    "fresh.even": Limit(1.6, "definition", "fourth moment over the squared second; even 1.8"),
    "fresh.normal": Limit(3.4, "definition", "the same; normal 3, cut off at two spreads 2.4"),
    "fresh.errors": Limit(
        4.5, "definition", "standard errors of the spread of rows' lengths, of many matrices"
    ),
    "fresh.edge": Limit(1.1, "published", "largest singular value over that of chance"),
    "weights.few": Limit(0.02, "chosen", "share of the parameters that never change"),
    # --- units
    "units.dead": Limit(0.6, "corpus", "share of a layer; healthy to 0.47, dead ones from 0.83"),
    "units.dead_hurting": Limit(0.4, "chosen", "the same when the loss is also poor"),
    "units.many": Limit(0.9, "chosen", "share of a layer that is nearly all of it"),
    "units.enough": Limit(32, "chosen", "units that live, with which much can be learnt"),
    "units.saturated": Limit(0.6, "corpus", "share; healthy to 0.27, saturated from 0.65"),
    "units.saturated_most": Limit(0.9, "chosen", "the same, above which it is an error"),
    "units.equal": Limit(0.9, "definition", "share of rows equal to another: chance gives 0"),
    # --- the start
    "start.loss": Limit(3.0, "corpus", "first loss over guessing; healthy to 3.1, 95 % below 2.4"),
    "start.depth": Limit(100.0, "published", "change of spread; He and Glorot stay within 5"),
    "start.small_median": Limit(0.45, "corpus", "median weight over 1/√(fan-in), after a plateau"),
    "start.small": Limit(0.03, "corpus", "weights of a layer over 1/√(fan-in), where it is poor"),
    "start.large": Limit(5.0, "corpus", "the same, upwards"),
    "start.huge": Limit(12.0, "corpus", "the same, whatever came of it; healthy ones to 3"),
    "start.bias": Limit(30.0, "corpus", "size of a hidden layer's biases; healthy ones to 2"),
    "start.plateau": Limit(0.95, "corpus", "early loss over that of guessing: nothing learnt yet"),
    "start.plateau_left": Limit(1.1, "corpus", "plateau over the last loss: then it moved"),
    # --- the end
    "end.falling": Limit(
        0.1,
        "corpus",
        "fall of the loss in the last fifth; early stops 0.03 to 0.56, so with much left to learn",
    ),
    "end.part": Limit(0.4, "corpus", "times end.falling, where another sign agrees"),
    "end.held_least": Limit(0.01, "corpus", "fall of the validation loss that confirms one"),
    "end.descends": Limit(0.02, "corpus", "the same, where the steps are few"),
    "end.same_slope": Limit(0.9, "corpus", "mean cosine of successive gradients: one slope down"),
    "end.begun": Limit(0.25, "corpus", "fall of the last fifth over the whole fall; even is 0.2"),
    "end.learnt": Limit(0.6, "corpus", "share of the guessing loss taken away, of one just begun"),
    "end.nearly_learnt": Limit(0.95, "corpus", "the same, above which nothing is left to learn"),
    "end.gain": Limit(0.03, "chosen", "extrapolated fall over the loss of guessing"),
    "end.left": Limit(0.8, "corpus", "early stops have learnt up to 0.73, one of them 0.88"),
    "end.loss_left": Limit(0.3, "corpus", "last loss over the first, where guessing is unknown"),
    "end.mostly_right": Limit(0.8, "chosen", "validation score that has levelled off"),
    "steps.stale": Limit(0.5, "definition", "steps with left-over gradients: 0 or 1 in practice"),
    "steps.few": Limit(60, "corpus", "updates in all; healthy trainings make 90 and more"),
    # --- curvature and noise
    "curvature.ratio": Limit(100.0, "corpus", "healthy below 20, ill-conditioned 178 to 8e5"),
    "curvature.steps": Limit(5e-3, "corpus", "update over weight; ill-conditioned from 0.02"),
    "curvature.fitted": Limit(0.97, "corpus", "training accuracy at which nothing creeps"),
    "curvature.creeps": Limit(0.98, "corpus", "last fifth of the loss over the one before"),
    "curvature.nearly_learnt": Limit(0.9, "corpus", "share taken away, above which it must creep"),
    "curvature.learnt": Limit(0.98, "corpus", "share taken away, above which nothing is left"),
    "curvature.worse": Limit(0.1, "corpus", "loss above guessing, as a share: not slow but wrong"),
    "noise.loss": Limit(
        0.8,
        "chosen",
        "spread of the loss over its mean; healthy up to 4 once nearly fitted, so only at tiny "
        "batches and a poor fit",
    ),
    "noise.single": Limit(0.25, "chosen", "the same of single rows and a poor fit"),
    "noise.remark": Limit(0.05, "chosen", "the same of single rows, worth a remark"),
    "noise.different": Limit(0.5, "chosen", "different rows over kept ones: there are many"),
    "noise.learnt": Limit(0.7, "corpus", "share of the guessing loss taken away in spite of it"),
    "turning.zigzag": Limit(-0.5, "corpus", "stability's limit gives -1; healthy above -0.16"),
    # --- batch statistics and modes
    "batch.norm": Limit(4, "definition", "numbers per channel: the variance of 4 is off by 80 %"),
    "batch.hasty": Limit(0.7, "published", "the last batch decides above it; torch has 0.1"),
    "batch.slow": Limit(0.05, "published", "momentum below half of torch's default"),
    "batch.running": Limit(1.0, "corpus", "distance of running from batch mean in spreads, late"),
    "modes.random": Limit(1e-3, "definition", "of two answers to a row; rounding leaves 1e-6"),
    "modes.steps": Limit(0.3, "chosen", "share of steps in evaluation mode"),
    "modes.silent": Limit(0.5, "chosen", "calls without gradients over steps: fewer are no steps"),
}
