"""Agents that learn by acting."""

from castalia.catalog.records import System

__all__ = ["CONTROL"]

CONTROL = (
    System(
        name="QLearning",
        path="castalia.models.control:QLearning",
        family="control",
        tasks=("control",),
        data="world",
        summary="A table of what each action is worth in each state, learnt by acting",
        reference="1989, Watkins, Learning from delayed rewards, Cambridge",
        small={"episodes": 100},
        toy="grid",
        pass_mark=0.9,
        rows=("PAR-05",),
    ),
    System(
        name="TDLearning",
        path="castalia.models.control:TDLearning",
        family="control",
        tasks=("control",),
        data="world",
        summary="Values of states, or positions of a game, from the difference of two guesses",
        reference="1988, Sutton, Learning by temporal differences, Machine Learning 3",
        small={"episodes": 100},
        toy="steps",
        pass_mark=-0.5,
        rows=("PAR-06",),
    ),
    System(
        name="DQN",
        path="castalia.models.control:DQN",
        family="control",
        tasks=("control",),
        data="world",
        summary="A network of what each action is worth, learnt from remembered steps",
        reference="2015, Mnih et al., Human-level control, Nature 518",
        small={
            "epochs": 25,
            "steps": 16,
            "copies": 4,
            "updates": 20,
            "hidden": (16,),
            "batch_size": 32,
            "lr": 1e-2,
            "memory": 2000,
        },
        toy="grid",
        pass_mark=0.9,
        rows=("PAR-05",),
    ),
    System(
        name="PolicyGradient",
        path="castalia.models.control:PolicyGradient",
        family="control",
        tasks=("control",),
        data="world",
        summary="An agent that does more of what went better than expected: REINFORCE, A2C, PPO",
        reference="2017, Schulman et al., Proximal policy optimization, arXiv 1707.06347",
        small={"epochs": 25, "steps": 16, "hidden": (16,), "lr": 1e-2},
        toy="grid",
        pass_mark=0.9,
        rows=("PAR-05",),
    ),
)
