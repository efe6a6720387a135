"""Data sets with the signature of torchvision's and the digits of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset

from evidence.scripts_data import digits

TRAINING = 1500


class Digits(Dataset):
    """White digits on black, 28 by 28."""

    size, colours = 28, False
    classes = [str(i) for i in range(10)]

    def __init__(
        self,
        root: Any = "",
        train: Any = True,
        transform: Any = None,
        target_transform: Any = None,
        download: bool = False,
        **_: Any,
    ) -> None:
        x, y = digits(self.size, self.colours)
        part = slice(0, TRAINING) if train in (True, "train", "byclass") else slice(TRAINING, None)
        self.data: Any = x[part] if self.colours else torch.from_numpy(x[part])
        self.targets: Any = y[part].tolist() if self.colours else torch.from_numpy(y[part])
        self.transform, self.target_transform = transform, target_transform

    train_data = test_data = property(lambda self: self.data)
    train_labels = test_labels = property(lambda self: self.targets)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        picture = self.data[index]
        x: Any = Image.fromarray(picture if self.colours else picture.numpy())
        y: Any = int(self.targets[index])
        x = x if self.transform is None else self.transform(x)
        return x, y if self.target_transform is None else self.target_transform(y)


class Painted(Digits):
    """Digits in colour, 32 by 32."""

    size, colours = 32, True


DATA_SETS = dict.fromkeys(("MNIST", "FashionMNIST", "KMNIST", "EMNIST"), Digits)
DATA_SETS |= dict.fromkeys(("CIFAR10", "SVHN"), Painted)


class Feed:
    """Flat digits between 0 and 1 by batches, as TensorFlow's first tutorials have them."""

    def __init__(self, part: slice, one_hot: bool) -> None:
        x, y = digits(28)
        self.images = (x[part].reshape(-1, 784) / 255).astype(np.float32)
        self.labels = np.eye(10, dtype=np.float32)[y[part]] if one_hot else y[part]
        self.rng, self.left = np.random.default_rng(0), np.empty(0, dtype=np.int64)

    def next_batch(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return rows that have not been given in this pass."""
        if len(self.left) < size:
            self.left = self.rng.permutation(len(self.images))
        rows, self.left = self.left[:size], self.left[size:]
        return self.images[rows], self.labels[rows]


class Feeds:
    """Digits to train with and to test with."""

    def __init__(self, folder: Any = "", one_hot: bool = False, **_: Any) -> None:
        self.train = Feed(slice(0, TRAINING), one_hot)
        self.test = self.validation = Feed(slice(TRAINING, None), one_hot)
