"""A classifier in every window of larger images, in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from castalia.base import Constraint, DirectEstimator, OneOf, check_parameters
from castalia.base.input_checks import check_target, split_target
from castalia.data.images import ImageRows, Images, as_images
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.vision.convolutional_classifiers import LeNetClassifier
from castalia.models.vision.image_classifier import ImageClassifier
from castalia.nets.vision.sliding_classifier import feature_stride, fully_convolutional
from castalia.utils.devices import resolve_device
from castalia.utils.seeds import seed_from
from castalia.utils.text import plural

__all__ = ["FullyConvolutional"]

BLOCK = 1 << 20  # numbers of a block of images of one size


class FittedImageClassifier(Constraint):
    """One of our image classifiers."""

    def rule(self) -> str:
        """Say so."""
        return "a classifier of images, such as LeNetClassifier(), or None"

    def holds(self, value: Any) -> bool:
        """Whether it is one."""
        return value is None or isinstance(value, ImageClassifier)


@dataclass(kw_only=True, eq=False, repr=False)
class FullyConvolutional(ClassifierMixin, DirectEstimator):
    """A classifier of small images that looks everywhere in large ones.

    Dense layers on maps are convolutions, so a network that was trained on windows gives its
    answers for every window of a larger image in one pass: a map of scores for each class, here
    pooled to one answer. Right where the thing to find is small and may be anywhere; to outline it,
    train a segmenter.

    Parameters
    ----------
    estimator
        A classifier of images of ours. Fitted, it is used as it is by ``fit()`` without data;
        ``fit(X, y)`` trains a copy of it on windows. None takes a quick ``LeNetClassifier``.
    pool
        How a map becomes one score a class: ``"max"``, the best window decides, or ``"mean"``.

    Attributes
    ----------
    estimator_ : ImageClassifier
        The fitted classifier.
    module_ : torch.nn.Module
        Its network as a convolution, from (B, C, H, W) to (B, K, h, w).
    classes_ : ndarray (K,)
        The classes, in the order of ``predict_proba`` and of the maps.
    window_ : tuple of int
        Height and width of a window, the size that the classifier was trained on.
    stride_ : tuple of int
        Pixels between neighbouring windows, down and across.

    Shapes
    ------
    X: (n, H, W) or (n, H, W, C) array, (n, C, H, W) tensor, or ``Images``, perhaps of several
    sizes, none smaller than the window.  Maps: (n, K, (H - H_window) // stride + 1, ...).

    Notes
    -----
    Entry (i, j) of a map is the score of the window whose corner is at (i, j) times the stride,
    exactly so for networks without padding. Padded convolutions differ from the window cut out: the
    cut has zeros around it where the map sees the rest of the image, and the more layers pad, the
    farther in that reaches. Images keep their scale, also when the classifier resizes its own.
    One pass costs as much as the features of the whole image, not of every window.

    References
    ----------
    2014, Sermanet et al., OverFeat, ICLR, arXiv 1312.6229. 2016, Durand, Thome, Cord, WELDON:
    weakly supervised learning of deep convolutional neural networks, CVPR (pooled class maps).

    See Also
    --------
    LeNetClassifier : one answer for an image of one size.
    FCNSegmenter : a class for every pixel, trained on masks.

    Examples
    --------
    >>> from castalia.testing.toys import stripes
    >>> X, y = stripes()
    >>> small = LeNetClassifier(epochs=15, lr=0.01, random_state=0).fit(X, y)
    >>> model = FullyConvolutional(estimator=small).fit()
    >>> model.transform(stripes(5, size=32)[0]).shape, model.window_, model.stride_
    ((5, 3, 6, 6), (12, 12), (4, 4))
    """

    _unsaved: ClassVar[tuple[str, ...]] = ("module_",)  # made again from the classifier's

    estimator: Annotated[Any, FittedImageClassifier()] = None
    pool: Annotated[str, OneOf("max", "mean")] = "max"

    def fit(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> FullyConvolutional:
        """Take the fitted classifier as it is, or train a copy of it.

        Parameters
        ----------
        X
            Images as large as a window, to train on; None: the classifier is trained already.
        y
            Their classes.
        sample_weight
            How often each image counts.

        Returns
        -------
        self
        """
        check_parameters(self)
        if X is None:
            if not hasattr(self.estimator, "module_"):
                raise InvalidParameter(
                    "FullyConvolutional: `estimator` must be fitted when `fit` gets no data; got "
                    f"{self.estimator!r}. Fit it first, or give X and y."
                )
            fitted = self.estimator
        else:
            X, y = split_target(X, y)
            X = as_images(X, type(self).__name__)
            fitted = self._copy().fit(X, check_target(self, X, y), sample_weight)
        self._adopt(fitted)
        return self

    def _copy(self) -> ImageClassifier:
        """Return a classifier to train, seeded by this one's seed where there is one."""
        base = LeNetClassifier(epochs=15, lr=0.01) if self.estimator is None else self.estimator
        made: ImageClassifier = clone(base)
        if self.random_state is not None:
            made.set_params(random_state=seed_from(self.random_state))
        return made

    def _adopt(self, fitted: ImageClassifier) -> None:
        self.__dict__.pop("module_", None)  # that of an earlier fit
        self.estimator_ = fitted
        self.classes_ = fitted.classes_
        height, width = fitted.adapter_.size
        self.window_ = (int(height), int(width))
        self.stride_ = feature_stride(fitted.module_, self.window_)  # type: ignore[arg-type]
        self.module_.to(resolve_device(self.device))

    @cached_property
    def module_(self) -> nn.Module:
        """The classifier's network as a convolution; of a saved model, made when first used."""
        check_is_fitted(self, "estimator_")
        return fully_convolutional(self.estimator_.module_, self.window_)

    def transform(self, X: Any) -> Any:
        """Return the scores of each class in every window.

        Returns
        -------
        ndarray (n, K, h, w) or list
            Scores before the softmax; of images of several sizes a list of (K, h, w).
        """
        blocks = [maps.numpy() for maps in self._maps(X)]
        if len({maps.shape[1:] for maps in blocks}) > 1:
            return [maps[0] for maps in blocks]
        return np.concatenate(blocks)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, by the pooled scores."""
        return self.estimator_.codec.probability(self.estimator_, self._pooled(X)).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of the highest pooled score, or the 0/1 matrix of labels."""
        scores = self._pooled(X)
        if self.estimator_.multilabel_:
            return (scores > 0).numpy().astype(int)
        return self.classes_[scores.argmax(dim=1).numpy()]

    def _pooled(self, X: Any) -> Tensor:
        """Return one score a class for each image, (n, K)."""
        pool = torch.amax if self.pool == "max" else torch.mean
        return torch.cat([pool(maps, dim=(2, 3)) for maps in self._maps(X)])

    def _maps(self, X: Any) -> Iterator[Tensor]:
        """Yield class maps block by block, on the CPU: images of one size, or one image."""
        check_is_fitted(self, "estimator_")
        X, device = self._pictures(X), resolve_device(self.device)
        net, sizes = self.module_.to(device), X.sizes
        one_size = bool((sizes == sizes[0]).all())
        step = max(1, BLOCK // int(sizes[0].prod())) if one_size else 1
        for start in range(0, len(X), step):
            index = np.arange(start, min(start + step, len(X)))
            height, width = sizes[start].tolist()
            with torch.inference_mode():
                yield net(self._normalised(X, index, (height, width)).to(device)).cpu()

    def _normalised(self, X: Images, index: np.ndarray, size: tuple[int, int]) -> Tensor:
        """Return some images of one size as the network wants them."""
        adapter = self.estimator_.adapter_
        dtype = next(self.module_.parameters()).dtype
        mean, deviation = (torch.from_numpy(v).to(dtype) for v in (adapter.mean, adapter.deviation))
        pixels = X.pixels(index, size, adapter.inputs)
        return ImageRows(pixels, mean, deviation).take(torch.arange(len(index)))

    def _pictures(self, X: Any) -> Images:
        """Return X as images that the network can slide over."""
        X = as_images(X, type(self).__name__)
        channels = self.estimator_.adapter_.inputs
        if X.channels != channels and not {X.channels, channels} <= {1, 3, 4}:
            raise InvalidData(
                f"FullyConvolutional: images must have {plural(channels, 'channel')}, as in fit; "
                f"got {X.channels}."
            )
        sizes = X.sizes
        small = (sizes < self.window_).any(axis=1)
        if small.any():
            first = int(small.argmax())
            raise InvalidData(
                f"FullyConvolutional: images must have at least {self.window_[0]} x "
                f"{self.window_[1]} pixels, one window; image {first} has "
                f"{sizes[first, 0]} x {sizes[first, 1]}."
            )
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
