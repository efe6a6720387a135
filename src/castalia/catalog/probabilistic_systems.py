"""Structured probabilistic models."""

from castalia.catalog.records import System

__all__ = ["PROBABILISTIC"]

PROBABILISTIC = (
    System(
        name="BayesianNetwork",
        path="castalia.models.probabilistic:BayesianNetwork",
        family="probabilistic",
        tasks=("classification", "density"),
        data="table",
        summary="Directed graph of variables, learnt or made by hand, with exact answers",
        reference="1988, Pearl, Probabilistic reasoning in intelligent systems",
        small={"max_parents": 3},
        toy="blobs",
        pass_mark=0.9,
        seeded=False,
        rows=("SPM-05", "SPM-06", "SPM-07", "SPM-08", "SPM-15"),
    ),
    System(
        name="BoltzmannMachine",
        path="castalia.models.probabilistic:BoltzmannMachine",
        family="probabilistic",
        tasks=("density",),
        data="table",
        summary="Binary columns with a weight between any two, without hidden units",
        reference="1985, Ackley, Hinton, Sejnowski, A learning algorithm for Boltzmann machines",
        small={"epochs": 5, "threshold": 0.0},
        toy="moons",
        pass_mark=0.29,
        seeded=False,
        rows=("SPM-13",),
    ),
)
