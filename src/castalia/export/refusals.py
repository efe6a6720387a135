"""Which systems of the catalogue have no graph, and why: one sentence a reason."""

from __future__ import annotations

__all__ = ["REFUSALS", "why_not"]

_WRITES = (
    "it writes token after token in a loop; `--to hf` makes a folder for transformers where the "
    "model has `save_pretrained`"
)
_SEQUENCES = (
    "it steps through sequences of any length, which are padded and masked outside the network; "
    "take `module_` and trace it at the lengths you need"
)
_SERIES = (
    "a forecast cuts, scales and rolls its windows outside the network; serve the saved model with "
    "`castalia serve`"
)
_STATES = "its answer is a recursion over all steps of a sequence, not a network"
_SAMPLES = "it answers with random draws, and a graph has no generator to seed"
_GRAPHS = "neighbours are gathered outside the network, and each graph has another shape"
_PAIRS = "tokens, segments and masks of its texts are laid out outside the network; use `--to hf`"
_TREES = "its members may be trees and its weights are combined outside a network"
_ROWS = (
    "its predictions solve a system over all training rows; KernelRidge with the same kernel "
    "predicts the same mean and is exported"
)
_COUNTS = "it answers from tables of counts or probabilities, by queries that are no tensor graph"
_VECTORS = "it is a table of word vectors; write it with `save_word2vec_format`"
_WORDS = "words are split, looked up and pooled outside the network"
_ADAPTS = "it answers for a task that a few rows name; export the estimator that `adapt` returns"
_COMPARES = "it answers by the few rows that name a task; take `module_` and trace it"
_ACTS = "it answers states of a world; take `module_`, or the table `values_`"
_HEADS = "its network is asked in a way of its own; take `module_` and trace it"

REFUSALS: dict[str, str] = {
    **dict.fromkeys(("GPTLanguageModel", "LlamaLanguageModel", "T5", "BART"), _WRITES),
    **dict.fromkeys(("Transformer", "Seq2Seq", "RNNLanguageModel", "WindowLanguageModel"), _WRITES),
    **dict.fromkeys(("ImageCaptioner", "DRAW"), "it reads and writes step after step in a loop"),
    **dict.fromkeys(("RNNClassifier", "RNNRegressor", "RNNTagger", "RNNGenerator"), _SEQUENCES),
    **dict.fromkeys(("RNNForecaster", "TemporalConvNet", "WindowRegressor"), _SERIES),
    **dict.fromkeys(("TransformerForecaster", "NaiveForecaster", "AdaptiveFilter"), _SERIES),
    **dict.fromkeys(("HiddenMarkovModel", "KalmanFilter", "LinearDynamicalSystem"), _STATES),
    **dict.fromkeys(("EchoStateNetwork", "EchoStateClassifier", "LiquidStateMachine"), _STATES),
    **dict.fromkeys(("GenerativeAdversarialNetwork", "MomentMatching", "DiffusionModel"), _SAMPLES),
    **dict.fromkeys(("DropoutEnsemble", "RestrictedBoltzmannMachine"), _SAMPLES),
    **dict.fromkeys(("DeepBeliefNetwork", "BoltzmannMachine"), _SAMPLES),
    **dict.fromkeys(("NodeClassifier", "NodeRegressor", "GraphClassifier"), _GRAPHS),
    **dict.fromkeys(("GraphRegressor", "LinkPredictor"), _GRAPHS),
    **dict.fromkeys(("BERT", "RoBERTa", "BERTClassifier", "BERTTagger"), _PAIRS),
    **dict.fromkeys(("BERTQuestionAnswerer", "SentenceEncoder", "GPTClassifier"), _PAIRS),
    **dict.fromkeys(("AdaBoost", "GradientBoost"), _TREES),
    **dict.fromkeys(("GaussianProcessRegressor", "GaussianProcessClassifier"), _ROWS),
    **dict.fromkeys(("SparseGaussianProcess",), _ROWS),
    **dict.fromkeys(("BayesianNetwork", "NGramLanguageModel", "GaussianMixture"), _COUNTS),
    **dict.fromkeys(("Word2Vec", "FastText", "GloVe"), _VECTORS),
    **dict.fromkeys(("ELMo", "ELMoClassifier", "ELMoTagger", "AttentionClassifier"), _WORDS),
    **dict.fromkeys(("Compress", "MultiTask", "Ranking", "SelfSupervised"), _HEADS),
    **dict.fromkeys(("MAML", "Reptile"), _ADAPTS),
    **dict.fromkeys(("ProtoNet", "ConditionalNeuralProcess"), _COMPARES),
    **dict.fromkeys(("AttentiveNeuralProcess", "NeuralProcess"), _COMPARES),
    **dict.fromkeys(("QLearning", "TDLearning", "DQN", "PolicyGradient"), _ACTS),
    "DriftDetector": "it compares many rows with many others, and answers no single one",
    "YOLODetector": "boxes are decoded and suppressed outside the network",
    "FullyConvolutional": "it wraps a classifier and slides it over images of any size",
    "RecursiveNetwork": "each tree is another graph, folded node by node",
    "StyleTransfer": "every answer is an optimisation of its own",
    "RandomFourierFeatures": "it is a step of a pipeline, not a model that answers",
    "RandomFeatureRegression": (
        "its random waves are not written as a graph; KernelRidge with the same kernel is exported"
    ),
}


def why_not(system: str) -> str | None:
    """Return why a system has no graph, or None where it has one.

    Examples
    --------
    >>> why_not("MLPClassifier") is None, why_not("StyleTransfer")
    (True, 'every answer is an optimisation of its own')
    """
    return REFUSALS.get(system)
