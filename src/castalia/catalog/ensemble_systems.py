"""Ensembles."""

from castalia.catalog.records import System

__all__ = ["ENSEMBLE"]

_EITHER = ("classification", "regression")

ENSEMBLE = (
    System(
        name="Bagging",
        path="castalia.models.ensemble:Bagging",
        family="ensemble",
        tasks=_EITHER,
        data="table",
        summary="Members fitted to bootstrap samples; their mean or their vote decides",
        reference="1996, Breiman, Bagging predictors, Machine Learning 24",
        small={"members": 3},
        toy="moons",
        pass_mark=0.93,
        rows=("ENS-01", "ENS-02", "ENS-03", "ENS-04", "ENS-05", "ENS-07"),
    ),
    System(
        name="AdaBoost",
        path="castalia.models.ensemble:AdaBoost",
        family="ensemble",
        tasks=("classification",),
        data="table",
        summary="Weak learners in a row, each fitted to the rows that those before got wrong",
        reference=(
            "1997, Freund, Schapire, A decision-theoretic generalization of on-line learning, "
            "JCSS 55"
        ),
        small={"members": 20},
        toy="moons",
        pass_mark=0.85,
        seeded=False,
        rows=("ENS-06",),
    ),
    System(
        name="GradientBoost",
        path="castalia.models.ensemble:GradientBoost",
        family="ensemble",
        tasks=_EITHER,
        data="table",
        summary="Small regression trees added up, each fitted to what is still missing",
        reference=(
            "2001, Friedman, Greedy function approximation: a gradient boosting machine, Annals "
            "of Statistics 29"
        ),
        small={"members": 30, "task": "regression"},
        toy="sine",
        pass_mark=0.9,
        seeded=False,
    ),
    System(
        name="DropoutEnsemble",
        path="castalia.models.ensemble:DropoutEnsemble",
        family="ensemble",
        tasks=_EITHER,
        data="table",
        summary="The sub-networks that dropout trains in one network, averaged when predicting",
        reference="2016, Gal, Ghahramani, Dropout as a Bayesian approximation, arXiv 1506.02142",
        small={"members": 10},
        toy="moons",
        pass_mark=0.9,
        rows=("REG-12", "REG-15", "ENS-09"),
    ),
    System(
        name="SnapshotEnsemble",
        path="castalia.models.ensemble:SnapshotEnsemble",
        family="ensemble",
        tasks=_EITHER,
        data="table",
        summary="Members from one training whose rate falls and restarts",
        reference="2017, Huang et al., Snapshot ensembles, arXiv 1704.00109",
        small={"members": 3},
        toy="moons",
        pass_mark=0.93,
    ),
    System(
        name="DeepEnsemble",
        path="castalia.models.ensemble:DeepEnsemble",
        family="ensemble",
        tasks=_EITHER,
        data="table",
        summary="The same network trained several times, from other starts and in other orders",
        reference=(
            "2017, Lakshminarayanan, Pritzel, Blundell, Simple and scalable predictive uncertainty "
            "estimation using deep ensembles, arXiv 1612.01474"
        ),
        small={"members": 3},
        toy="moons",
        pass_mark=0.93,
    ),
    System(
        name="WeightAverage",
        path="castalia.models.ensemble:WeightAverage",
        family="ensemble",
        tasks=_EITHER,
        data="table",
        summary="A network whose weights are the mean of those passed on the way",
        reference=(
            "2018, Izmailov et al., Averaging weights leads to wider optima and better "
            "generalization, arXiv 1803.05407"
        ),
        small={"average": "swa"},
        toy="moons",
        pass_mark=0.93,
        rows=("REG-48", "ENS-10"),
    ),
)
