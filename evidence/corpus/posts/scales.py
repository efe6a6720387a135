"""Columns and targets of wild scale, or good for nothing: CST201 to 203."""

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer, load_wine
from torch import Tensor, nn

from castalia.diagnose import Diagnosis
from evidence.corpus.cases import case
from evidence.corpus.posts._data import (
    customers,
    demand,
    halves,
    handwriting,
    houses,
    parcels,
    rng,
    zscore,
)
from evidence.corpus.posts._loops import fit, kernel, quickstart, r2
from evidence.corpus.posts._nets import LastStep, SmallCNN, dense


@case("CST201", dose="severe", data="tabular", net="mlp")
def houses_straight_from_the_csv(seed: int, fault: bool = True) -> Diagnosis:
    """Income in euros beside the number of rooms; only the price was scaled."""
    torch.manual_seed(seed)
    X, _, X_val, _ = houses(seed, raw=fault)
    _, y, _, y_val = houses(seed)
    model = dense(6, 64, 64, 1)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    return fit(model, opt, nn.MSELoss(), (X, y, X_val, y_val), 30, metric=r2)


@case("CST201", dose="mild", data="tabular", net="mlp")
def tumours_with_their_areas(seed: int, fault: bool = True) -> Diagnosis:
    """The breast cancer table unscaled: areas of a thousand beside smoothness of 0.1."""
    torch.manual_seed(seed)
    X, y = load_breast_cancer(return_X_y=True)
    order = rng(seed).permutation(len(y))
    X, y, X_val, y_val = halves(X[order], y[order].astype(np.float64)[:, None])
    if not fault:
        X, X_val = zscore(X, X_val)
    model = dense(30, 16, 16, 1, act=nn.Tanh)
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    return quickstart(model, opt, nn.BCEWithLogitsLoss(), (X, y, X_val, y_val), 15)


@case("CST201", dose="severe", data="images", net="cnn", accept=("CST101",))
def pixels_up_to_255(seed: int, fault: bool = True) -> Diagnosis:
    """Images were read as bytes and cast to float, never divided by 255."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = handwriting(seed, 600)
    scale = 255.0 if fault else 1.0
    model = SmallCNN(act=nn.ELU)
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    data = X * scale, y, X_val * scale, y_val
    return kernel(model, opt, F.cross_entropy, data, 7, batch_size=32)


@case("CST201", dose="mild", data="tabular", net="mlp")
def a_timestamp_among_the_columns(seed: int, fault: bool = True) -> Diagnosis:
    """Seconds since 1970 were added as an eleventh column."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = customers(seed)
    r = rng(seed)
    if fault:
        X = torch.cat([X, torch.as_tensor(1.7e9 + 1e6 * r.random((len(X), 1))).float()], 1)
        extra = torch.as_tensor(1.7e9 + 1e6 * r.random((len(X_val), 1))).float()
        X_val = torch.cat([X_val, extra], 1)
    model = dense(X.shape[1], 48, 48, 2)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    return fit(model, opt, nn.CrossEntropyLoss(), (X, y, X_val, y_val), 15)


@case("CST202", dose="severe", data="tabular", net="mlp", accept=("CST102",))
def prices_in_euros(seed: int, fault: bool = True) -> Diagnosis:
    """Columns are standardised, the price is not: Adam at 1e-3 has half a million to climb."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = houses(seed)
    if fault:
        _, y, _, y_val = houses(seed, raw=True)
    model = dense(6, 64, 64, 1)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    return fit(model, opt, nn.MSELoss(), (X, y, X_val, y_val), 25, metric=r2)


@case("CST202", dose="severe", data="sequences", net="lstm", accept=("CST102",))
def megawatts_from_an_lstm(seed: int, fault: bool = True) -> Diagnosis:
    """Inputs are scaled to unit size, the target is left at 42000 MW."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = demand(seed)
    if fault:
        _, y, _, y_val = demand(seed, raw=True)
    model = LastStep(1, 24, 1, cell=nn.LSTM)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    return kernel(model, opt, F.l1_loss, (X, y, X_val, y_val), 8, metric=r2)


@case("CST202", dose="mild", data="tabular", net="mlp")
def two_targets_of_unequal_size(seed: int, fault: bool = True) -> Diagnosis:
    """Price in thousands and a grade between 0 and 1 under one squared error: the grade is lost."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = houses(seed)
    grade, grade_val = torch.tanh(X[:, :1] * X[:, 3:4]), torch.tanh(X_val[:, :1] * X_val[:, 3:4])
    k = 300.0 if fault else 1.0
    y, y_val = torch.cat([k * y, grade], 1), torch.cat([k * y_val, grade_val], 1)
    model = dense(6, 64, 64, 2)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)

    def graded(out: Tensor, t: Tensor) -> float:
        return r2(out[:, 1], t[:, 1])

    return fit(model, opt, nn.MSELoss(), (X, y, X_val, y_val), 25, metric=graded)


@case("CST203", dose="severe", data="tabular", net="mlp", accept=("CST105",))
def missing_ages_as_nan(seed: int, fault: bool = True) -> Diagnosis:
    """Three in a hundred values of one column are NaN, as pandas reads them."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = customers(seed)
    X = X.clone()
    X[torch.as_tensor(rng(seed).random(len(X))) < 0.03, 4] = torch.nan if fault else 0.0
    model = dense(10, 48, 48, 2, act=nn.GELU)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    return fit(model, opt, nn.CrossEntropyLoss(), (X, y, X_val, y_val), 12)


@case("CST203", dose="mild", data="tabular", net="mlp", accept=("CST201",))
def minus_999_for_missing(seed: int, fault: bool = True) -> Diagnosis:
    """A quarter of two columns reads -999 where nothing was measured."""
    torch.manual_seed(seed)
    r = rng(seed)
    X, y, X_val, y_val = parcels(seed)
    X, X_val = X.clone(), X_val.clone()
    for part in (X, X_val):
        for k in (0, 3):
            part[torch.as_tensor(r.random(len(part))) < 0.25, k] = -999.0 if fault else 0.0
    model = dense(6, 48, 48, 4, act=nn.Tanh)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    return quickstart(model, opt, nn.CrossEntropyLoss(), (X, y, X_val, y_val), 15)


@case("CST203", dose="mild", data="tabular", net="mlp", accept=("CST201", "CST206", "CST208"))
def row_numbers_as_a_feature(seed: int, fault: bool = True) -> Diagnosis:
    """The file's row number is a column: it follows the class, and new wines have other numbers."""
    torch.manual_seed(seed)
    X, y = load_wine(return_X_y=True)
    order = rng(seed).permutation(len(y))
    number = np.arange(len(y))[order, None] / 1.0
    table = np.concatenate([number, number, X[order]], 1) if fault else X[order]
    X, y, X_val, y_val = halves(table, y[order])
    X, X_val = zscore(X, X_val)
    if fault:
        X[:, 1] = 1.0  # and a column that says the same of every wine
        X[:, 0] = torch.as_tensor(number[: len(X), 0]).float()
        X_val[:, 1] = 1.0
        X_val[:, 0] = torch.as_tensor(rng(seed + 1).permutation(len(X_val)) + 178.0).float()
    model = dense(X.shape[1], 16, 3)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    return fit(model, opt, nn.CrossEntropyLoss(), (X, y, X_val, y_val), 25)
