"""
A density, and points drawn from it
===================================

A normalizing flow turns Gaussian noise into the distribution of the rows, with the exact density at every point.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import castalia

X, _ = make_moons(1000, noise=0.08, random_state=0)
model = castalia.NormalizingFlow(epochs=60, random_state=0).fit(X)
grid = np.linspace(-1.8, 2.8, 120)
plane = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
density = np.exp(model.score_samples(plane)).reshape(120, 120)

fig, axes = plt.subplots(1, 3, figsize=(10, 3.4), sharex=True, sharey=True)
axes[0].scatter(*X.T, s=3)
axes[1].contourf(grid, grid, density, levels=30)
axes[2].scatter(*model.sample(1000, random_state=0).T, s=3)
for axis, title in zip(axes, ("rows", "density", "drawn"), strict=True):
    axis.set(title=title, xlim=(-1.8, 2.8), ylim=(-1.3, 1.8))
plt.tight_layout()
