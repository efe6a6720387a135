"""Every experiment of the lab: its numbers are those of the course, and its figure is drawn."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure
from typer.testing import CliRunner

from castalia import lab
from castalia.cli import app
from castalia.data import read
from castalia.errors import InvalidParameter
from castalia.evaluate import LossLandscape
from castalia.lab import char_generation_experiment as char_generation
from castalia.lab import conv_features_experiment as conv_features
from castalia.lab import double_descent_experiment as double_descent
from castalia.lab import loss_landscape_experiment as loss_landscape
from castalia.lab import noise_cancelling_experiment as noise_cancelling
from castalia.lab.digits import digits


@cache
def outcome(name):
    return lab.run(name, quick=True)


def numbers(name):
    return outcome(name).numbers


@pytest.mark.parametrize("name", lab.EXPERIMENTS)
def test_an_experiment_draws_a_figure_and_says_a_sentence(name):
    found = outcome(name)
    assert isinstance(found.figure, Figure)
    assert all(ax.has_data() for ax in found.figure.axes)
    assert found.said.endswith(".")
    assert all(isinstance(value, float) for value in found.numbers.values())


@pytest.mark.parametrize("name", lab.EXPERIMENTS)
def test_an_experiment_is_in_the_documentation_with_its_figure(name):
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "lab.md").read_text(encoding="utf-8")
    assert f"](images/lab/{name}.png)" in page
    assert f"`castalia lab {name}`" in page
    assert (docs / "images" / "lab" / f"{name}.png").is_file()


def test_an_unknown_experiment_gets_the_nearest_name():
    with pytest.raises(InvalidParameter, match="got 'xorr'. Did you mean `xor`"):
        lab.run("xorr")


def test_the_command_lists_runs_and_draws(tmp_path):
    listed = CliRunner().invoke(app, ["lab"])
    assert all(name in listed.stdout for name in lab.EXPERIMENTS)
    figure = tmp_path / "deep" / "xor.svg"
    done = CliRunner().invoke(app, ["lab", "xor", "--quick", "--out", str(figure)])
    assert done.exit_code == 0, done.output
    assert figure.read_text().startswith("<?xml")
    assert "linear accuracy" in done.stdout
    bad = CliRunner().invoke(app, ["lab", "xor", "--quick", "--out", str(tmp_path / "xor.doc")])
    assert bad.exit_code == 2
    assert "must end in .png, .svg or .pdf" in bad.stderr


def test_the_perceptron_stops_where_a_line_separates_and_never_on_exclusive_or():
    found = numbers("perceptron-convergence")
    assert found["epochs"] < found["XOR epochs"] == 30
    assert found["corrections"] <= found["Novikoff's bound"]
    assert found["fewest XOR corrections"] > 0


def test_corrections_stay_within_the_bound_from_zero_weights_only():
    found = numbers("novikoff")
    assert found["beyond the bound"] == 0
    assert 0.05 < found["largest share of the bound"] <= 1
    assert found["beyond it from random weights"] > 0


def test_the_filter_learns_the_path_of_the_noise_and_leaves_the_signal():
    found = numbers("noise-cancelling")
    taps = [found[f"tap {i}"] for i in range(3)]
    assert taps == pytest.approx([0.8, -0.4, 0.2], abs=0.03)
    assert found["noise power before"] == pytest.approx(0.84, rel=0.05)
    assert found["noise power after"] < 2e-3


def test_the_real_recording_is_drawn_where_it_is_in_the_cache(monkeypatch):
    samples = np.arange(1000)
    mother = np.where(samples % 200 < 5, 100.0, 0.0)
    child = np.where(samples % 110 < 3, 20.0, 0.0)
    columns = {"sample": samples, **{f"abdominal{i}": mother + child for i in range(1, 6)}}
    columns |= {f"thoracic{i}": 3 * mother for i in range(1, 4)}
    data = pd.DataFrame(columns)
    monkeypatch.setattr(noise_cancelling.datasets, "load", lambda name: read(data))
    found = noise_cancelling.run()
    assert len(found.figure.axes) == 2
    left = found.numbers["heartbeats, power left"]
    # What is left is the child's share of the power
    assert left == pytest.approx(child.var() / (mother + child).var(), rel=0.5)


def test_exclusive_or_needs_a_hidden_layer():
    found = numbers("xor")
    assert found["linear weight"] == pytest.approx(0, abs=1e-12)
    assert found["linear bias"] == pytest.approx(0.5, abs=1e-12)
    assert found["linear accuracy"] == 0.75
    assert found["network accuracy"] == 1.0
    assert found["notes error"] == 0.0


def test_descent_contracts_by_one_minus_rate_times_curvature():
    found = numbers("gradient-descent")
    assert found["contraction at 0.4"] == pytest.approx(0.2)
    assert found["contraction at 0.95"] == pytest.approx(0.9)
    assert found["growth at 1.05"] == pytest.approx(1.1)
    assert found["limit"] == 1.0


def test_momentum_needs_fewer_steps_in_an_ill_conditioned_valley():
    found = numbers("ill-conditioned-momentum")
    assert found["momentum steps"] < 0.4 * found["plain steps"]


def test_stopping_early_lowers_the_test_error():
    found = numbers("early-stopping")
    assert found["error stopped"] < 0.9 * found["error to the end"]
    assert found["epochs run"] == found["best epoch"] + 41


def test_degree_nine_goes_through_every_point_and_is_wrong_between_them():
    found = numbers("polynomial-overfitting")
    assert found["best degree"] == 3
    assert found["training error, degree 9"] < 1e-6
    assert found["test error, degree 9"] > 1.5 * found["test error, degree 3"]
    assert found["test error, degree 1"] > 1.5 * found["test error, degree 3"]


def test_bias_and_variance_trade_places_over_the_penalty():
    found = numbers("bias-variance")
    # WE-73, whose numbers depend on the seed
    bias = [found[f"bias², λ = {name}"] for name in ("13.5", "0.73", "0.09")]
    variance = [found[f"variance, λ = {name}"] for name in ("13.5", "0.73", "0.09")]
    assert bias == pytest.approx([0.0681, 0.0016, 0.0006], rel=0.4)
    assert variance == pytest.approx([0.0100, 0.0227, 0.0361], rel=0.4)
    assert found["largest gap of the sum"] < 1e-12
    assert -5 < found["best ln λ"] < 3


@pytest.mark.parametrize("over", ["features", "epochs", "rows"])
def test_the_test_error_falls_rises_and_falls_below_where_it_was(over):
    found = numbers("double-descent")
    assert found[f"{over}: peak"] > 1.2 * found[f"{over}: low"]
    assert found[f"{over}: end"] < 0.8 * found[f"{over}: low"]


def test_double_descent_peaks_where_the_rows_are_just_fitted():
    found = numbers("double-descent")
    assert found["features: peak at"] == pytest.approx(300, rel=0.1)
    assert found["features: fitted from"] == 300
    assert found["rows: peak at"] == pytest.approx(double_descent.WEIGHTS, rel=0.25)


def test_the_smallest_norms_on_a_line_are_those_of_the_notes():
    found = numbers("l1-l2-geometry")
    assert found["L1: w1"] == pytest.approx(0.5, abs=1e-9)
    assert found["L1: w2"] == 0.0
    assert found["L1: norm"] == pytest.approx(0.5, abs=1e-9)
    assert [found["L2: w1"], found["L2: w2"]] == pytest.approx([50 / 101, 5 / 101])
    assert found["L2: norm"] == pytest.approx(5 / 101**0.5)
    assert found["L2: its L1 norm"] == pytest.approx(0.5445545, abs=1e-7)


def test_what_is_not_kept_is_forgotten_and_kept_rows_are_not():
    found = numbers("forgetting")
    assert found["first task, nothing kept"] < 0.3 < 0.8 < found["first task, kept rows"]


def test_trying_comes_near_bellman_s_values():
    found = numbers("grid-world")
    assert found["error last"] < 0.2 * found["error first"]
    assert abs(found["return"] - found["return of the optimal policy"]) < 0.1


def test_labels_that_are_asked_for_are_worth_more_than_others():
    found = numbers("active-learning")
    asked = found["right in the end, where two classes are close"]
    assert asked > found["right in the end, at random"] + 0.02


def test_the_law_of_wrong_labels_gives_back_what_they_cost():
    found = numbers("label-noise")
    assert found["labels taken as they are"] < found["without noise"] - 0.1
    assert found["law known"] > found["labels taken as they are"] + 0.1


def test_a_kernel_sees_what_single_columns_do_not():
    found = numbers("drift")
    assert found["found, a kernel"] == 1 > 0 == found["found, each column"]
    assert found["false alarms, a kernel"] == 0
    assert 0 < found["rows until the jump was seen"] < 150


def test_one_step_from_the_start_of_maml_is_more_than_ten_from_others():
    found = numbers("maml-sine")
    assert found["MAML, 1 steps"] < 0.9 * found["MAML, 0 steps"]
    assert found["MAML, 1 steps"] < 0.7 * found["random, 10 steps"]


def test_a_teacher_is_worth_more_than_careless_labels():
    found = numbers("distillation")
    assert found["labels alone"] < found["teacher alone"] < found["the teacher itself"]


def test_dropout_is_an_ensemble_of_its_masks():
    found = numbers("dropout-ensemble")
    assert found["exponent of k"] == pytest.approx(-0.5, abs=0.05)
    assert found["gap to the geometric mean"] < 1e-12
    assert found["gap to the arithmetic mean"] > 0.05
    assert found["same answers"] > 0.9


def test_steps_along_the_gradient_do_more_harm_than_random_ones():
    found = numbers("adversarial-examples")
    assert found["untouched"] > 0.93
    assert found["random signs at 0.1"] > 0.9 * found["untouched"]
    assert found["FGSM at 0.1"] < 0.7 * found["random signs at 0.1"]
    assert found["PGD at 0.1"] <= found["FGSM at 0.1"]


def test_the_merges_are_those_of_the_notes_and_shorten_a_text():
    found = numbers("bpe-merges")
    counts = {"ug": 20, "un": 16, "hug": 15, "pun": 12}
    assert {name: found[f"count of {name}"] for name in counts} == counts
    assert found["pieces of bug"] == 2
    assert found["tokens with most merges"] < 0.45 * found["tokens without merges"]


def test_analogies_are_answered_by_steps_that_are_all_alike():
    found = numbers("word-analogies")
    assert found["analogies asked"] == 8 * 7
    assert found["analogies answered"] > 0.9
    assert found["how alike the steps are"] > 0.9
    assert found["how alike the places are"] < 0.9  # so the steps do more than name a kind
    assert found["explained by two components"] > 0.3


def test_examples_in_the_prompt_teach_the_larger_model_and_no_weight_changes():
    found = numbers("in-context")
    shots = [found[f"4,800 weights, {k}-shot"] for k in (0, 2, 4, 6)]
    assert shots[0] < 0.35  # guessing is 0.25
    assert all(more > fewer + 0.1 for fewer, more in zip(shots[:-1], shots[1:], strict=True))
    assert shots[-1] > 0.7
    assert found["largest change of a weight"] == 0.0


def test_larger_models_make_more_of_the_examples_in_their_prompt():
    found = numbers("in-context")
    sizes = [found[f"{count} weights, 6-shot"] for count in ("624", "1,632", "4,800")]
    assert sizes[0] < sizes[1] < sizes[2]
    assert sizes[2] > sizes[0] + 0.3


def test_digits_fall_back_to_those_that_need_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv("CASTALIA_DATA", str(tmp_path))
    found = digits(500, 100)
    assert (found.name, found.side) == ("scikit-learn's digits", 8)
    assert found.x.shape == (500, 64)
    assert found.x_test.shape == (100, 64)
    assert found.x.max() == 1.0
    shared = {row.tobytes() for row in found.x} & {row.tobytes() for row in found.x_test}
    assert not shared


def test_digits_are_those_of_mnist_where_it_is_in_the_cache(monkeypatch):
    parts = {"train": 30, "test": 10}
    images = {part: np.full((n, 28, 28), 255, np.uint8) for part, n in parts.items()}
    monkeypatch.setattr(
        "castalia.lab.digits.load_images",
        lambda name, part="train": (images[part], np.arange(parts[part]).astype(np.uint8) % 10),
    )
    found = digits(20, 5)
    assert (found.name, found.side, found.x.max()) == ("MNIST", 28, 1.0)
    assert (found.x.shape, found.y.shape, found.x_test.shape) == ((20, 784), (20,), (5, 784))


def test_a_stack_sees_its_field_exactly_and_mostly_the_middle_of_it():
    found = numbers("receptive-field")
    for name, field in (("plain", 17), ("dilated", 15)):
        assert found[f"{name}: field"] == found[f"{name}: support of the gradient"] == field
    assert found["plain: side with 90 % of the influence"] <= 13
    assert found["ten layers, plain"] == 21
    assert found["ten layers, dilated"] == 2**11 - 1


def test_graph_layers_see_as_many_hops_as_there_are_of_them_weighted_by_walks():
    found = numbers("graph-receptive-field")
    assert (found["2 layers: hops seen"], found["6 layers: hops seen"]) == (2, 6)
    assert min(found[f"{k} layers: correlation with walks"] for k in (2, 6)) > 0.95
    assert found["path: nodes within 4 hops"] == 9
    assert found["tree: nodes within 4 hops"] == 31
    assert found["grid: nodes within 4 hops"] == 1 + 4 * (1 + 2 + 3 + 4)


def test_mixing_forgets_nodes_by_the_second_eigenvalue_and_deep_networks_with_it():
    found = numbers("oversmoothing")
    assert abs(found["decay a mix, measured"] - found["second eigenvalue"]) < 0.01
    assert found["gcn, 2 layers"] > 0.9 > 0.7 > found["gcn, 16 layers"]
    assert found["nn4g, 16 layers"] > 0.9


def test_more_terms_come_nearer_to_the_exact_filter_and_noise_falls():
    found = numbers("spectral-filters")
    gaps = [found[f"{k} terms: distance from the exact filter"] for k in (3, 6, 12)]
    assert gaps[0] > 2 * gaps[1] > 4 * gaps[2]
    assert found["error after the filter"] < 0.5 * found["error of the noisy signal"]


def test_no_readout_separates_what_the_colours_do_not():
    found = numbers("weisfeiler-lehman")
    assert found["path and tree: test separates"] == found["rings of 3 and 6: test separates"] == 1
    assert found["ring of 6, two of 3: test separates"] == 0
    for readout in ("sum", "mean", "max"):
        assert found[f"path and tree: {readout}"] > 1e-3
        assert found[f"ring of 6, two of 3: {readout}"] < 1e-9
    assert found["rings of 3 and 6: sum"] > 0.1 > 1e-9 > found["rings of 3 and 6: mean"]
    assert found["ring of 6, two of 3: sum, nodes marked"] > 0.01


def test_gradients_vanish_under_sigmoids_unless_there_is_a_way_past():
    found = numbers("vanishing-by-activation")
    assert found["sigmoid: first layer over last"] < 0.25**11  # the largest slope, eleven times
    for name in ("tanh", "ReLU"):
        assert 0.3 < found[f"{name}: first layer over last"] < 5
    assert found["sigmoid, residual: first layer over last"] > 0.1
    assert found["sigmoid: loss at the end"] > 2.25  # ln 10 = 2.30 is guessing
    assert found["tanh: loss at the end"] < 1.5


def test_a_deep_network_ends_lower_with_shortcuts():
    found = numbers("loss-landscape")
    assert found["with shortcuts: loss"] < 0.5 * found["without: loss"]
    assert found["with shortcuts: share right"] > found["without: share right"] + 0.05


def test_trained_filters_have_a_direction_and_later_maps_know_the_classes():
    found = numbers("conv-features")
    assert found["orientation, trained filters"] > found["orientation, random filters"] + 0.12
    assert found["between classes, stage 2"] > found["between classes, pixels"] + 0.2
    assert found["share right"] > 0.9


def test_edges_have_one_direction_and_spots_have_none():
    ramp = torch.arange(-3.0, 4.0)
    edge = torch.sign(ramp)[None].repeat(7, 1)
    round_spot = torch.exp(-(ramp[:, None] ** 2 + ramp[None] ** 2))
    aslant = torch.sign(ramp[:, None] + ramp[None])
    found = conv_features.orientation(torch.stack([edge, edge.T, aslant, round_spot]).double())
    assert (found[:3] > 0.5).all()
    assert found[3] < 0.01


def test_a_slid_classifier_finds_what_the_middle_does_not_show():
    found = numbers("sliding-window")
    assert found["share right, best window"] > 0.5
    assert found["share right, middle"] < 0.25
    assert found["windows that answer like the crop"] > 0.95  # padding changes the others


def test_painting_lowers_the_loss_and_never_raises_it():
    found = numbers("style-transfer")
    for style in ("drawn", "flower"):
        assert found[f"{style}: rises"] == 0
        assert found[f"{style}: style left"] < 0.2


def test_one_vector_forgets_long_sentences_that_attention_reads():
    found = numbers("encoder-bottleneck")
    attention, fixed = (
        [found[f"{name}, length {n}"] for n in (4, 8, 20)] for name in ("attention", "fixed")
    )
    assert min(attention[0], fixed[0]) > 0.7
    assert attention[1] > fixed[1] + 0.25
    assert attention[2] > 0.5  # of 20 symbols, additive attention
    assert fixed[2] < 0.25


def test_attention_goes_along_the_diagonal_for_a_copy_and_against_it_for_a_reversal():
    found = numbers("encoder-bottleneck")
    assert found["copy: places for each answer"] == pytest.approx(1, abs=0.3)
    assert found["reversal: places for each answer"] == pytest.approx(-1, abs=0.3)


def test_own_answers_cost_more_the_longer_the_sentence():
    found = numbers("encoder-bottleneck")
    forced = [found[f"attention, length {n}"] for n in (8, 12, 16)]
    free = [found[f"attention, length {n}, own answers"] for n in (8, 12, 16)]
    gaps = np.subtract(forced, free)
    assert 0 < gaps[0] < gaps[1] < gaps[2]


def test_a_shift_turns_sinusoids_and_only_distances_go_on():
    found = numbers("positional-encoding")
    assert found["error of the rotation"] < 1e-5
    assert found["sinusoidal: spread of cosines"] < 1e-5
    assert found["learned: spread of cosines"] > 0.3
    kinds = ("learned", "sinusoidal", "relative", "rotary")
    assert all(found[f"{kind}: right in training"] > 0.95 for kind in kinds)
    beyond = {kind: found[f"{kind}: right beyond"] for kind in kinds}
    assert beyond["rotary"] > 0.95
    assert beyond["relative"] > beyond["sinusoidal"] + 0.15
    assert beyond["learned"] < 0.2 < beyond["sinusoidal"]  # 1 in 12 is guessing


def test_heads_look_at_what_they_write_next():
    found = numbers("attention-map")
    for task in ("reversed", "sorted"):
        assert found[f"{task}: right"] > 0.9
        assert found[f"{task}: on the next letter"] > 3 * found["of all weights alike"]


def test_longer_contexts_predict_letters_better_and_heat_makes_words_up():
    found = numbers("char-generation")
    assert found["5-gram: loss"] < found["3-gram: loss"] < found["2-gram: loss"] < 2.6
    assert found["LSTM: loss"] < found["1-gram: loss"]
    assert found["GPT: loss"] < found["1-gram: loss"]
    assert found["5-gram: known words at 0.25"] > found["5-gram: known words at 1.5"] + 0.5
    assert found["known words, cool"] > found["known words, hot"] + 0.15


def test_plays_are_read_from_the_cache_or_come_with_the_library(tmp_path, monkeypatch):
    monkeypatch.setenv("CASTALIA_DATA", str(tmp_path))
    name, text, test = char_generation.plays(1000, 100)
    assert (name, len(text), len(test)) == ("Coriolanus", 1000, 100)
    assert test.startswith("First Citizen:\nBefore we proceed any further, hear me speak.")
    monkeypatch.setattr(char_generation, "load_text", lambda name: "to be or not to be " * 9)
    assert char_generation.plays(8, 6) == ("tiny Shakespeare", "or not t", "to be ")


def test_samples_end_with_a_whole_word():
    assert char_generation.whole_words("the more and the belly a", 20) == "the more and the …"
    assert char_generation.whole_words("Wb!lverettnfmgOW", 8) == "Wb!lvere …"


def test_maps_have_the_colours_of_the_house_and_images_are_grey():
    folder = Path(char_generation.__file__).parent
    named = [re.findall(r'cmap="(\w+)"', file.read_text()) for file in folder.rglob("*.py")]
    assert {name for names in named for name in names} <= {"gray", "gray_r"}


def test_an_earthquake_explains_the_alarm_away():
    found = numbers("explaining-away")
    assert found["P(burglary), alarm"] == pytest.approx(0.3736, abs=1e-4)
    assert found["P(burglary), alarm, earthquake"] == pytest.approx(0.0033, abs=1e-4)
    assert found["P(burglary), John and Mary call"] == pytest.approx(0.2842, abs=1e-4)
    assert found["share of samples that count, John and Mary call"] < 0.02


def test_an_ising_model_restores_images_and_has_a_transition():
    found = numbers("ising")
    assert found["wrong after denoising"] < 0.25 * found["pixels flipped"]
    assert found["wrong among the filled"] < 0.06
    assert found["largest fall of the bound"] < 1e-6
    assert found["magnetisation, J = 0.2"] < 0.2
    assert found["magnetisation, J = 0.7"] == pytest.approx(0.990, abs=0.01)  # Yang's formula


def test_draws_from_where_it_matters_are_worth_many_plain_ones():
    found = numbers("importance-sampling")
    assert found["truth"] == pytest.approx(0.00135, abs=1e-5)
    assert found["relative error, moved to 3"] < found["relative error, wide"]
    assert found["draws saved"] > 50


def test_strong_coupling_slows_gibbs_sampling_down():
    found = numbers("gibbs-mixing")
    weak, strong = found["eigenvalue, J = 0.5"], found["eigenvalue, J = 2.5"]
    assert weak < 0.3 < 0.95 < strong < 1
    assert found["mixing sweeps, blocks of three"] < found["mixing sweeps, J = 2.5"] / 2
    assert found["R-hat, J = 0.5"] < 1.05 < found["R-hat, J = 2.5"]


def test_hidden_units_raise_the_pseudo_likelihood_of_digits():
    found = numbers("rbm-filters")
    assert found["pseudo-likelihood"] > found["pseudo-likelihood of independent pixels"] + 2
    assert found["last reconstruction error"] < 0.8 * found["first reconstruction error"]
    assert found["ink of samples"] == pytest.approx(found["ink of digits"], abs=0.06)


def test_the_evidence_finds_noise_and_scale():
    found = numbers("gp-prior-posterior")
    assert found["learnt noise"] == pytest.approx(0.2, abs=0.06)
    assert 0.5 < found["learnt length scale"] < 3
    assert found["deviation far from data"] > 2 * found["deviation at data"]


def test_the_panels_of_the_landscape_share_a_scale_and_a_cut_shows_the_difference():
    steps = np.linspace(-1, 1, 5)
    bowl = np.add.outer(steps**2, steps**2)
    found = {"low": LossLandscape(bowl + 0.01, steps), "high": LossLandscape(bowl + 0.5, steps)}
    first, second, cut, bar = loss_landscape._figure(found, 8).axes
    limits = [ax.collections[0].get_clim() for ax in (first, second)]
    assert limits[0] == limits[1]
    assert [min(line.get_ydata()) for line in cut.lines] == [0.01, 0.5]
    assert bar.get_ylabel() == "loss"


def test_an_lstm_counts_further_than_an_elman_network():
    found = numbers("long-memory")
    assert found["counting: lstm"] > found["counting: elman"]


def test_the_forget_gate_is_the_part_that_is_missed_most():
    found = numbers("lstm-ablation")
    others = [found[f"{part}: 20 steps"] for part in ("whole", "nig", "nog", "niaf", "noaf")]
    assert found["nfg: 20 steps"] > 1.5 * max(others)
    assert found["nfg: 60 steps"] > 1.5 * found["whole: 60 steps"]


def test_a_linear_autoencoder_ends_where_the_components_are():
    found = numbers("linear-ae-is-pca")
    assert found["error"] == pytest.approx(found["least error"], rel=1e-3)
    assert found["last angle"] < 2 < found["first angle"]


def test_a_denoising_step_is_the_score():
    found = numbers("dae-field")
    assert found["slope"] == pytest.approx(found["exact slope"], rel=0.1)
    assert found["share of steps that lead nearer"] > 0.8


def test_two_numbers_hold_much_of_a_digit():
    assert numbers("vae-latent")["share of digits known by two numbers"] > 0.3


def test_the_forger_ends_near_the_data():
    found = numbers("gan-game")
    assert found["last distance"] < 0.2 * found["first distance"]
    assert found["smallest share of a blob"] > 0.1
    assert found["D on fake at the end"] == pytest.approx(0.5, abs=0.15)


def test_more_steps_of_a_draw_come_nearer():
    found = numbers("diffusion-steps")
    assert found["distance after 50 steps"] < 0.5 * found["distance after 1 step"]


def test_a_reservoir_forgets_below_radius_one_and_a_linear_one_remembers_its_units():
    found = numbers("echo-state")
    assert found["distance at the end, radius 0.5"] < 1e-12
    assert found["distance at the end, radius 1.5"] > 0.1
    assert found["memory, tanh"] < found["memory, linear"] < found["memory, linear ring"] <= 60
    assert found["memory, linear ring"] > 55
    assert found["error 84 steps on"] < 0.2


def test_time_finds_the_modes_that_noise_hides():
    found = numbers("hidden-states")
    assert found["path right, noise 0.7"] > found["mixture right, noise 0.7"] + 0.1
    assert found["states by BIC"] == 3


def test_a_smoother_knows_more_than_a_filter_and_both_know_what_they_do_not():
    found = numbers("kalman")
    errors = [found[f"{name}: error, noise 1"] for name in ("smoother", "filter", "measured")]
    assert errors == sorted(errors)
    assert found["filter: deviation in the gap"] > 2 * found["smoother: deviation in the gap"]
    assert found["filter: truth within two deviations"] > 0.85


def test_forward_gradients_are_exact_and_cost_the_fourth_power():
    found = numbers("rtrl-cost")
    assert found["largest difference of the gradients"] < 1e-12
    assert found["exponent, forwards (RTRL)"] == pytest.approx(4, abs=0.3)
    assert found["exponent, through time"] == pytest.approx(2, abs=0.1)
