"""
Learning rates
==============

The same network and the same seed at four learning rates: too small is slow, too large does not settle. ``history_`` has
one line for each epoch.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import castalia

X, y = load_digits(return_X_y=True)
plt.figure(figsize=(7, 3.2))
for lr in (1e-4, 1e-3, 1e-2, 1e-1):
    model = castalia.MLPClassifier(hidden=(64,), epochs=25, lr=lr, random_state=0).fit(X, y)
    plt.plot([line["loss"] for line in model.history_], label=f"lr={lr:g}")
plt.yscale("log")
plt.xlabel("epoch")
plt.ylabel("training loss")
plt.legend()
plt.tight_layout()
