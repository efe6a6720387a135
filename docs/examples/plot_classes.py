"""
Classes of a plane
==================

A perceptron with hidden units draws curved borders; with none it draws a line. The shade is the probability of the
second class.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import castalia

X, y = make_moons(400, noise=0.2, random_state=0)
test, labels = make_moons(1000, noise=0.2, random_state=1)
grid = np.linspace(-2.2, 3.2, 120)
plane = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)

fig, axes = plt.subplots(1, 3, figsize=(10, 3.4), sharey=True)
for axis, hidden in zip(axes, [(), (4,), (32, 32)], strict=True):
    model = castalia.MLPClassifier(hidden=hidden, epochs=60, random_state=0).fit(X, y)
    chance = model.predict_proba(plane)[:, 1].reshape(120, 120)
    axis.contourf(grid, grid, chance, levels=20, cmap="RdBu", alpha=0.7)
    axis.scatter(*X.T, c=y, cmap="RdBu", s=9, edgecolors="k", linewidths=0.3)
    axis.set(title=f"hidden={hidden}: {model.score(test, labels):.1%}", ylim=(-1.6, 2.1))
plt.tight_layout()
