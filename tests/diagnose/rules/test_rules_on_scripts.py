"""What public scripts taught the rules: games, agents, class numbers as targets, odd starts."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from tests.diagnose.rules.records import (
    CLASSES,
    COLUMNS,
    ROWS,
    ask,
    classification,
    falling,
    geometric,
    only,
    poor,
    regression,
    set_evaluations,
    set_gradients,
    set_head,
    set_promise,
    set_rows,
    standard,
)
from torch import nn

from castalia.diagnose import watch
from castalia.diagnose.causes import EXPLAINS, arrange
from castalia.diagnose.record import Evaluation, Units
from castalia.diagnose.rules.calibration_rules import miscalibrated
from castalia.diagnose.rules.case import Case
from castalia.diagnose.rules.contradictions import holds, softened
from castalia.diagnose.rules.fit_rules import overfits, underfits
from castalia.diagnose.rules.gradient_rules import vanishes
from castalia.diagnose.rules.initialisation_rules import poor_start
from castalia.diagnose.rules.input_rules import targets_unscaled
from castalia.diagnose.rules.label_rules import imbalanced, ordered
from castalia.diagnose.rules.layer_rules import linear_in_a_row
from castalia.diagnose.rules.learning_rate_rules import too_high
from castalia.diagnose.rules.loss_rules import wrong_loss
from castalia.diagnose.rules.mode_rules import wrong_mode
from castalia.diagnose.rules.split_rules import leaks
from castalia.diagnose.rules.unit_rules import alike
from castalia.diagnose.script import Session
from castalia.diagnose.script.loss_calls import read


def game(*labels, passes=1):
    """Return a binary training whose batches have one label each."""
    record = set_head(classification(), loss="bce", outputs=(ROWS, 1))
    record.train.targets = [
        np.full(len(t), labels[i % len(labels)], dtype=float)
        for i, t in enumerate(record.train.targets)
    ]
    record.looks = [replace(look, passes=passes) for look in record.looks]
    return Case(record)


def test_labels_of_a_game_are_recognised():
    assert game(1.0).adversarial  # a generator's
    assert game(1.0, 0.0, passes=2).adversarial  # a discriminator's
    assert not game(1.0, 0.0).adversarial  # rows in order


def test_a_loss_of_either_sign_has_no_size_that_could_grow():
    losses = list(np.linspace(0.01, 4, 200) * np.where(np.arange(200) % 2, 1, -0.3))
    record = set_head(classification(0.0, losses), loss="unknown")
    assert Case(record).signed
    assert ask(too_high, record) == []
    assert not Case(set_head(classification(0.0, np.abs(losses)), loss="unknown")).signed


def test_class_numbers_as_the_target_of_every_output_are_no_regression():
    found = only(wrong_loss, _regressed())
    assert found.code == "CST302"
    assert "class number" in found.summary
    numbers = np.arange(320.0)[:, None] % CLASSES + np.linspace(0, 0.5, CLASSES)
    record = set_head(set_rows(regression(), targets=numbers), outputs=(ROWS, CLASSES))
    assert ask(wrong_loss, record) == []


def trained(net, loss=F.cross_entropy, steps=12):
    torch.manual_seed(0)
    x, y = torch.randn(64, 6), torch.arange(64) % 3
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    with watch(net, optimizer) as doctor:
        for _ in range(steps):
            optimizer.zero_grad()
            loss(net(x), y).backward()
            optimizer.step()
    return doctor


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3)
    )


def test_weights_that_all_begin_at_zero_are_found_though_biases_differ():
    net = network()
    assert ask(alike, trained(network()).record) == []
    with torch.no_grad():
        for layer in net[::2]:
            layer.weight.zero_()
    found = only(alike, trained(net).record)
    assert (found.code, found.severity, found.where) == ("CST108", "error", "0")


@pytest.mark.parametrize("change", ["biases", "weights"])
def test_a_start_far_beyond_any_initialisation_is_found_whatever_came_of_it(change):
    net = network()
    with torch.no_grad():
        if change == "biases":
            net[0].bias.sub_(100)
        else:
            net[2].weight.mul_(60)
    record = trained(net).record
    record.losses = falling()  # it learnt all the same
    found = only(poor_start, record)
    assert found.code == "CST109"
    assert ("biases" if change == "biases" else "fan-in") in found.evidence[-1].what
    assert ask(poor_start, trained(network()).record) == []


def test_a_loss_without_a_graph_is_a_training_that_changes_nothing():
    net = network()
    with watch(net, torch.optim.SGD(net.parameters(), lr=0.1)) as doctor:
        loss = F.cross_entropy(net(torch.randn(8, 6)).detach(), torch.arange(8) % 3)
        with pytest.raises(RuntimeError):
            loss.backward()
    assert doctor.diagnosis().codes[0] == "CST110"


def test_small_batches_of_one_class_are_ordered():
    record = classification()
    labels = np.repeat(np.arange(CLASSES), 8)
    record.train.targets = list(labels.reshape(-1, 4))
    record.train.inputs = [np.zeros((4, 5), np.float32)] * 8
    record.train.outputs, record.train.steps = [None] * 8, list(range(8))
    assert only(ordered, record).code == "CST209"
    mixed = np.tile(np.arange(CLASSES), 8)
    record.train.targets = list(mixed.reshape(-1, 4))
    assert ask(ordered, record) == []


def test_who_has_learnt_little_may_be_unsure():
    record = classification(0.3)
    labels = np.arange(400) % CLASSES
    unsure = 0.2 * np.eye(CLASSES)[labels]
    record.validation = replace(
        record.train, steps=[199], inputs=[None], outputs=[unsure], targets=[labels]
    )
    record.evaluations = [Evaluation(199, 1.2, 0.9)]
    assert [f.severity for f in ask(miscalibrated, record)] == ["info"]


def test_a_transposed_convolution_may_feed_another():
    class Up(nn.Module):
        def __init__(self, up):
            super().__init__()
            self.up, self.conv = up, nn.Conv2d(8, 8, 3, padding=1)
            self.head = nn.Linear(8, 3)

        def forward(self, x):
            z = self.conv(self.up(x.reshape(-1, 6, 1, 1).expand(-1, -1, 4, 4)))
            return self.head(z.relu().mean((2, 3)))

    assert ask(linear_in_a_row, trained(Up(nn.ConvTranspose2d(6, 8, 2, 2))).record) == []
    assert only(linear_in_a_row, trained(Up(nn.Conv2d(6, 8, 3))).record).code == "CST303"


def test_targets_that_are_fitted_to_next_to_nothing_are_only_mentioned():
    large = np.linspace(-90, 90, 320)[:, None]
    record = set_head(set_rows(regression(), targets=large), loss="smooth_l1", outputs=(ROWS, 1))
    record.losses = falling(40.0, 0.1)
    assert only(targets_unscaled, record).severity == "info"
    record.losses = falling(40.0, 10.0)
    assert only(targets_unscaled, record).severity == "warning"


def test_a_rate_far_too_low_is_not_the_fault_of_steep_directions():
    case = Case(classification())
    case.__dict__["promise"] = 1e-4
    assert not holds(case, "CST114", "CST102")
    case.__dict__["promise"] = 1e-2
    assert holds(case, "CST114", "CST102")


def put_through(batch, mode):
    """Return a training whose rows were put through the network once more, for a picture."""
    record = classification()
    rows = np.concatenate([x for x in record.train.inputs if x is not None])
    record.validation = replace(
        record.train,
        steps=[199] * (64 // batch),
        inputs=[rows[i : i + batch] for i in range(0, 64, batch)],
        outputs=[None] * (64 // batch),
        targets=[None] * (64 // batch),
    )
    record.evaluations = [Evaluation(199, 0.1, 0.9)] if mode == "logged" else []
    record.silent_in_training_mode = int(mode == "training")
    return record


def test_rows_put_through_in_training_mode_are_no_validation():
    assert ask(leaks, put_through(32, "training")) == []
    assert only(leaks, put_through(32, "logged")).code == "CST206"
    assert only(leaks, put_through(4, "logged")).code == "CST206"  # small batches count together


# ---- as scripts ----


@pytest.fixture
def session():
    session = Session()
    session.start()
    yield session
    session.stop()


class Dropped(nn.Module):
    """A network that calls its dropout as a function."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(6, 16), nn.Linear(16, 3)

    def forward(self, x):
        return self.two(F.dropout(self.one(x).relu(), 0.5, self.training))


@pytest.mark.parametrize("mode", [True, False])
def test_a_dropout_called_as_a_function_in_evaluation_mode_is_found(session, mode):
    net, x, y = Dropped().train(mode), torch.randn(32, 6), torch.arange(32) % 3
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(8):
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    assert ("CST116" in session.diagnosis().codes) is not mode


def test_a_loss_that_raises_in_the_first_evaluation_is_understood(session):
    net = network().eval()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with torch.no_grad(), pytest.raises(IndexError):
        F.cross_entropy(net(torch.randn(8, 6)), torch.full((8,), 3))
    assert optimizer.param_groups
    assert session.diagnosis().codes[:1] == ("CST306",)


# ---- what does no harm ----


def test_what_may_be_odd_is_a_remark_where_the_loss_falls_all_the_time():
    record = classification(0.6, list(np.linspace(2.0, 0.6, 200)))
    found = replace(only(wrong_loss, _regressed()), code="CST107", severity="error")
    assert Case(record).thrives
    assert softened(Case(record), found).severity == "info"
    assert softened(Case(record), replace(found, code="CST302")).severity == "error"
    level = Case(classification(0.6, list(np.linspace(2.0, 1.9, 200))))
    assert not level.thrives
    assert softened(level, found).severity == "error"


def _regressed():
    numbers = np.repeat((np.arange(320) % CLASSES)[:, None], CLASSES, axis=1).astype(float)
    return set_head(set_rows(regression(), targets=numbers), outputs=(ROWS, CLASSES))


def test_a_loss_that_jumps_while_it_falls_does_not_thrive():
    losses = np.linspace(2.0, 0.6, 200) * np.where(np.arange(200) % 2, 1.5, 0.5)
    assert not Case(classification(0.6, list(losses))).thrives


def test_a_sum_asked_for_by_its_old_name_is_a_sum():
    outputs, targets = torch.randn(8, 3), torch.arange(8) % 3
    loss = F.cross_entropy(outputs, targets, reduction="sum")
    call = read("cross_entropy", loss, (outputs, targets), {"size_average": False})
    assert call.mean().item() == pytest.approx(F.cross_entropy(outputs, targets).item())


def test_outputs_to_spare_explain_nothing():
    spare = Case(set_head(classification(), outputs=(ROWS, CLASSES + 5)))
    assert not holds(spare, "CST306", "CST404")
    assert holds(Case(set_head(classification(), outputs=(ROWS, CLASSES - 1))), "CST306", "CST404")


def test_what_silent_units_let_through_no_more_is_their_symptom():
    record = classification()
    live, silent = (np.full(8, share) for share in (0.5, 0.0))
    for active, is_symptom in ((live, False), (silent, True)):
        record.looks[0].units = [Units("hidden", "relu", 0.0, 1.0, active, np.zeros(0))]
        case = Case(record)
        assert holds(case, "CST106", "CST110") is is_symptom
        assert holds(case, "CST110", "CST106") is not is_symptom


# ---- the fresh set ----


def looked_at_again(kept, classes_of_rows=300):
    """Return a training of 300 rows of which a part was kept, put through it again at the end."""
    record = put_through(32, "evaluation")
    rows, rng = standard(classes_of_rows, COLUMNS).astype(np.float32), np.random.default_rng(0)
    record.train.inputs = [rows[rng.permutation(300)[:ROWS]] for _ in range(kept)]
    record.train.steps = list(range(kept))
    record.train.outputs = record.train.targets = [None] * kept
    record.validation.inputs = [rows[:150], rows[150:]]
    record.validation.steps = [199, 199]
    record.validation.outputs = record.validation.targets = [None, None]
    return record


def test_training_rows_are_known_as_such_though_some_were_never_kept():
    record = looked_at_again(10)
    assert ask(leaks, record) == []
    fresh = standard(300, COLUMNS, 5).astype(np.float32)
    record.validation.inputs = [
        np.concatenate([rows[:60], fresh[:90]]) for rows in record.validation.inputs
    ]
    assert only(leaks, record).code == "CST206"  # some of them among others


def test_who_minds_the_modes_may_pass_rows_in_training_mode():
    record = classification()
    record.layers.append(replace(record.layers[0], name="9", kind="BatchNorm1d"))
    record.evaluations, record.silent_in_training_mode = [], 3
    assert [f.code for f in ask(wrong_mode, record)] == ["CST116"]
    record.silent_in_evaluation_mode = 12
    assert ask(wrong_mode, record) == []


@pytest.mark.parametrize("width", [1, 2])
def test_sequences_in_columns_are_a_language_model_too(width):
    record, rng = classification(), np.random.default_rng(0)
    text = np.minimum(rng.geometric(0.3, size=(8, 41, width)), 9)
    record.train.inputs = [part[:-1] for part in text]
    record.train.targets = [part[1:].reshape(-1) for part in text]
    record.train.outputs = [None] * 8
    assert Case(record).task == "lm"
    assert ask(imbalanced, record) == []
    record.train.targets = [part[:-1].reshape(-1) for part in text]
    assert Case(record).task == "multiclass"


def test_in_a_game_no_share_of_the_loss_is_learnt():
    assert np.isnan(game(1.0, 0.0, passes=2).learnt)
    assert not game(1.0, 0.0, passes=2).poor


def test_a_module_of_which_only_forward_is_called_is_watched(session):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(6, 16), nn.Linear(16, 3)

        def forward(self, x):
            return self.two.forward(self.one.forward(x).relu())

    net, x, y = Net(), torch.randn(64, 6), torch.arange(64) % 3
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(20):
        F.cross_entropy(net.forward(x).softmax(1), y).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert session.diagnosis().codes[:1] == ("CST301",)


def test_a_gap_of_accuracies_is_a_remark_while_the_validation_loss_falls():
    record = classification(0.99)
    labels = np.arange(400) % CLASSES
    answers = np.where(np.arange(400) % 5 == 0, labels + 1, labels) % CLASSES
    outputs = np.eye(CLASSES)[answers]
    record.validation = replace(
        record.train, steps=[199], inputs=[None], outputs=[outputs], targets=[labels]
    )
    set_evaluations(record, [0.9, 0.8, 0.7, 0.65, 0.63], [0.8, 0.6, 0.5, 0.45, 0.4])
    assert only(overfits, record).severity == "info"
    set_evaluations(record, [0.9, 0.6, 0.7, 0.9, 1.2], [0.8, 0.4, 0.2, 0.1, 0.05])
    assert only(overfits, record).severity == "warning"


def drawn_anew(learnt):
    """Return a training whose inputs and targets never come again, as in diffusion."""
    record = regression(learnt, list(np.linspace(1.0, 0.7, 200)))
    record.evaluations = []
    return set_promise(record, 0.2)


def test_of_numbers_drawn_anew_it_is_not_known_how_low_their_loss_can_go():
    assert Case(drawn_anew(0.3)).computed
    assert ask(too_high, drawn_anew(0.3)) == []
    assert ask(underfits, drawn_anew(0.3)) == []
    again = drawn_anew(0.3)
    set_evaluations(again, [0.7] * 4)
    assert not Case(again).computed


def test_unscaled_rows_that_are_their_own_targets_explain_outputs_out_of_reach():
    rows = 255 * standard(320, COLUMNS)
    case = Case(set_rows(regression(), inputs=rows, targets=rows))
    assert case.copies
    assert holds(case, "CST201", "CST301")
    assert not holds(Case(regression()), "CST201", "CST301")


def test_what_vanishes_is_shown_by_the_number_that_tells():
    record = set_gradients(poor(), geometric(5e-3, 5))
    (evidence,) = only(vanishes, record).evidence
    assert evidence.value < evidence.threshold


def test_a_gap_of_losses_is_a_remark_while_answers_are_as_good_as_ever():
    record = set_evaluations(classification(0.99), [0.6, 0.6, 0.65, 0.6, 0.62], [0.06] * 5)
    scores = [0.86, 0.87, 0.9, 0.88, 0.89]
    record.evaluations = [
        replace(e, score=s) for e, s in zip(record.evaluations, scores, strict=True)
    ]
    record.validation.outputs = [None] * len(record.validation)
    assert only(overfits, record).severity == "info"
    worse = [0.9, 0.9, 0.7, 0.6, 0.6]
    record.evaluations = [
        replace(e, score=s) for e, s in zip(record.evaluations, worse, strict=True)
    ]
    assert only(overfits, record).severity == "warning"


def test_rollouts_that_are_left_behind_are_no_data():
    record = regression()
    record.evaluations = []
    record.train.inputs = [np.repeat(x[:20], 2, axis=0) for x in record.train.inputs]
    record.train.targets = [np.repeat(y[:20], 2, axis=0) for y in record.train.targets]
    assert Case(record).computed
    record.train.inputs[-1] = record.train.inputs[0]
    record.train.targets[-1] = record.train.targets[0]
    assert not Case(record).computed


def test_steps_of_a_game_that_promise_more_than_all_are_too_long():
    record = game(1.0, 0.0, passes=2).record
    assert ask(too_high, set_promise(record, 0.5)) == []
    assert only(too_high, set_promise(record, 2.0)).code == "CST101"


def test_what_has_no_slope_from_the_start_saturates_and_is_not_cut_off():
    record = classification()
    assert not holds(Case(record), "CST109", "CST110")
    record.looks[0].gradients = dict.fromkeys(record.looks[0].gradients, 0.0)
    assert holds(Case(record), "CST109", "CST110")
    assert not holds(Case(record), "CST110", "CST109")


def test_a_game_may_start_badly_too():
    net = network()
    with torch.no_grad():
        net[0].bias.sub_(100)
    record = trained(net).record
    record.task = "gan"
    assert only(poor_start, record).code == "CST109"
    record = trained(network()).record
    record.task = "gan"
    assert ask(poor_start, record) == []


def test_steps_without_their_batch_statistics_are_no_fault_of_the_rate():
    record = classification()
    record.layers.append(replace(record.layers[0], name="9", kind="BatchNorm1d"))
    assert not holds(Case(record), "CST116", "CST101")
    record.trained_in_evaluation_mode = 200
    assert holds(Case(record), "CST116", "CST101")
    found = only(wrong_mode, record)
    high = replace(found, code="CST101", severity="error", where=None)
    assert [f.code for f in arrange([found, high], partial(holds, Case(record)))] == ["CST116"]


def test_dropout_beyond_all_custom_explains_statistics_that_differ():
    record = classification()
    record.layers.append(replace(record.layers[0], name="9", kind="Dropout", settings={"p": 0.95}))
    case = Case(record)
    assert "CST115" in EXPLAINS["CST404"]
    assert holds(case, "CST404", "CST115")
    assert not holds(case, "CST115", "CST404")


def test_gradients_that_let_the_loss_descend_have_not_vanished_however_it_jumps():
    losses = np.linspace(2.0, 0.6, 200) * np.where(np.arange(200) % 2, 1.3, 0.7)
    case = Case(classification(0.4, list(losses)))
    found = replace(only(wrong_loss, _regressed()), code="CST103", severity="error")
    assert not case.thrives
    assert softened(case, found).severity == "info"
    assert softened(case, replace(found, code="CST101")).severity == "error"
