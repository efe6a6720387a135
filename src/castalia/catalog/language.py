"""Language models."""

from castalia.catalog.records import System

__all__ = ["LANGUAGE"]

LANGUAGE = (
    System(
        name="NGramLanguageModel",
        path="castalia.models.language:NGramLanguageModel",
        family="language",
        tasks=("language modelling", "generation"),
        data="text",
        summary="Language model by counting: the next word depends on the n - 1 before it",
        reference="1999, Chen, Goodman, An empirical study of smoothing techniques",
        small={"order": 3},
        toy="chain",
        pass_mark=0.32,
        seeded=False,
        rows=("LM-02", "LM-03", "LM-04", "LM-05", "LM-06", "LM-07"),
    ),
)
