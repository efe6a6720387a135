"""Restricted Boltzmann machines and stacks of them."""

from castalia.catalog.records import System

__all__ = ["BOLTZMANN"]

BOLTZMANN = (
    System(
        name="RestrictedBoltzmannMachine",
        path="castalia.models.generative:RestrictedBoltzmannMachine",
        family="generative",
        tasks=("density", "features", "sampling"),
        data="table",
        summary="Distribution over rows with hidden 0/1 units, each joined to every column",
        reference="2002, Hinton, Training products of experts by minimizing contrastive divergence",
        small={"hidden": 8, "noise": 0.5, "epochs": 40, "batch_size": 32, "lr": 0.05},
        toy="blobs",
        pass_mark=-4.5,
        rows=("MC-11", "MC-12", "MC-13", "MC-14", "MC-15", "MC-16", "MC-17"),
    ),
    System(
        name="DeepBeliefNetwork",
        path="castalia.models.generative:DeepBeliefNetwork",
        family="generative",
        tasks=("classification", "features", "sampling"),
        data="table",
        summary="Layers learnt one by one without labels, then together with them",
        reference="2006, Hinton, Osindero, Teh, A fast learning algorithm for deep belief nets",
        small={"hidden": (16, 16), "pretrain_epochs": 5, "epochs": 60, "lr": 2e-2},
        toy="moons",
        pass_mark=0.85,
    ),
)
