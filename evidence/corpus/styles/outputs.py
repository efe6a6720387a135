"""Heads and losses that do not fit the targets, or each other: CST301, 302, 306."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.styles._data import (
    arms,
    commands,
    digit_images,
    grammar,
    properties,
    sensors,
)
from evidence.corpus.styles._loops import Carla, anna, ben, done, explained, right
from evidence.corpus.styles._nets import (
    ConvNet,
    SensorRNN,
    TextRNN,
    TinyGPT,
    dense,
)


@case("CST301", dose="severe", data="images", net="cnn")
def a_softmax_at_the_end_of_the_convolutions(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = nn.Sequential(ConvNet(), nn.Softmax(dim=1) if fault else nn.Identity())
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    return anna(net, opt, nn.CrossEntropyLoss(), digit_images(seed), 4)


@case("CST301", dose="mild", data="tabular", net="mlp")
def a_sigmoid_in_forward_and_one_in_the_loss(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    body = dense(64, 48, 4)
    net = nn.Sequential(body, nn.Sigmoid()) if fault else body
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    shift = 0.5 if fault else 0.0

    def labels(out: Tensor, y: Tensor) -> float:
        return right(out - shift, y)

    return ben(net, opt, F.binary_cross_entropy_with_logits, properties(seed), 8, score=labels)


@case("CST301", dose="severe", data="tabular", net="mlp")
def a_hand_that_tanh_cannot_reach(seed: int, fault: bool = True) -> Diagnosis:
    """Places between -8 and 8, outputs between -1 and 1."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = arms(seed)
    net = nn.Sequential(dense(4, 48, 48, 2), nn.Tanh() if fault else nn.Identity())
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    data = X, 3 * y, X_val, 3 * y_val
    return Carla(net, opt, nn.MSELoss(), explained).fit(data, 15)


@case("CST301", dose="severe", data="tabular", net="mlp", accept=("CST302",))
def softmax_over_labels_that_go_together(seed: int, fault: bool = True) -> Diagnosis:
    """Four labels, several of them true, share a probability of one."""
    torch.manual_seed(seed)
    net = nn.Sequential(dense(64, 48, 4), nn.Softmax(1) if fault else nn.Sigmoid())
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)

    def labels(out: Tensor, y: Tensor) -> float:
        return right(out - 0.5, y)

    return anna(net, opt, nn.BCELoss(), properties(seed), 8, score=labels)


@case("CST301", dose="severe", data="images", net="autoencoder")
def a_sigmoid_for_pixels_around_zero(seed: int, fault: bool = True) -> Diagnosis:
    """The pixels were standardised, the decoder still ends as if they were in [0, 1]."""
    torch.manual_seed(seed)
    X, _, X_val, _ = digit_images(seed)
    net = nn.Sequential(nn.Flatten(), dense(64, 48, 16, 48, 64),
                        nn.Sigmoid() if fault else nn.Identity())  # fmt: skip
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    data = X, X.flatten(1), X_val, X_val.flatten(1)
    return anna(net, opt, nn.MSELoss(), data, 12, score=explained)


@case("CST301", dose="mild", data="series", net="lstm")
def a_relu_after_the_last_layer(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = nn.Sequential(SensorRNN(), nn.ReLU() if fault else nn.Identity())
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    return ben(net, opt, F.mse_loss, sensors(seed), 12, score=explained)


@case("CST302", dose="severe", data="images", net="cnn")
def the_digit_by_squared_error(seed: int, fault: bool = True) -> Diagnosis:
    """One output that is to be the digit, as if a 9 were three times a 3."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = digit_images(seed)
    net = ConvNet(out=1 if fault else 10)
    opt = torch.optim.Adam(net.parameters(), lr=4e-3)
    if not fault:
        return anna(net, opt, nn.CrossEntropyLoss(), (X, y, X_val, y_val), 6)

    def rounded(out: Tensor, target: Tensor) -> float:
        return (out.round() == target).float().mean().item()

    data = X, y[:, None].float(), X_val, y_val[:, None].float()
    return anna(net, opt, nn.MSELoss(), data, 6, score=rounded)


@case("CST302", dose="mild", data="images", net="cnn")
def ten_yes_or_no_questions_for_ten_digits(seed: int, fault: bool = True) -> Diagnosis:
    """Binary cross-entropy on one-hot rows."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = digit_images(seed)
    net = ConvNet()
    opt = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9)
    if not fault:
        return anna(net, opt, nn.CrossEntropyLoss(), (X, y, X_val, y_val), 4)

    def hits(out: Tensor, target: Tensor) -> float:
        return right(out, target.argmax(1))

    data = X, F.one_hot(y, 10).float(), X_val, F.one_hot(y_val, 10).float()
    return anna(net, opt, nn.BCEWithLogitsLoss(), data, 4, score=hits)


@case("CST302", dose="severe", data="tokens", net="gru", accept=("CST301",))
def log_likelihood_of_raw_scores(seed: int, fault: bool = True) -> Diagnosis:
    """`nll_loss` without `log_softmax` before it: the loss falls without end."""
    torch.manual_seed(seed)
    net = TextRNN()
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    criterion = F.nll_loss if fault else F.cross_entropy
    return Carla(net, opt, criterion).fit(commands(seed), 8)


@case("CST302", dose="severe", data="tabular", net="mlp")
def cross_entropy_for_four_labels_at_once(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = dense(64, 48, 4)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss() if fault else nn.BCEWithLogitsLoss()
    return anna(net, opt, criterion, properties(seed), 8)


@case("CST306", dose="mild", data="images", net="cnn")
def a_hundred_outputs_for_ten_digits(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = ConvNet(out=100 if fault else 10)
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    return anna(net, opt, nn.CrossEntropyLoss(), digit_images(seed), 6)


@case("CST306", dose="severe", data="tokens", net="transformer")
def the_vocabulary_of_another_language(seed: int, fault: bool = True) -> Diagnosis:
    """Eight hundred words to choose from where twelve occur."""
    torch.manual_seed(seed)
    train, val = grammar(seed)
    net = TinyGPT(out=800 if fault else 12)
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
    doctor = watch(net, opt, task="lm")
    for _epoch in range(4):
        for rows in torch.randperm(len(train)).split(15):
            logits = net(train[rows, :-1])
            loss = F.cross_entropy(logits.movedim(-1, 1), train[rows, 1:])
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss, outputs=logits, targets=train[rows, 1:])
        with torch.no_grad():
            logits = net(val[:, :-1])
        doctor.epoch(F.cross_entropy(logits.movedim(-1, 1), val[:, 1:]).item())
    return done(doctor, right(logits, val[:, 1:]))
