"""A sample of the doctor's corpus; ``python -m evidence doctor`` runs all of it."""

import pytest
from evidence.corpus.cases import PARTS, cases
from evidence.corpus.cases import case as planted

from castalia.diagnose import NAMES

CASES = {f"{case.part}/{case.name}": case for case in cases()}
FAULTY = (
    "calibration/rates.wine_with_a_rate_of_ten",
    "calibration/rates.warmup_longer_than_the_training",
    "calibration/gradients.eight_layers_of_sigmoids",
    "calibration/gradients.elman_cell_that_amplifies",
    "calibration/gradients.division_by_the_spread_of_blank_pixels",
    "calibration/units.threshold_that_nothing_reaches",
    "calibration/units.sigmoids_as_steep_as_steps",
    "calibration/units.hidden_layer_by_hand_with_equal_weights",
    "calibration/units.convolutions_begun_with_unit_spread",
    "calibration/wiring.loss_wrapped_anew_before_backward",
    "calibration/wiring.layers_in_a_plain_list",
    "calibration/rates.regression_for_four_epochs",
    "calibration/wiring.line_fitted_by_hand_without_reset",
    "calibration/batches.two_batches_an_epoch",
    "calibration/batches.lags_of_a_smooth_series",
    "calibration/batches.normalisation_over_two_images",
    "calibration/wiring.functional_dropout_that_ignores_the_mode",
    "calibration/scales.wine_as_it_comes",
    "calibration/scales.plain_descent_on_targets_of_hundreds",
    "calibration/scales.values_missing_from_three_columns",
    "calibration/labels.is_it_one_of_the_few_eights",
    "calibration/labels.a_quarter_of_the_diagnoses_wrong",
    "calibration/splits.the_same_photographs_in_both_halves",
    "calibration/splits.two_dozen_sequences",
    "calibration/splits.validation_rows_left_unscaled",
    "calibration/batches.one_frequency_after_the_other",
    "calibration/objectives.softmax_over_a_single_unit",
    "calibration/objectives.squared_error_on_a_sigmoid",
    "calibration/objectives.strided_convolutions_without_activation",
    "calibration/objectives.logits_and_labels_broadcast_in_a_hand_written_logistic_loss",
    "calibration/objectives.softmax_module_with_dim_zero",
    "calibration/objectives.ten_outputs_kept_from_a_tutorial_for_two_classes",
    "calibration/generalisation.a_cnn_that_memorises_noisy_images",
    "calibration/generalisation.two_tanh_units_for_a_wavy_surface",
    "calibration/generalisation.a_forecast_of_pure_noise",
    "calibration/generalisation.four_fifths_dropped_in_a_regression_on_sequences",
    "calibration/generalisation.focal_loss_with_a_large_gamma",
    "calibration/generalisation.layer_norm_over_a_single_channel",
    "calibration/sequences.a_divergence_weighted_thirtyfold",
    "calibration/sequences.a_language_model_of_padding",
    "calibration/sequences.convolutions_padded_on_both_sides",
    "styles/gradients.an_empty_sentence_under_a_mask",
    "styles/labels.nine_parcels_in_ten_go_to_zero",
    "styles/outputs.softmax_over_labels_that_go_together",
    "styles/shapes.every_row_of_pixels_sums_to_one",
    "styles/wiring.zeroed_before_the_loop_only",
    "programs/script_files.kaggle_squeeze",
    "programs/wiring.no_grad_around_the_encoder",
    "tutorials/steps.a_narrow_valley",
    "tutorials/rows_and_labels.rare_rows_copied_before_the_split",
    "pairs/notebooks.kl_divergence_of_probabilities",
    "pairs/threads.dropout_on_the_logits",
)
HEALTHY = (
    "calibration/healthy_odd.weights_averaged_over_the_steps",
    "calibration/healthy_odd.a_ranking_learnt_from_pairs",
    "calibration/healthy_tutorials.circles_in_bfloat16",
    "calibration/healthy_odd.a_penalty_on_the_gradient_by_the_inputs",
    "calibration/healthy_tutorials.logistic_regression_from_zero_weights",
    "calibration/healthy_odd.two_tasks_on_one_trunk",
    "calibration/healthy_odd.a_contrastive_embedding_of_digits",
    "calibration/healthy_odd.a_small_gan_that_has_found_its_balance",
    "calibration/healthy_odd.a_curve_fitted_by_lbfgs",
    "calibration/healthy_odd.monte_carlo_dropout_and_a_learnt_variance",
    "calibration/healthy_tables.a_rare_class_with_its_weight",
    "styles/healthy_images.four_labels_that_go_together",
    "styles/healthy_tables.words_of_friends",
    "programs/healthy_plain.one_network_per_fold",
    "tutorials/healthy_tables.stopped_early_and_the_best_restored",
    "tutorials/healthy_tables.sixty_flowers_with_decay",
    "pairs/notebooks.bike_rentals_by_poisson_done_right",
    "pairs/threads.text_classification_tutorial_with_adams_rate_done_right",
)


@pytest.mark.parametrize("name", FAULTY)
@pytest.mark.filterwarnings("ignore")
def test_the_planted_fault_is_named_first(name):
    said = CASES[name].run(0)
    assert CASES[name].is_first(said), said.codes


@pytest.mark.parametrize("name", HEALTHY)
@pytest.mark.filterwarnings("ignore")
def test_a_healthy_training_gets_neither_an_error_nor_a_warning(name):
    assert [str(f) for f in CASES[name].run(0).findings if f.severity != "info"] == []


def test_every_code_is_planted_in_the_parts_that_hold_one_of_everything():
    games = {"CST501", "CST502"}  # planted in test_generative_rules
    for part in ("calibration", "exercises", "styles", "posts"):
        assert {case.code for case in cases(part)} == {None, *NAMES} - games


def test_the_corpus_is_whole_and_a_third_of_it_is_healthy():
    assert {case.part for case in CASES.values()} == set(PARTS)
    healthy = [case for case in CASES.values() if case.code is None]
    assert len(CASES) >= 1079
    assert len(healthy) >= 318


def test_a_case_with_an_unknown_code_or_dose_is_refused():
    with pytest.raises(ValueError, match="CST999"):
        planted("CST999", dose="mild")
    with pytest.raises(ValueError, match="dose"):
        planted("CST101")
