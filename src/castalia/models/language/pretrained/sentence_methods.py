"""What one does with vectors of texts: compare them, search by them, read them from a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from castalia.base import Interval
from castalia.data.text import TwinAdapter
from castalia.errors import DamagedFile, InvalidData, InvalidParameter
from castalia.models.language.generated_text import check_setting
from castalia.protocols import Spec
from castalia.utils.regular_files import parse_json, read_regular

__all__ = ["Hits", "SentenceMethods"]


class Hits(NamedTuple):
    """What a search found: numbers of documents and their cosines, (Q, k) each, best first."""

    documents: np.ndarray
    scores: np.ndarray


class SentenceMethods:
    """Methods of an estimator whose network gives unit vectors of texts."""

    adapter_: Any
    module_: Any
    vectors_: np.ndarray
    _checked: Any
    _through: Any

    # -- vectors -------------------------------------------------------------------------------

    def embed(self, X: Any) -> np.ndarray:
        """Return unit vectors of texts, (n, D), or of pairs of texts, (n, 2, D)."""
        X = self._checked(X)
        flat = torch.cat(list(self._through(X.ravel()))).numpy()
        return flat if X.ndim == 1 else flat.reshape(len(X), 2, -1)

    def transform(self, X: Any) -> np.ndarray:
        """Return what ``embed`` returns."""
        return self.embed(X)

    def similarity(self, first: Any, second: Any = None) -> np.ndarray:
        """Return the cosines of all texts with all others, (n, m); without ``second``, (n, n)."""
        a = self.embed(first)
        return a @ (a if second is None else self.embed(second)).T

    def index(self, documents: Any) -> Self:
        """Keep the vectors of documents, to be searched in; return itself.

        Parameters
        ----------
        documents
            N texts.
        """
        found = self.embed(documents)
        if found.ndim != 2:
            raise InvalidData(f"{type(self).__name__}.index: documents must be texts; got pairs.")
        self.vectors_ = found
        return self

    def search(self, queries: Any, k: int = 10) -> Hits:
        """Return the documents nearest to each query, best first.

        Parameters
        ----------
        queries
            Q texts.
        k
            How many; at most as many as there are documents.
        """
        name = f"{type(self).__name__}.search"
        check_setting("k", k, Interval(1, whole=True), name)
        if not hasattr(self, "vectors_"):
            raise InvalidParameter(
                f"{name}: there must be documents; call `index` with them first."
            )
        cosines = self.embed(queries) @ self.vectors_.T
        best = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
        return Hits(best, np.take_along_axis(cosines, best, axis=1))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the share of first texts whose second is the nearest of all second texts.

        Parameters
        ----------
        X
            Pairs; a text that occurs several times may be found in any of its places.
        y
            Not used.
        """
        check_is_fitted(self, "module_")
        X = self._checked(X)
        if X.ndim != 2:
            raise InvalidData(f"{type(self).__name__}.score: X must be pairs of texts; got texts.")
        best = self.similarity(X[:, 0], X[:, 1]).argmax(axis=1)
        return float(np.mean(X[best, 1] == X[:, 1]))

    # -- folders -------------------------------------------------------------------------------

    @classmethod
    def from_pretrained(cls, directory: str | os.PathLike[str]) -> Self:
        """Return the fitted encoder of a Hugging Face folder, or of sentence-transformers'.

        Parameters
        ----------
        directory
            The folder of a BERT, DistilBERT, RoBERTa or XLM-R with its tokenizer;
            ``1_Pooling/config.json`` says which vector is taken, the mean where there is none.
        """
        made: Any = cls(start=str(directory), pool=_pool(Path(directory)))  # type: ignore[call-arg]
        reader = made._reader()
        net = made._opened.net
        made.set_params(dim=net.dim, depth=len(net.blocks), heads=net.heads, context=net.context)
        made.adapter_ = TwinAdapter(context=net.context).adopt(reader.asked)
        made.spec_ = Spec(1, 0, extra={**made.adapter_.extra, "vocabulary": net.vocabulary})
        made.module_ = made._network(made.spec_).eval()
        made.history_, made.n_iter_ = [], 0
        return made  # type: ignore[no-any-return]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags


def _pool(folder: Path) -> str:
    """Return which vector a folder of sentence-transformers takes."""
    file = folder / "1_Pooling" / "config.json"
    try:
        said = parse_json(read_regular(file)) if file.is_file() else {}
        names = [name for name, value in said.items() if value]
    except (OSError, ValueError, AttributeError) as error:
        raise DamagedFile(
            f"SentenceEncoder.from_pretrained: '{file}' must be a JSON object; {error}."
        ) from None
    kinds = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "first"}
    chosen = [name for name in names if name.startswith("pooling_mode")]
    if not chosen:
        return "mean"
    if len(chosen) > 1 or chosen[0] not in kinds:
        raise InvalidParameter(
            f"SentenceEncoder.from_pretrained: pooling must be by the mean or the first token; got "
            f"{', '.join(chosen)} in `{file}`."
        )
    return kinds[chosen[0]]
