"""Data sets with the signature of torchvision's and the digits of scikit-learn."""

from __future__ import annotations

from typing import Any

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
