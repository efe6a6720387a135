"""Optimizers by name, schedules and weight averaging."""

from castalia.optim.averaging import Average, build_average
from castalia.optim.build import OPTIMIZERS, build_optimizer
from castalia.optim.clip import clip_by_norm, clip_by_value, clip_gradients, gradient_norm
from castalia.optim.dynamo import without_dynamo
from castalia.optim.fused import fused_step
from castalia.optim.gradient_flow import GradientFlow, gradient_flow
from castalia.optim.range_test import LRRangeTest, lr_range_test
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
    one_cycle,
    plateau,
    step,
    warmup,
)

__all__ = [
    "OPTIMIZERS",
    "SCHEDULES",
    "Average",
    "GradientFlow",
    "LRRangeTest",
    "Schedule",
    "build_average",
    "build_optimizer",
    "build_schedule",
    "clip_by_norm",
    "clip_by_value",
    "clip_gradients",
    "constant",
    "cosine",
    "cyclic",
    "exponential",
    "fused_step",
    "gradient_flow",
    "gradient_norm",
    "inverse_sqrt",
    "inverse_time",
    "linear_decay",
    "lr_range_test",
    "one_cycle",
    "plateau",
    "step",
    "warmup",
    "without_dynamo",
]
