"""
A forecast with its interval
============================

A series with a trend and a yearly cycle, its last two years kept back. The forecast has an interval that was measured
on steps that the model had not seen.
"""

import matplotlib.pyplot as plt
import numpy as np

import castalia

rng = np.random.default_rng(0)
months = np.arange(240)
series = 0.05 * months + 3 * np.sin(2 * np.pi * months / 12) + 0.5 * rng.normal(size=240)

model = castalia.WindowRegressor(context=36, horizon=24, solver="ridge").fit(series[:216])
found = model.predict(series[:216])
low, high = model.predict_interval(series[:216])

plt.figure(figsize=(8, 3.2))
plt.plot(months[120:216], series[120:216], label="known")
plt.plot(months[216:], series[216:], "k.", ms=4, label="what came")
plt.plot(months[216:], np.ravel(found), label="forecast")
plt.fill_between(months[216:], np.ravel(low), np.ravel(high), alpha=0.25)
plt.legend()
plt.tight_layout()
