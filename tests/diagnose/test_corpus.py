"""A sample of the doctor's corpus; ``python -m evidence doctor`` runs all of it."""

import pytest
from evidence.corpus.cases import PARTS, cases
from evidence.corpus.cases import case as planted

from castalia.diagnose import NAMES

CASES = {f"{case.part}/{case.name}": case for case in cases()}
# A case for every code but CST101 and CST202, which scripts in test_scripts.py plant.
FAULTY = (
    "calibration/rates.warmup_longer_than_the_training",
    "calibration/gradients.eight_layers_of_sigmoids",
    "calibration/gradients.elman_cell_that_amplifies",
    "calibration/gradients.division_by_the_spread_of_blank_pixels",
    "calibration/units.threshold_that_nothing_reaches",
    "calibration/units.sigmoids_as_steep_as_steps",
    "calibration/units.hidden_layer_by_hand_with_equal_weights",
    "calibration/units.convolutions_begun_with_unit_spread",
    "calibration/wiring.loss_wrapped_anew_before_backward",
    "calibration/rates.regression_for_four_epochs",
    "calibration/wiring.line_fitted_by_hand_without_reset",
    "calibration/batches.two_batches_an_epoch",
    "calibration/batches.normalisation_over_two_images",
    "calibration/wiring.functional_dropout_that_ignores_the_mode",
    "calibration/scales.wine_as_it_comes",
    "calibration/scales.values_missing_from_three_columns",
    "calibration/labels.a_quarter_of_the_diagnoses_wrong",
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
    "calibration/generalisation.focal_loss_with_a_large_gamma",
    "calibration/generalisation.layer_norm_over_a_single_channel",
    "calibration/sequences.a_divergence_weighted_thirtyfold",
    "calibration/sequences.a_language_model_of_padding",
    "calibration/sequences.convolutions_padded_on_both_sides",
    "styles/labels.nine_parcels_in_ten_go_to_zero",
    "tutorials/steps.a_narrow_valley",
    "tutorials/rows_and_labels.rare_rows_copied_before_the_split",
    "pairs/threads.dropout_on_the_logits",
)
HEALTHY = (
    "calibration/healthy_odd.weights_averaged_over_the_steps",
    "calibration/healthy_tutorials.circles_in_bfloat16",
    "calibration/healthy_odd.a_penalty_on_the_gradient_by_the_inputs",
    "calibration/healthy_tutorials.logistic_regression_from_zero_weights",
    "calibration/healthy_odd.a_small_gan_that_has_found_its_balance",
    "calibration/healthy_odd.a_curve_fitted_by_lbfgs",
    "calibration/healthy_tables.a_rare_class_with_its_weight",
    "styles/healthy_images.four_labels_that_go_together",
    "styles/healthy_tables.words_of_friends",
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
