"""
Why a penguin is an Adélie
==========================

Which columns a model uses, measured by how much worse it gets when a column is shuffled.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.inspection import permutation_importance
from sklearn.model_selection import train_test_split

import castalia
from castalia.data import datasets

found = datasets.load("penguins")
frame = pd.DataFrame({name: found.column(name) for name in found.columns})
X, test, y, labels = train_test_split(
    frame.drop(columns="species"), frame["species"], random_state=0
)
model = castalia.MLPClassifier(epochs=40, random_state=0).fit(X, y)
print(f"{model.score(test, labels):.1%} of {len(test)} penguins are named rightly")

# %%
# scikit-learn's tools take the model as one of their own:

drop = permutation_importance(model, test, labels, n_repeats=10, random_state=0)
order = drop.importances_mean.argsort()
plt.figure(figsize=(7, 3))
plt.barh(X.columns[order], drop.importances_mean[order], xerr=drop.importances_std[order])
plt.xlabel("share of right answers lost")
plt.tight_layout()

# %%
# The estimator shows itself as scikit-learn's do:

model
