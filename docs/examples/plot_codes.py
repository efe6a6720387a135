"""
Digits as two numbers
=====================

An autoencoder squeezes 64 pixels through two numbers. It never sees a label; the colours are only in the figure.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import castalia

X, y = load_digits(return_X_y=True)
fig, axes = plt.subplots(1, 2, figsize=(10, 4.2))
models = {
    "PCA": castalia.PCA(components=2),
    "autoencoder": castalia.Autoencoder(hidden=(64, 32), code=2, epochs=60, random_state=0),
}
for axis, (name, model) in zip(axes, models.items(), strict=True):
    codes = model.fit(X).transform(X)
    axis.scatter(*codes.T, c=y, cmap="tab10", s=6)
    axis.set(title=name, xticks=[], yticks=[])
plt.tight_layout()
