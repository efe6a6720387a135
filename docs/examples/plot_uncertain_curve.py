"""
A curve with its uncertainty
============================

A Gaussian process and an ensemble of networks say where they do not know: the band should hold 95 of 100 points, and it
opens where there are no points.
"""

import matplotlib.pyplot as plt
import numpy as np

import castalia

rng = np.random.default_rng(0)
x = np.concatenate([rng.uniform(0, 3, 25), rng.uniform(5, 7, 15)])[:, None]
y = np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=len(x))
line = np.linspace(-1, 9, 300)[:, None]

models = {
    "Gaussian process": castalia.GaussianProcessRegressor(random_state=0),
    "ensemble of networks": castalia.DeepEnsemble(
        castalia.MLPRegressor(hidden=(64,), epochs=300, random_state=0), members=8, random_state=0
    ),
}
fig, axes = plt.subplots(1, 2, figsize=(10, 3.4), sharey=True)
for axis, (name, model) in zip(axes, models.items(), strict=True):
    mean = model.fit(x, y).predict(line)
    if hasattr(model, "predict_interval"):
        low, high = model.predict_interval(line, 0.95)
    else:
        low, high = (mean + sign * 2 * model.predict_std(line) for sign in (-1, 1))
    axis.fill_between(line[:, 0], low, high, alpha=0.25)
    axis.plot(line, mean)
    axis.plot(x, y, "k.", ms=4)
    axis.set(title=name, ylim=(-3, 3))
plt.tight_layout()
