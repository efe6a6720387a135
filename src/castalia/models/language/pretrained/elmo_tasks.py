"""Labels of texts and tags of words, from a mix of ELMo's layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from sklearn.utils.validation import check_is_fitted
from torch import nn

from castalia.base import Classifier, Estimator, Interval, OneOf
from castalia.data.text import SentenceAdapter
from castalia.errors import InvalidParameter
from castalia.models.language.pretrained.elmo_parameters import ELMoSizes
from castalia.models.language.pretrained.start_weights import StartReader
from castalia.models.language.word_tagger import WordTagger
from castalia.nets.language import ELMoReader
from castalia.objectives import Objective, class_loss
from castalia.protocols import Spec

__all__ = ["ELMoClassifier", "ELMoTagger"]


@dataclass(kw_only=True, eq=False, repr=False)
class ELMoTask(ELMoSizes):
    """Fields of estimators that learn a task on ELMo; see ``ELMoClassifier``."""

    train: Annotated[str | None, OneOf("head", "all", None)] = None
    norm: Annotated[bool, OneOf(True, False)] = False

    def _mixed(self, spec: Spec, pool: str | None) -> nn.Module:
        """Build the network, with what is not trained frozen."""
        if self.start is None and self.train == "head":
            raise InvalidParameter(
                f"{type(self).__name__}: `train` must be None or 'all' without a `start`, or "
                "random weights would be kept; got 'head'. Give a `start`."
            )
        frozen = self.start is not None and self.train != "all"
        # What is frozen gives the same vectors every time
        encoder = self._encoder(spec, predicts=False, dropout=0.0 if frozen else self.dropout)
        encoder.requires_grad_(not frozen)
        return ELMoReader(encoder, spec.outputs, pool=pool, dropout=self.dropout, norm=self.norm)

    @property
    def layer_shares_(self) -> Any:
        """What part each layer has in the mix, softmax(s), (depth + 1,)."""
        check_is_fitted(self, "module_")
        module: Any = vars(self)["module_"]
        return module.mix.shares.detach().cpu().numpy()


@dataclass(kw_only=True, eq=False, repr=False)
class ELMoClassifier(ELMoTask, Classifier, Estimator):
    """Texts classified by a mix of ELMo's layers.

    gamma sum_j softmax(s)_j h_j is a vector for each token; they are pooled and a linear layer
    scores them; cross-entropy is minimised. With a ``start``, a pretrained ``ELMo`` stays as it is
    and only s, gamma and the linear layer are learnt: right with few labels. ``BERTClassifier``
    is stronger where there is a pretrained BERT.

    Parameters
    ----------
    context
        Most tokens of a text, begin and end included; longer ones are cut.
    spelled
        Whether a token's vector is made of how it is written; a ``start`` has its own layer.
    dropout
        Probability for the pooled vectors, and inside ELMo where that is trained.
    start
        A fitted ``ELMo`` or the folder of a saved one; None: random weights.
    train
        ``"head"``: the mix and the last layer; ``"all"``: ELMo too; None: the head with a
        ``start``, all without.
    norm
        Whether layers are normalised before they are mixed.
    pool
        ``"mean"`` or ``"max"`` over the tokens.
    label_smoothing
        Share of a label's mass that is spread over all classes.
    class_weight
        None, ``"balanced"`` or a dict from class to weight.
    calibrate
        Fit one temperature on the validation rows after training.
    tokenizer, dim, depth, hidden
        As for ``ELMo``.

    Attributes
    ----------
    classes_ : ndarray (K,)
        The classes, in the order of ``predict_proba``.
    layer_shares_ : ndarray (depth + 1,)
        What part each layer has in the mix.
    module_ : torch.nn.Module
        The trained ``castalia.nets.language.ELMoReader``.
    history_ : list of dict
        Loss and validation loss of every epoch.

    Shapes
    ------
    X: n texts or n lists of words.  y: (n,) classes, or (n, L) of 0 and 1.

    Notes
    -----
    Costs what ``ELMo`` costs, without its output layer; no gradient goes through a frozen one.

    References
    ----------
    2018, Peters et al., Deep contextualized word representations, arXiv 1802.05365.

    See Also
    --------
    ELMo : the pretraining.
    ELMoTagger : a tag for every word.

    Examples
    --------
    >>> X = ["good film", "bad film", "a good one", "a bad one"] * 15
    >>> y = [1, 0, 1, 0] * 15
    >>> model = ELMoClassifier(dim=8, depth=1, dropout=0.0, epochs=15, lr=0.02, random_state=0)
    >>> model.fit(X, y).predict(["good", "bad"])
    array([1, 0])
    """

    pool: Annotated[str, OneOf("mean", "max")] = "mean"
    label_smoothing: Annotated[float, Interval(0, 1, closed="left")] = 0.0

    def _network(self, spec: Spec) -> nn.Module:
        return self._mixed(spec, self.pool)

    def _objective(self, spec: Spec) -> Objective:
        return class_loss(self.multilabel_, self.label_smoothing)


@dataclass(kw_only=True, eq=False, repr=False)
class ELMoTagger(ELMoTask, WordTagger):
    """Tags of words by a mix of ELMo's layers.

    gamma sum_j softmax(s)_j h_j is a vector for each token, and a linear layer on that of a word's
    first piece scores its tags; cross-entropy is minimised. With a ``start``, a pretrained ``ELMo``
    stays as it is and only s, gamma and the linear layer are learnt; without, it is a tagger of
    recurrent layers in both directions.

    Parameters
    ----------
    context
        Most tokens of a sentence, begin and end included; words after them get the tag that is
        commonest.
    dropout
        Probability for the mixed vectors, and inside ELMo where that is trained.
    tokenizer, dim, depth, hidden
        As for ``ELMo``.
    spelled, start, train, norm
        As for ``ELMoClassifier``.

    Attributes
    ----------
    classes_ : ndarray (K,)
        The tags.
    layer_shares_, module_, history_
        As for ``ELMoClassifier``.

    Shapes
    ------
    X: n lists of words.  y: n lists of as many tags.  ``predict``: n lists of tags.

    Notes
    -----
    ``score`` is the share of words with the right tag.

    References
    ----------
    2018, Peters et al., Deep contextualized word representations, arXiv 1802.05365.

    See Also
    --------
    ELMo : the pretraining.
    BERTTagger : attention instead of recurrence.

    Examples
    --------
    >>> X = [["Ann", "sees", "Bob"], ["Bob", "sleeps"]] * 20
    >>> y = [["NAME", "VERB", "NAME"], ["NAME", "VERB"]] * 20
    >>> model = ELMoTagger(dim=8, depth=1, dropout=0.0, epochs=10, lr=0.02, random_state=0)
    >>> model.fit(X, y).predict([["Bob", "sees", "Ann"]]).tolist()
    [['NAME', 'VERB', 'NAME']]
    """

    adapter: ClassVar[Any] = StartReader(SentenceAdapter, words=True)

    def _network(self, spec: Spec) -> nn.Module:
        return self._mixed(spec, None)
