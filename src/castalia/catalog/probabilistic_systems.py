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
)
