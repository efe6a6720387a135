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
    System(
        name="Word2Vec",
        path="castalia.models.language:Word2Vec",
        family="language",
        tasks=("word vectors", "transformation"),
        data="text",
        summary="Word vectors from which a word predicts its neighbours, or they predict it",
        reference="2013, Mikolov et al., Efficient estimation of word representations, 1301.3781",
        small={"dim": 8, "epochs": 5, "lr": 0.1, "subsample": 0.0},
        toy="topics",
        pass_mark=0.65,
        rows=("LM-22", "LM-23", "LM-24", "LM-25", "LM-26", "LM-27", "LM-28", "LM-29"),
    ),
    System(
        name="FastText",
        path="castalia.models.language:FastText",
        family="language",
        tasks=("word vectors", "transformation"),
        data="text",
        summary="Word vectors made of those of character n-grams, for words never seen, too",
        reference="2017, Bojanowski et al., Enriching word vectors, arXiv 1607.04606",
        small={"dim": 8, "epochs": 5, "lr": 0.1, "buckets": 200, "subsample": 0.0},
        toy="topics",
        pass_mark=0.65,
        rows=("LM-32",),
    ),
    System(
        name="GloVe",
        path="castalia.models.language:GloVe",
        family="language",
        tasks=("word vectors", "transformation"),
        data="text",
        summary="Word vectors whose products are logarithms of counts of co-occurrence",
        reference="2014, Pennington, Socher, Manning, GloVe: global vectors for words",
        small={"dim": 8, "epochs": 20, "batch_size": 64},
        toy="topics",
        pass_mark=0.65,
        rows=("LM-31",),
    ),
)
