"""
Labels that travel along edges
==============================

A graph of two communities; six nodes have a label. A graph convolutional network passes what it knows along the edges,
a network without them sees only the features of a node, which say little.
"""

import matplotlib.pyplot as plt
import numpy as np

import castalia
from castalia.data import Graph

rng = np.random.default_rng(0)
side = np.repeat([0, 1], 40)
chance = np.where(side[:, None] == side, 0.12, 0.01)
edges = np.argwhere(np.triu(rng.random((80, 80)) < chance, 1))
features = side[:, None] + rng.normal(scale=2.0, size=(80, 4))
graph = Graph(edges, features)
known = np.array([0, 1, 2, 40, 41, 42])

model = castalia.NodeClassifier(hidden=16, epochs=60, random_state=0).fit(graph[known], side[known])
plain = castalia.LogisticRegression().fit(features[known], side[known])
answers = {"features alone": plain.predict(features), "features and edges": model.predict(graph)}

places = rng.normal(size=(80, 2)) + 3.2 * np.stack([side, 0 * side], axis=1)
fig, axes = plt.subplots(1, 2, figsize=(10, 4))
for axis, (name, found) in zip(axes, answers.items(), strict=True):
    for edge in edges:
        axis.plot(*places[edge].T, color="0.8", lw=0.5, zorder=0)
    wrong = found != side
    axis.scatter(*places.T, c=found, cmap="coolwarm", s=30, edgecolors=np.where(wrong, "k", "none"))
    axis.set(title=f"{name}: {wrong.sum()} of 80 wrong (ringed)", xticks=[], yticks=[])
plt.tight_layout()
