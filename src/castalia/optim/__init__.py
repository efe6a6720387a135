"""Optimizers by name, schedules and weight averaging."""

from castalia.optim.build import (
    OPTIMIZERS,
    base_rate,
    build_optimizer,
    closure_kind,
    hidden_matrices,
    named_optimizer,
    optimizer_class,
    optimizer_name,
)
from castalia.optim.clip import clip_by_norm, clip_by_value, clip_gradients, gradient_norm
from castalia.optim.conjugate_gradient import ConjugateGradient
from castalia.optim.delta_bar_delta import DeltaBarDelta
from castalia.optim.dynamo import without_dynamo
from castalia.optim.fused_adam import fused_step
from castalia.optim.gradient_flow import GradientFlow, gradient_flow
from castalia.optim.hessian_free import HessianFree
from castalia.optim.linesearch import Point, exact_line_search, strong_wolfe
from castalia.optim.lion import Lion
from castalia.optim.muon import Muon, orthogonalise
from castalia.optim.newton_methods import GaussNewton, Newton
from castalia.optim.quadratic_models import GaussNewtonModel, HessianModel
from castalia.optim.range_test import LRRangeTest, lr_range_test
from castalia.optim.recommend import Choice, recommend
from castalia.optim.schedules import (
    SCHEDULES,
    Schedule,
    build_schedule,
    constant,
    cosine,
    cyclic,
    exponential,
    inverse_sqrt,
    inverse_time,
    linear_decay,
    named_schedule,
    one_cycle,
    plateau,
    step,
    warmup,
)
from castalia.optim.weight_averages import Average, build_average

__all__ = [
    "OPTIMIZERS",
    "SCHEDULES",
    "Average",
    "Choice",
    "ConjugateGradient",
    "DeltaBarDelta",
    "GaussNewton",
    "GaussNewtonModel",
    "GradientFlow",
    "HessianFree",
    "HessianModel",
    "LRRangeTest",
    "Lion",
    "Muon",
    "Newton",
    "Point",
    "Schedule",
    "base_rate",
    "build_average",
    "build_optimizer",
    "build_schedule",
    "clip_by_norm",
    "clip_by_value",
    "clip_gradients",
    "closure_kind",
    "constant",
    "cosine",
    "cyclic",
    "exact_line_search",
    "exponential",
    "fused_step",
    "gradient_flow",
    "gradient_norm",
    "hidden_matrices",
    "inverse_sqrt",
    "inverse_time",
    "linear_decay",
    "lr_range_test",
    "named_optimizer",
    "named_schedule",
    "one_cycle",
    "optimizer_class",
    "optimizer_name",
    "orthogonalise",
    "plateau",
    "recommend",
    "step",
    "strong_wolfe",
    "warmup",
    "without_dynamo",
]
