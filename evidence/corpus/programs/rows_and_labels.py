"""What is wrong with the data: columns, labels, order and splits."""

import torch
import torch.nn.functional as F
from torch import nn

from castalia.diagnose import watch
from evidence.corpus.cases import case
from evidence.corpus.programs._data import (
    churn,
    cifar,
    housing,
    mnist,
    reviews,
    rng,
    scaled,
    series,
    sklearn_table,
)
from evidence.corpus.programs._loops import (
    Net,
    Recurrent,
    loaders,
    mlp,
    notebook,
    posted,
    r2,
    reached,
    tutorial,
    watched,
)


@case("CST202", dose="severe", data="tabular", net="mlp")
@posted
def prices_in_money(seed, fault):
    """My loss is 1e11."""
    x, y, x_val, y_val = scaled(housing(seed), targets=not fault)
    net = mlp(5, 64, 64, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    return tutorial(net, optimizer, nn.MSELoss(), (x, y, x_val, y_val), 12, metric=r2)


@case("CST202", dose="severe", data="time series", net="lstm", accept=("CST201",))
@posted
def lstm_that_predicts_the_mean_of_the_passengers(seed, fault):
    """A straight line through the middle: values of several hundreds went in as they are."""
    x, y, x_val, y_val = series(seed)
    if fault:
        x, y, x_val, y_val = (400 + 150 * t for t in (x, y, x_val, y_val))
    net = Recurrent(nn.LSTM, 1, 32, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    return tutorial(net, optimizer, nn.MSELoss(), (x, y, x_val, y_val), 10, 16, metric=r2)


@case("CST201", dose="severe", data="tabular", net="mlp")
@posted
def income_beside_the_number_of_rooms(seed, fault):
    x, y, x_val, y_val = housing(seed)
    rich = y.median()
    y, y_val = (y > rich).long().flatten(), (y_val > rich).long().flatten()
    data = (x, y, x_val, y_val) if fault else scaled((x, y, x_val, y_val))
    net = mlp(5, 32, 32, 2)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), data, 10)


@case("CST201", dose="severe", data="images", net="cnn", accept=("CST101", "CST106"))
@posted
def pixels_as_they_were_read(seed, fault):
    """cv2.imread gives 0 to 255; ToTensor was left out."""
    x, y, x_val, y_val = mnist(seed)
    size = 255 if fault else 1
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), (size * x, y, size * x_val, y_val), 7)


@case("CST203", dose="severe", data="tabular", net="mlp", accept=("CST105",))
@posted
def ages_that_are_missing(seed, fault):
    """pd.read_csv, .values, and a loss of nan from the first epoch."""
    x, y, x_val, y_val = churn(seed)
    if fault:
        x = x.clone()
        x[torch.rand(len(x), generator=rng(seed)) < 0.1, 4] = float("nan")
    net = mlp(10, 32, 2)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), (x, y, x_val, y_val), 8)


@case("CST203", dose="mild", data="tabular", net="mlp", accept=("CST201",))
@posted
def the_number_of_the_passenger_as_a_column(seed, fault):
    """PassengerId, 1 to N, went in with the rest."""
    x, y, x_val, y_val = churn(seed)
    if fault:
        ids = torch.randperm(len(x) + len(x_val), generator=rng(seed)).float()[:, None] + 1
        x, x_val = torch.cat([ids[: len(x)], x], 1), torch.cat([ids[len(x) :], x_val], 1)
    net = mlp(x.shape[1], 32, 2)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), (x, y, x_val, y_val), 10)


@case("CST204", dose="severe", data="tabular", net="mlp", accept=("CST406", "CST403"))
@posted
def fraud_is_three_in_a_hundred(seed, fault):
    """97 % accuracy and not one fraud found."""
    x, y, x_val, y_val = churn(seed, 1200, rare=0.03, noise=2.0)
    net = mlp(10, 16, 2)
    weight = None if fault else torch.tensor([0.03, 0.97])
    criterion = nn.CrossEntropyLoss(weight)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)

    def recall(out, y):
        return (out.argmax(1)[y == 1] == 1).float().mean().item()

    return tutorial(net, optimizer, criterion, (x, y, x_val, y_val), 10, metric=recall)


@case("CST205", dose="severe", data="images", net="cnn", accept=("CST401",))
@posted
def three_labels_in_ten_are_wrong(seed, fault):
    x, y, x_val, y_val = mnist(seed)
    if fault:
        wrong = torch.rand(len(y), generator=rng(seed)) < 0.35
        y = torch.where(wrong, torch.randint(10, y.shape, generator=rng(seed + 1)), y)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), (x, y, x_val, y_val), 14)


@case(
    "CST403",
    dose="severe",
    data="images",
    net="cnn",
    accept=("CST205", "CST401", "CST406", "CST402"),
)
@posted
def images_shuffled_without_their_labels(seed, fault):
    x, y, x_val, y_val = cifar(seed)
    if fault:
        x = x[torch.randperm(len(x), generator=rng(seed))]
    net = Net(3, 12, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), (x, y, x_val, y_val), 10)


@case("CST205", dose="severe", data="images", net="cnn", accept=("CST402", "CST403"))
@posted
def augmentation_that_turns_the_answer(seed, fault):
    """Random quarter turns, and the answer is the direction of the stripes."""
    x, y, x_val, y_val = cifar(seed, noise=0.3)
    net = Net(3, 12, 4)
    optimizer, criterion = torch.optim.Adam(net.parameters(), lr=3e-3), nn.CrossEntropyLoss()
    train_loader, val_loader = loaders((x, y, x_val, y_val))
    for _ in range(12):
        net.train()
        for xb, yb in train_loader:
            if torch.rand(()) < 0.5:
                xb = xb.flip(1) if not fault else torch.rot90(xb, 1, (2, 3))
            loss = criterion(net(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            for xb, yb in val_loader:
                criterion(net(xb), yb)
    return reached(net, x_val, y_val)


@case("CST206", dose="severe", data="tabular", net="mlp")
@posted
def the_answer_among_the_columns(seed, fault):
    """'Exited' was dropped from y but 'ExitDate' stayed in X; 100 % on validation, 60 % in use."""
    x, y, x_val, y_val = churn(seed, 800, noise=0.8)

    def with_date(x, y):
        return torch.cat([x, (2.0 * y - 1)[:, None] + 0.05 * torch.randn(len(y), 1)], 1)

    if fault:
        x, x_val = with_date(x, y), with_date(x_val, y_val)
    net = mlp(x.shape[1], 32, 2)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    claimed = tutorial(net, optimizer, nn.CrossEntropyLoss(), (x, y, x_val, y_val), 8)
    if fault:
        x_val = torch.cat([x_val[:, :-1], torch.zeros(len(x_val), 1)], 1)
    return -abs(claimed - reached(net, x_val, y_val))


@case("CST206", dose="severe", data="tabular", net="mlp")
@posted
def the_validation_rows_are_training_rows(seed, fault):
    """train_test_split after the rows had been repeated to balance the classes."""
    x, y, x_val, y_val = churn(seed, 300, noise=2.0)
    shown = (x[:75], y[:75]) if fault else (x_val, y_val)
    net = mlp(10, 64, 64, 2)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    epochs = 40 if fault else 6
    claimed = tutorial(net, optimizer, nn.CrossEntropyLoss(), (x, y, *shown), epochs)
    return -abs(claimed - reached(net, x_val, y_val))


@case("CST208", dose="severe", data="tabular", net="mlp")
@posted
def the_scaler_was_fitted_twice(seed, fault):
    """Validation rows were left as they come: fit_transform on train, nothing on test."""
    raw = sklearn_table("breast_cancer", seed)
    x, y, x_val, y_val = scaled(raw)
    net = mlp(30, 24, 2)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    data = (x, y, raw[2] if fault else x_val, y_val)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), data, 10)


@case("CST208", dose="severe", data="time series", net="mlp", accept=("CST401",))
@posted
def a_trend_that_goes_on(seed, fault):
    """Trained on the first years, validated on the last, and sales grow."""
    t = torch.linspace(0, 1, 600)[:, None]
    x = torch.randn(600, 6, generator=rng(seed)) + 0.3 * torch.sin(40 * t)
    y = torch.tanh(x[:, :1] * x[:, 1:2]) + 0.1 * torch.randn(600, 1, generator=rng(seed + 1))
    if fault:
        x, y = x + 4 * t, y + 2 * t
    data = (x[:450], y[:450], x[450:], y[450:])
    net = mlp(6, 48, 48, 1)
    return tutorial(
        net, torch.optim.Adam(net.parameters(), 3e-3), nn.MSELoss(), data, 15, metric=r2
    )


@case("CST209", dose="severe", data="images", net="cnn")
@posted
def folders_read_one_after_the_other(seed, fault):
    """ImageFolder and shuffle=False: all cats, then all dogs."""
    x, y, x_val, y_val = cifar(seed)
    order = y.argsort() if fault else torch.randperm(len(y))
    net = Net(3, 12, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    data = (x, y, x_val, y_val)
    return notebook(net, optimizer, F.cross_entropy, data, 180, order=order)


@case("CST401", dose="severe", data="tabular", net="mlp", accept=("CST207",))
@watched
def a_large_network_for_forty_patients(seed, fault):
    x, y, x_val, y_val = churn(seed, 400, noise=1.5)
    x, y = x[:60], y[:60]
    net = mlp(10, 128, 128, 2) if fault else mlp(10, 8, 2)
    criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.Adam(net.parameters(), lr=3e-3)
    doctor = watch(net, optimizer, criterion)
    for _ in range(60 if fault else 20):
        net.train()
        for idx in torch.randperm(len(x)).split(10):
            optimizer.zero_grad()
            criterion(net(x[idx]), y[idx]).backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            doctor.epoch(validation_loss=criterion(net(x_val), y_val).item())
    return doctor, lambda: -nn.functional.cross_entropy(net(x_val), y_val).item()


@case("CST401", dose="severe", data="text", net="gru", accept=("CST207",))
@posted
def training_accuracy_of_one_and_validation_of_a_half(seed, fault):
    x, y, x_val, y_val = reviews(seed, 1600)
    n = 90 if fault else 1200
    net = nn.Sequential(nn.Embedding(80, 32), nn.Flatten(), mlp(16 * 32, 64, 2))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    data = (x[:n], y[:n], x_val, y_val)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), data, 30 if fault else 5)
