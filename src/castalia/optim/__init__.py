"""Optimizers by name, schedules and weight averaging."""

from castalia.optim.averaging import Average, build_average
from castalia.optim.build import OPTIMIZERS, build_optimizer
from castalia.optim.dynamo import without_dynamo
from castalia.optim.fused import fused_step
from castalia.optim.gradient_flow import GradientFlow, gradient_flow
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
    "GradientFlow",
    "Schedule",
    "build_average",
    "build_optimizer",
    "build_schedule",
    "constant",
    "cosine",
    "exponential",
    "fused_step",
    "gradient_flow",
    "inverse_sqrt",
    "linear_decay",
    "step",
    "warmup",
    "without_dynamo",
]
