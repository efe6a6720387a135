"""Optimizers by name and those that torch lacks, schedules and weight averaging."""

from castalia.optim.averaging import Average, build_average
from castalia.optim.build import (
    OPTIMIZERS,
    base_rate,
    build_optimizer,
    closure_kind,
    optimizer_class,
)
from castalia.optim.conjugate_gradient import ConjugateGradient
from castalia.optim.curvature import GaussNewtonModel, HessianModel
from castalia.optim.delta_bar_delta import DeltaBarDelta
from castalia.optim.dense import GaussNewton, Newton
from castalia.optim.dynamo import without_dynamo
from castalia.optim.fused import fused_step
from castalia.optim.hessian_free import HessianFree
from castalia.optim.linesearch import Point, exact_line_search, strong_wolfe
from castalia.optim.recommend import Choice, recommend
from castalia.optim.schedules import (
    SCHEDULES,
    Schedule,
    build_schedule,
    constant,
    cosine,
    exponential,
    inverse_sqrt,
    linear_decay,
    step,
    warmup,
)

__all__ = [
    "OPTIMIZERS",
    "SCHEDULES",
    "Average",
    "Choice",
    "ConjugateGradient",
    "DeltaBarDelta",
    "GaussNewton",
    "GaussNewtonModel",
    "HessianFree",
    "HessianModel",
    "Newton",
    "Point",
    "Schedule",
    "base_rate",
    "build_average",
    "build_optimizer",
    "build_schedule",
    "closure_kind",
    "constant",
    "cosine",
    "exact_line_search",
    "exponential",
    "fused_step",
    "inverse_sqrt",
    "linear_decay",
    "optimizer_class",
    "recommend",
    "step",
    "strong_wolfe",
    "warmup",
    "without_dynamo",
]
