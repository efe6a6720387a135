"""CST101 and CST102 on planted losses and update-to-weight ratios."""

from dataclasses import replace

import numpy as np
import pytest
from tests.diagnose.rules.records import (
    LR,
    above,
    ask,
    below,
    classification,
    falling,
    geometric,
    network,
    only,
    poor,
    regression,
    set_gradients,
    set_head,
    set_promise,
    set_turning,
    set_updates,
    stairs,
)

from castalia.diagnose.record import OptimizerFacts
from castalia.diagnose.rules import judge
from castalia.diagnose.rules.case import Case
from castalia.diagnose.rules.contradictions import holds
from castalia.diagnose.rules.gradient_rules import explodes, vanishes
from castalia.diagnose.rules.learning_rate_rules import too_high, too_low
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number


def test_large_steps_that_get_nowhere_are_a_rate_too_high():
    ratio = above("rate.ratio")
    found = only(too_high, set_updates(poor(), ratio))
    assert (found.code, found.severity, found.where) == ("CST101", "error", None)
    (evidence,) = found.evidence
    assert evidence.what.startswith("update-to-weight ratio")
    assert evidence.value == pytest.approx(ratio)
    assert evidence.threshold == limit("rate.ratio")
    assert evidence.above


@pytest.mark.parametrize("leap", [0.11, 0.4, 1e4])
def test_a_lower_rate_is_a_range_that_ends_at_usual_steps_or_at_a_hundredth(leap):
    remedy = only(too_high, set_promise(poor([1.4] * 200), leap)).remedy
    lower = remedy.changes["lr"]
    assert remedy.text == f"Lower lr={number(LR)}: try {number(lower)} to {number(0.3 * LR)}."
    assert limit("rate.most_down") * LR * 0.9 <= lower <= 0.1 * LR
    assert leap > 1 or leap * lower / LR == pytest.approx(limit("rate.usual_promise"), rel=0.3)


@pytest.mark.parametrize("case", ["steps just below the limit", "steps that do learn"])
def test_large_steps_alone_are_no_rate_too_high(case):
    learns = case == "steps that do learn"
    record = classification() if learns else poor()
    ratio = above("rate.ratio") if learns else below("rate.ratio")
    assert ask(too_high, set_updates(record, ratio)) == []


def test_a_loss_that_ends_above_its_start_and_breaks_is_a_rate_too_high():
    grown = above("rate.grown")
    record = poor([*stairs(1.0, grown), np.nan])
    found = only(too_high, record)
    assert found.severity == "error"
    assert found.evidence[0].what == "last loss over the first"
    assert found.evidence[0].value == pytest.approx(grown)
    assert found.evidence[0].threshold == limit("rate.grown")
    assert ask(too_high, poor([*stairs(1.0, below("rate.grown")), np.nan])) == []


def test_an_early_leap_beside_large_steps_makes_it_surer():
    ratio, leap = above("rate.ratio"), above("rate.spike")
    plain = only(too_high, set_updates(poor(), ratio))
    leapt = only(too_high, set_updates(poor([1.0, leap, *stairs(1.0)]), ratio))
    assert leapt.evidence[0].value == pytest.approx(leap)
    assert leapt.evidence[0].threshold == limit("rate.spike")
    assert leapt.confidence > plain.confidence


def test_a_lucky_first_row_or_a_first_loss_next_to_nothing_is_nothing_to_leap_from():
    leap = 2 * limit("rate.spike")
    for first, size, seen in ((1.0, 32, 1), (1.0, 1, 0), (0.01, 32, 0)):
        record = set_updates(poor([*[first] * 10, leap * first, *[first] * 189]), 1.0)
        for look in record.looks:
            look.size = size
        found = only(too_high, record)
        assert ("highest early" in str(found.evidence)) == seen


def test_gradients_that_point_back_are_evidence_when_the_loss_has_risen_again():
    record = set_turning(poor(stairs(1.4, 0.7, 1.4, 1.4)), below("rate.turning"))
    (cosine, _) = only(too_high, set_updates(record, above("rate.ratio"))).evidence
    assert cosine.value == pytest.approx(below("rate.turning"))
    assert not cosine.above
    assert cosine.threshold == limit("rate.turning")
    (only_ratio,) = only(too_high, set_turning(record, above("rate.turning"))).evidence
    assert only_ratio.what.startswith("update-to-weight")


def test_a_training_of_small_steps_broken_by_one_gradient_is_not_blamed_on_the_rate():
    record = poor([*stairs(1.0, 2 * limit("rate.grown")), np.nan])
    record.looks[-1].gradients["0.weight"] = np.inf
    assert ask(too_high, record) == []


def test_two_optimizers_are_not_judged_by_their_losses():
    record = set_updates(poor(), above("rate.ratio"))
    record.optimizers *= 2
    assert ask(too_high, record) == []


def slow(ratio: float, learnt: float = 0.2):
    """Losses that fall by as much in each fifth."""
    return set_updates(classification(learnt, list(np.linspace(1.4, 1.1, 200))), ratio)


def test_small_steps_of_a_loss_that_still_falls_are_a_rate_too_low():
    ratio = below("rate.slow")
    found = only(too_low, slow(ratio))
    assert (found.code, found.severity, found.where) == ("CST102", "error", None)
    steps, learnt = found.evidence
    assert steps.value == pytest.approx(ratio)
    assert steps.threshold == limit("rate.slow")
    assert learnt.value == pytest.approx(0.2)
    assert learnt.threshold == limit("rate.slow_learnt")
    assert not steps.above
    assert not learnt.above


@pytest.mark.parametrize("ratio", [1e-4, 1e-5, 1e-9])
def test_a_higher_rate_is_a_range_that_ends_at_ten_times_the_rate_at_most(ratio):
    remedy = only(too_low, slow(ratio)).remedy
    higher = remedy.changes["lr"]
    assert remedy.text == f"Raise lr={number(LR)}: try {number(3 * LR)} to {number(higher)}."
    assert 3 * LR < higher <= limit("rate.most_up") * LR


def test_the_more_is_learnt_the_less_a_low_rate_matters():
    ratio = below("rate.slow")
    ends = {"error": "rate.slow_error", "warning": "rate.slow_remark", "info": "rate.slow_learnt"}
    for severity, bar in ends.items():
        assert only(too_low, slow(ratio, 0.99 * limit(bar))).severity == severity
    assert ask(too_low, slow(ratio, 1.01 * limit("rate.slow_learnt"))) == []


def test_steps_as_long_as_the_rate_need_no_higher_one_once_the_weights_go_far():
    promise, bar = 0.5 * limit("rate.promise"), limit("rate.long_enough")
    for kind, ratio, codes in (
        ("AdamW", 1.1 * bar, []),
        ("AdamW", 0.9 * bar, ["CST102"]),
        ("SGD", 1.1 * bar, ["CST102"]),
    ):
        record = set_promise(slow(0.01), promise)
        record.optimizers = [OptimizerFacts(kind, LR)]
        assert [f.code for f in ask(too_low, set_updates(record, ratio))] == codes, (kind, ratio)


def test_steps_that_promise_much_and_lead_down_all_the_time_are_not_too_long():
    high = 1.1 * limit("rate.leap")
    assert only(too_high, set_promise(poor([1.4] * 200), high)).code == "CST101"
    assert ask(too_high, set_promise(poor(list(np.linspace(2.0, 1.0, 200))), high)) == []


def test_weights_that_go_far_while_nothing_is_learnt_need_no_longer_steps():
    promise, bar = 0.5 * limit("rate.promise"), limit("rate.long_enough")
    losses = list(np.linspace(1.4, 1.36, 200))
    for ratio, codes in ((0.9 * bar, ["CST102"]), (1.1 * bar, [])):
        record = set_updates(set_promise(classification(0.0, losses), promise), ratio)
        assert [found.code for found in ask(too_low, record)] == codes


def test_steps_just_large_enough_are_no_rate_too_low():
    assert ask(too_low, slow(above("rate.slow"))) == []


def test_a_loss_that_fell_at_once_and_stays_is_no_rate_too_low():
    record = set_updates(classification(0.2, falling(1.4, 1.1)), below("rate.slow"))
    record.evaluations = []
    assert ask(too_low, record) == []


def test_gradients_without_a_step_of_the_optimizer_say_nothing_of_the_rate():
    record = set_gradients(slow(below("rate.slow")), np.full(5, 0.1))
    record.optimizers = []
    for look in record.looks:
        look.updates = {}
    assert ask(too_low, record) == ask(too_high, record) == []


def test_a_loss_that_breaks_after_small_steps_is_not_blamed_on_the_rate():
    """One infinite input: the batches before it differ by chance."""
    losses = [0.85, 0.9, 1.31, *[np.nan] * 197]
    calm = set_updates(classification(0.0, losses), 5e-3)
    wild = set_updates(classification(0.0, losses), 0.5)
    assert ask(too_high, calm) == []
    assert only(too_high, wild).code == "CST101"


def test_steps_of_a_linear_model_are_not_measured_by_weights_that_begin_near_zero():
    record = set_updates(poor(), above("rate.ratio"))
    assert len(ask(too_high, record)) == 1
    record.weights = [w for w in record.weights if len(w.shape) == 2][:1]
    assert ask(too_high, record) == []


def test_a_training_that_had_learnt_before_it_broke_has_no_rate_too_high():
    record = set_updates(classification(losses=[*stairs(1.0, 0.5), np.nan]), above("rate.ratio"))
    assert ask(too_high, record) == []


def test_a_schedule_that_takes_the_rate_back_early_is_a_rate_too_low():
    record = poor()
    for look in record.looks:
        look.lr = LR * 0.9**look.step
    last = LR * limit("rate.taken_back") / 2
    record.optimizers = [replace(record.optimizers[0], lr=last)]
    found = only(too_low, record)
    assert (found.code, found.severity) == ("CST102", "error")
    assert "The schedule takes the learning rate" in found.summary
    for look in record.looks:  # the same end, by a drop after nearly all of the steps
        look.lr = LR
    assert ask(too_low, record) == []


def test_a_schedule_that_begins_and_ends_near_zero_is_judged_by_its_highest_rate():
    record = poor()
    for look in record.looks:
        look.lr = LR * np.sin(np.pi * (look.step + 1e-6) / 200)
    record.optimizers = [replace(record.optimizers[0], lr=0.0, first=1e-8)]
    assert ask(too_low, record) == []
    slowly = set_updates(record, below("rate.slow"))
    slowly.losses[:] = list(np.linspace(1.4, 1.1, 200))
    rate = max(look.lr for look in record.looks)
    assert f"The learning rate {number(rate)} is too low" in only(too_low, slowly).summary


def test_trials_of_lbfgs_may_leap():
    record = set_updates(poor(losses=[1.4, *[20.0] * 5, *[1.4] * 194]), above("rate.ratio"))
    assert only(too_high, record).code == "CST101"
    record.optimizers = [OptimizerFacts("LBFGS", 1.0, most=1.0, first=1.0)]
    assert ask(too_high, record) == []


SCALES = [(1.0, 1.0), (640.0, 1.0), (1e-4, 1.0), (1.0, 1e-3), (1.0, 1e3)]


@pytest.mark.parametrize(("loss", "weights"), SCALES)
def test_rates_are_judged_alike_whatever_losses_and_weights_are_measured_in(loss, weights):
    """A sum over 640 rows, a mean over pixels, weights that are tiny or normalised."""
    high, low = 1.1 * limit("rate.leap"), 0.9 * limit("rate.promise_long")
    large = set_promise(poor([1.4] * 200), high, loss, weights)
    assert only(too_high, large).evidence[-1].value == pytest.approx(high)
    small = set_promise(slow(0.01), low, loss, weights)
    found = only(too_low, small)
    assert found.evidence[0].value == pytest.approx(low, rel=0.1)
    usual = set_promise(slow(0.01), limit("rate.usual_promise"), loss, weights)
    assert ask(too_low, usual) == ask(too_high, usual) == []


def test_steps_made_by_hand_have_a_rate_too():
    small = set_promise(slow(0.01), 1e-5)
    small.optimizers = []
    found = only(too_low, small)
    assert found.summary.startswith("The learning rate is too low")
    assert found.remedy.text == "Raise the learning rate 3 to 10 times."
    assert dict(found.remedy.changes) == {}
    large = set_promise(poor([1.4] * 200), 2.0)
    large.optimizers = []
    assert only(too_high, large).remedy.text == "Lower the learning rate 3.3 to 100 times."


def test_few_steps_that_promise_little_may_only_have_been_too_few():
    share = (limit("rate.promise") + limit("rate.promise_long")) / 2
    record = slow(0.01)
    record.losses[:] = record.losses[: int(limit("rate.many_steps")) - 1]
    assert ask(too_low, set_promise(record, share)) == []
    assert only(too_low, set_promise(slow(0.01), share)).code == "CST102"


@pytest.mark.parametrize("bend, codes", [(0.0, ["CST102"]), (0.1, [])])
def test_on_a_straight_line_longer_steps_lead_where_more_steps_would(bend, codes):
    record = slow(0.01)
    record.losses[:] = record.losses[: int(limit("rate.many_steps")) - 1]
    set_promise(record, (limit("rate.promise") + limit("rate.promise_long")) / 2)
    for look in record.looks:
        look.next_gradient = look.gradient * (1 + bend * np.asarray([1, -1, 1, -1]))
    assert [found.code for found in ask(too_low, record)] == codes


def leapt(then, learnt, promise):
    """It leaps at once, costs so much for a while, and ends above its best."""
    losses = [1.4, *[20.0] * 9, *[then] * 60, *[0.1] * 40, *[0.3] * 90]
    return set_promise(classification(learnt, losses), promise)


def test_a_network_that_learnt_all_or_recovered_at_once_has_no_rate_too_high():
    assert only(too_high, leapt(2.0, 0.8, 0.5)).severity == "warning"
    assert ask(too_high, leapt(2.0, 0.95, 0.5)) == []
    assert only(too_high, leapt(1.0, 0.8, 0.5)).code == "CST101"
    assert ask(too_high, leapt(1.0, 0.8, 0.01)) == []


def test_a_loss_that_is_thrown_beyond_all_measure_is_a_rate_too_high():
    losses = [1.4, 2 * 1.4 * limit("rate.thrown"), *stairs(1.4, 0.8, steps=198)]
    found = only(too_high, classification(0.6, losses))
    assert (found.code, found.severity) == ("CST101", "error")


@pytest.mark.parametrize(("share", "first"), [(3.0, "CST101"), (0.5, "CST104")])
def test_a_first_step_that_promises_more_than_all_is_the_rates_fault_not_the_gradients(
    share, first
):
    losses = [1.0, *[3 * limit("rate.spike")] * 5, *[1.0] * 194]
    record = set_promise(set_gradients(poor(losses), np.full(5, 1.0)), share)
    leap = record.looks[1]
    leap.gradients = {name: 2 * limit("gradient.spike") for name in leap.gradients}
    leap.applied = dict(leap.gradients)
    assert judge(record, rules=(too_high, explodes)).codes[0] == first


@pytest.mark.parametrize(("slope", "codes"), [(0.95, ["CST102"]), (0.5, [])])
def test_weights_that_go_far_along_one_slope_go_too_slowly(slope, codes):
    record = set_promise(slow(0.01), 0.5 * limit("rate.promise"))
    record.optimizers = [replace(record.optimizers[0], kind="Adam")]
    for look in record.looks:
        away = np.sqrt(1 / slope**2 - 1) * np.asarray([1, -1, 1, -1])
        look.next_gradient = look.gradient * (1 + away)
    assert [found.code for found in ask(too_low, record)] == codes


def test_a_step_that_throws_the_network_where_nothing_moves_is_a_rate_too_high():
    record = set_promise(poor([1.4] * 200), 1e-8)
    assert ask(too_high, record) == []
    record.looks[1].update = record.looks[1].update * 3e8
    found = only(too_high, record)
    assert (found.code, found.severity) == ("CST101", "error")
    assert found.evidence[0].value == pytest.approx(3.0, rel=0.01)
    learns = set_promise(classification(), 1e-8)
    learns.looks[1].update = learns.looks[1].update * 3e8
    assert ask(too_high, learns) == []


def slow_on_large_targets(kind):
    """A linear model of targets 75 times too large, whose steps promise next to nothing."""
    record = regression(0.03, list(np.linspace(5600.0, 5430.0, 200)))
    network(record, depth=1, outputs=1)
    set_head(record, layer="0")
    for rows in (record.train.targets, record.train.outputs):
        rows[:] = [75 * one for one in rows]
    record.optimizers = [OptimizerFacts(kind, LR, most=LR, first=LR)]
    set_promise(record, 1e-4)
    for look in record.looks:
        look.next_gradient = look.gradient
    return record


def test_the_rate_that_suits_a_linear_model_does_not_depend_on_its_targets():
    found = judge(slow_on_large_targets("SGD")).findings
    assert [one.code for one in found][:2] == ["CST102", "CST202"]
    # Steps of Adam are as long as the rate, and large targets far away.
    assert judge(slow_on_large_targets("Adam")).findings[0].code == "CST202"


def test_large_targets_do_not_throw_a_linear_model_off():
    record = slow_on_large_targets("SGD")
    record.losses = list(np.geomspace(5600.0, 1e6, 200))
    assert judge(set_promise(record, 3.0)).findings[0].code == "CST101"
    network(record, depth=3, outputs=1)  # deep ones they do
    assert judge(set_promise(record, 3.0)).findings[0].code == "CST202"


def game(travelled, promise=1e-5):
    """A game with weights that are so far from their start."""
    record = set_promise(classification(0.5), promise)
    record.task = "gan"
    for weight in record.weights:
        weight.travelled = travelled
    return record


def test_a_game_whose_weights_hardly_move_has_a_rate_too_low():
    found = only(too_low, game(below("rate.travelled")))
    assert (found.code, found.severity) == ("CST102", "warning")
    assert found.remedy.changes["lr"] == pytest.approx(10 * LR)
    assert ask(too_low, game(above("rate.travelled"))) == []
    assert ask(too_low, game(below("rate.travelled"), above("rate.promise_long"))) == []
    begun = game(below("rate.travelled"), above("rate.promise"))
    assert only(too_low, begun).code == "CST102"
    begun.losses = begun.losses[: int(limit("rate.many_steps")) - 1]
    assert ask(too_low, begun) == []  # it may only have been too few steps
    short = game(below("rate.travelled"))
    short.losses = short.losses[: int(limit("steps.few")) - 1]
    assert ask(too_low, short) == []


def test_a_game_of_networks_that_were_trained_before_goes_slowly():
    record = game(below("rate.travelled"))
    record.weights.append(replace(record.weights[1], name="1.weight", kind="LayerNorm"))
    for scale, codes in ((1.0, ["CST102"]), (0.7, [])):
        for look in record.looks:
            look.weights["1.weight"] = scale
        assert [one.code for one in ask(too_low, record)] == codes


def test_a_loss_below_zero_is_no_measure_of_steps_but_the_way_is():
    for way, codes in ((below, ["CST102"]), (above, [])):
        record = set_head(game(way("rate.travelled_signed"), promise=0.5), loss="unknown")
        record.task, record.losses = None, list(-np.asarray(record.losses))
        assert [one.code for one in ask(too_low, record)] == codes


def test_long_steps_after_which_a_game_has_no_gradient_are_a_rate_too_high():
    def thrown(left, ratio, loss=1.0):
        record = set_updates(game(1.0), ratio)
        record.losses = [loss] * record.steps
        record.losses[0] = 1.0
        for look in record.looks[4:]:
            look.gradients = {name: left * g for name, g in look.gradients.items()}
        return record

    found = only(too_high, thrown(0.0, above("rate.ratio")))
    assert (found.code, found.severity) == ("CST101", "error")
    assert found.evidence[0].threshold == limit("rate.still")
    assert ask(too_high, thrown(0.0, below("rate.ratio"))) == []
    assert ask(too_high, thrown(above("rate.still"), above("rate.ratio"))) == []
    won = thrown(0.0, above("rate.ratio"), loss=below("rate.had_learnt"))
    assert ask(too_high, won) == []  # a judge that is right about everything has none either
    unseen = thrown(0.0, above("rate.ratio"))
    for look in unseen.looks:
        look.gradients = {}
    assert ask(too_high, unseen) == []  # and numpy warns of nothing


def test_long_steps_that_take_every_layer_of_an_agent_far_away_are_a_rate_too_high():
    def agent(way, ratio):
        record = set_updates(game(way), ratio)
        record.task, record.asides = None, 5
        return record

    assert only(too_high, agent(above("rate.far"), above("rate.wild"))).code == "CST101"
    assert ask(too_high, agent(below("rate.far"), above("rate.wild"))) == []
    assert ask(too_high, agent(above("rate.far"), below("rate.wild"))) == []
    one_stays = agent(above("rate.far"), above("rate.wild"))
    one_stays.weights[0].travelled = 0.5  # only the last layer began near zero
    assert ask(too_high, one_stays) == []
    grown = agent(above("rate.far"), above("rate.wild"))
    for weight in grown.weights:  # all began near zero
        grown.looks[0].weights[weight.name] = 0.01
    assert ask(too_high, grown) == []


def test_long_first_steps_have_settled_unless_they_threw_the_weights_where_little_is_learnt():
    def resting(learnt, ratio):
        levels = [1.4 * (1 - learnt / 2), *[1.4 * (1 - learnt)] * 4]
        record = set_promise(classification(learnt, stairs(*levels)), 0.01)
        record.losses[0] = 1.4
        set_updates(record, 0.01)
        for look in record.looks[:4]:
            look.update = look.update * above("rate.leap") / 0.01
            look.updates = dict.fromkeys(look.updates, ratio)
        return record

    found = only(too_high, resting(0.3, above("rate.wild")))
    assert (found.code, found.severity) == ("CST101", "error")
    assert ask(too_high, resting(0.3, below("rate.wild"))) == []
    assert ask(too_high, resting(0.7, above("rate.wild"))) == []


def test_first_steps_of_a_third_of_the_weights_that_leave_no_gradient_are_a_rate_too_high():
    def thrown(left, ratio):
        record = set_updates(set_promise(poor(), 1e-3), ratio)
        for look in record.looks[1:]:
            look.gradients = {name: left * g for name, g in look.gradients.items()}
        return record

    assert only(too_high, thrown(0.0, above("rate.wild"))).severity == "error"
    assert ask(too_high, thrown(0.0, below("rate.wild"))) == []
    assert ask(too_high, thrown(above("rate.still"), above("rate.wild"))) == []


def test_first_steps_of_a_game_that_promise_more_than_all_are_a_rate_too_high():
    record = game(1.0, promise=1e-3)
    for look in record.looks[:4]:
        look.update = look.update * 2e3
    assert only(too_high, record).code == "CST101"
    assert ask(too_high, game(1.0, promise=0.9)) == []


def stays(travelled, record=None):
    """Steps that promise much, and weights that are so far from their start."""
    record = set_promise(poor() if record is None else record, 0.05)
    for weight in record.weights:
        weight.travelled = travelled
    return record


def test_weights_that_many_steps_leave_where_they_were_have_a_rate_too_low():
    found = only(too_low, stays(below("rate.travelled")))
    assert (found.code, found.severity) == ("CST102", "warning")
    assert ask(too_low, stays(above("rate.travelled"))) == []
    assert ask(too_low, stays(below("rate.travelled"), classification())) == []  # it learns
    few = stays(below("rate.travelled"))
    few.losses = few.losses[: int(limit("rate.many_steps")) - 1]
    assert ask(too_low, few) == []


def test_steps_that_are_long_and_lead_nowhere_may_be_too_short():
    for way, codes in ((below, ["CST102"]), (above, [])):
        record = set_promise(poor(), 1e-7)
        for weight in record.weights:
            weight.travelled = way("rate.travelled")
        assert [found.code for found in ask(too_low, record)] == codes


def test_a_smooth_absolute_error_below_zero_is_part_of_another_loss():
    record = regression(0.0, [1.0, *[5.0, 5.0, -1.0] * 66])
    set_promise(set_head(record, loss="smooth_l1"), 0.5)
    assert ask(too_high, record) == []
    record.losses = np.abs(record.losses).tolist()
    assert only(too_high, record).code == "CST101"


@pytest.mark.parametrize(("pace", "first"), [(1.0, "CST102"), (0.01, "CST103")])
def test_gradients_that_vanish_are_the_cause_where_the_first_layers_lag_behind(pace, first):
    record = set_promise(slow(0.01), 1e-5)
    set_gradients(record, geometric(1e-4, 5))
    for look in record.looks:
        look.updates = {name: 1e-4 * (pace if name[0] == "0" else 1) for name in look.updates}
    assert judge(record, rules=(too_low, vanishes)).codes[0] == first


def with_adam(record, *rates):
    """Give a record Adam, and its looks rates from the first to the last."""
    record.optimizers = [OptimizerFacts("Adam", rates[-1], most=max(rates), first=rates[0])]
    between = np.linspace(rates[0], rates[-1], len(record.looks)).tolist()
    for look, rate in zip(record.looks, between, strict=True):
        look.lr = rate
    return record


def half_learnt():
    """Return a training whose steps show nothing odd, and which learnt little."""
    return classification(0.4, falling())


def test_a_rate_that_nobody_gives_adam_for_random_weights_is_too_low():
    assert ask(too_low, with_adam(half_learnt(), 1e-4)) == []
    found = only(too_low, with_adam(half_learnt(), 1e-5))
    assert (found.code, found.severity) == ("CST102", "warning")
    (evidence,) = found.evidence
    assert evidence.what == "learning rate of Adam"
    assert (evidence.value, evidence.threshold) == (1e-5, limit("rate.custom_least"))
    assert not evidence.above
    assert found.remedy.changes["lr"] == pytest.approx(1e-4)


@pytest.mark.parametrize("case", ["another optimizer", "learnt", "a warm-up", "trained before"])
def test_a_low_rate_of_adam_is_fine_where(case):
    record = with_adam(half_learnt(), 1e-5)
    if case == "another optimizer":
        record.optimizers = [replace(record.optimizers[0], kind="SGD")]
    if case == "learnt":
        record = with_adam(classification(0.95, falling()), 1e-5)
    if case == "a warm-up":
        record = with_adam(half_learnt(), 1e-7, 1e-5)
    if case == "trained before":
        record.weights[1] = replace(record.weights[1], name="norm.weight", kind="LayerNorm")
        record.looks[0].weights = {"norm.weight": 0.8}
    assert ask(too_low, record) == []


def test_dead_units_do_not_explain_a_rate_below_all_custom():
    record = with_adam(half_learnt(), 1e-5)
    assert not holds(Case(record), "CST106", "CST102")
    assert holds(Case(with_adam(half_learnt(), 1e-4)), "CST106", "CST102")


def test_a_rate_that_nobody_gives_adam_for_several_layers_is_too_high():
    assert ask(too_high, with_adam(half_learnt(), 0.03)) == []
    found = only(too_high, with_adam(half_learnt(), 0.1))
    assert (found.code, found.severity) == ("CST101", "warning")
    assert [one.what for one in found.evidence] == ["learning rate of Adam"]
    assert found.remedy.changes["lr"] < 0.03
    assert only(too_high, with_adam(classification(0.7, falling()), 0.1)).severity == "info"


@pytest.mark.parametrize("case", ["another optimizer", "learnt", "one layer"])
def test_a_high_rate_of_adam_is_fine_where(case):
    record = with_adam(half_learnt(), 0.1)
    if case == "another optimizer":
        record.optimizers = [replace(record.optimizers[0], kind="SGD")]
    if case == "learnt":
        record = with_adam(classification(0.95, falling()), 0.1)
    if case == "one layer":
        record.weights = record.weights[:2]
    assert ask(too_high, record) == []
