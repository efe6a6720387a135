"""Models with a hidden state, fitted without gradients: chains, linear systems, reservoirs."""

from castalia.catalog.records import System

__all__ = ["HIDDEN_STATE"]

HIDDEN_STATE = (
    System(
        name="HiddenMarkovModel",
        path="castalia.models.sequence:HiddenMarkovModel",
        family="sequence",
        tasks=("density", "segmentation", "generation"),
        data="sequence",
        summary="Chain of hidden states, each with its own distribution of observations",
        reference="1989, Rabiner, A tutorial on hidden Markov models, Proc. IEEE 77",
        small={"states": 2},
        toy="regimes",
        pass_mark=0.45,
        rows=("SEQ-07",),
    ),
    System(
        name="KalmanFilter",
        path="castalia.models.sequence:KalmanFilter",
        family="sequence",
        tasks=("density", "forecasting", "generation"),
        data="sequence",
        summary="Hidden state that moves linearly and is measured with noise",
        reference="1960, Kalman, A new approach to linear filtering and prediction problems",
        small={"state": 2, "steps": 30, "tol": 1e-3},
        toy="wander",
        pass_mark=0.2,
        seeded=False,
        rows=("SEQ-08",),
    ),
    System(
        name="LinearDynamicalSystem",
        path="castalia.models.sequence:LinearDynamicalSystem",
        family="sequence",
        tasks=("regression", "multioutput"),
        data="sequence",
        summary="Linear system from inputs to outputs through a hidden state",
        reference="1966, Ho, Kálmán, Effective construction of linear state-variable models",
        small={"state": 2},
        toy="plant",
        pass_mark=0.98,
        seeded=False,
        rows=("SEQ-09",),
    ),
)
