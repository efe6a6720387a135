"""The method on images: what is read, how it is split, what is chosen, what is left."""

import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from tests.method.small import SMALL_NET, image, image_plan, write_images

import castalia
from castalia.data.images import Images, as_images
from castalia.errors import InvalidData, InvalidParameter
from castalia.method import (
    FitPlan,
    FitResult,
    Narrator,
    TunePlan,
    evaluate,
    fit,
    predict,
    run,
    tune,
)
from castalia.method.cure_plan import cure_plan
from castalia.method.images.duplicate_images import contents
from castalia.method.images.image_model import choose_model, choose_size
from castalia.method.kinds import LabelledImages, Table, open_data
from castalia.method.report import RunReport, render
from castalia.method.saved_model import load_model
from castalia.models.vision.image_recipe import image_amounts, image_augmentation


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Twenty images a class, four of which are wrongly labelled."""
    found = write_images(tmp_path_factory.mktemp("data") / "stripes", each=16)
    rng = np.random.default_rng(1)
    for kind, other in (("rows", "columns"), ("columns", "rows")):
        for i in range(4):
            image(kind, (12, 12), rng).save(found / other / f"wrong{i}.png")
    return found


@pytest.fixture(scope="module")
def finished(folder, tmp_path_factory):
    plan = image_plan(folder, run=tmp_path_factory.mktemp("runs") / "stripes", test=0.5)
    return fit(folder, plan=plan)


def opened(data, **settings):
    return open_data(image_plan(data, **settings))


def notes(data, **settings):
    return " ".join(opened(data, **settings).notes)


# ---- a whole fit ----


def test_a_folder_is_fitted_and_leaves_a_model_a_page_and_results(finished):
    assert [c.name for c in finished.report.contenders] == [
        "Guessing",
        "Logistic regression",
        "Gradient boosting",
        "ConvNetClassifier",
    ]
    assert finished.report.contenders[1].note == "on images shrunk to 12 x 12 pixels"
    assert finished.summary["rows"] == {"all": 40, "tested": 20}
    assert finished.summary["unit"] == "image"
    assert finished.report.title == "Images of stripes"
    assert finished.report.reproduce.startswith("castalia fit ")
    assert "--target" not in finished.report.reproduce
    assert castalia.load(finished.model).image_size == 12
    assert (finished.folder / "diagnosis.json").is_file()


def test_the_saved_model_gives_the_answers_of_the_report(finished, folder):
    data = opened(folder, test=0.5)
    again = load_model(finished.folder).predict(data.X.take(data.parts[0].test))
    assert again.tolist() == finished.report.y_pred


def test_a_finished_run_is_read_and_not_done_again(finished, folder):
    events = []
    narrator = Narrator()
    narrator.reading, narrator.training = events.append, lambda *words: events.append(words)
    again = run(image_plan(folder, run=finished.folder, test=0.5), narrator)
    assert events == ["stripes"]
    assert again.folder == finished.folder
    assert again.summary == finished.summary


def test_what_twenty_images_cannot_prove_is_not_recommended(finished):
    assert (finished.summary["outcome"], finished.summary["recommended"]) == ("none", "guess")
    assert "Too few test images to tell whether anything here predicts" in finished.verdict


def test_the_report_shows_examples_mistakes_maps_and_confusion(finished):
    report, page = finished.report, finished.page.read_text()
    assert [row["name"] for row in report.examples] == ["columns", "rows"]
    assert all(len(row["images"]) == 8 for row in report.examples)
    assert [np.shape(m["maps"]) for m in report.feature_maps] == [(4, 12, 12)]
    assert any("wrong" in mistake["row"]["path"] for mistake in report.mistakes)
    assert len(report.mistakes) <= 12
    for part in ("Confusion", "Worst mistakes", "What the first layers see", "Examples of each"):
        assert part in page
    assert page.count("<img ") == 16 + len(report.mistakes)
    assert set(re.findall(r'src="(.{15})', page)) == {"data:image/png;"}
    assert "test images" in page
    assert "test rows" not in page


def test_the_page_can_be_made_again_from_the_results(finished):
    assert render(FitResult.load(finished.folder).report) == finished.page.read_text()


def test_an_image_in_a_report_loads_nothing_from_elsewhere():
    strange = {"image": "https://example.org/x.png", "truth": "a", "prediction": "b"}
    page = render(RunReport("x", "classification", "class", mistakes=[strange]))
    assert "example.org" not in page


def test_predictions_name_each_path_with_its_label_and_probability(finished, folder):
    found = predict(finished.folder, [str(folder / "rows"), str(folder / "columns" / "0.png")])
    assert list(found.columns) == ["path", "label", "probability"]
    assert len(found) == 21
    row = found.rows()[-1]
    assert row["path"] == str(folder / "columns" / "0.png")
    assert row["label"] in ("rows", "columns")
    assert 0.5 <= row["probability"] <= 1


def test_images_of_another_size_and_colour_are_predicted(finished, tmp_path):
    image("rows", (40, 31), np.random.default_rng(0), "L").save(tmp_path / "x.jpg")
    assert len(predict(finished.folder, tmp_path / "x.jpg")) == 1


def test_broken_images_are_reported_and_left_out_of_predictions(finished, folder, tmp_path):
    shutil.copy(folder / "rows" / "0.png", tmp_path / "good.png")
    (tmp_path / "bad.png").write_bytes((folder / "rows" / "0.png").read_bytes()[:60])
    found = predict(finished.folder, tmp_path)
    assert len(found) == 1
    assert "bad.png" in found.notes[0]


def test_a_folder_of_known_classes_is_evaluated(finished, folder):
    found = evaluate(finished.folder, folder)
    assert (found.rows, found.unit, found.target) == (40, "image", "class")
    assert 0 <= found.scores["accuracy"] <= 1


def test_classes_the_model_does_not_know_are_named(finished, tmp_path):
    other = write_images(tmp_path / "other", each=2, kinds=("disc", "rows"))
    with pytest.raises(InvalidData, match="must hold classes the model knows.*got `disc`"):
        evaluate(finished.folder, other)


def test_the_doctor_can_be_called_in(finished, tmp_path):
    plan = cure_plan(finished.folder, str(tmp_path / "cured"))
    assert (plan.doctor, plan.target) == (True, None)
    assert run(plan).summary["cure"] is not None


def test_settings_are_searched_on_the_training_images(folder, tmp_path):
    plan = image_plan(folder, run=tmp_path / "tuned")
    space = {"lr": castalia.tune.Choice(0.01, 0.001)}
    found = tune(TunePlan(fit=plan, trials=2, folds=2, search="grid", space=space))
    assert set(found.best) == {"lr"}
    assert found.fit.page.is_file()


def test_a_time_limit_ends_the_training(folder, tmp_path):
    settings = {**SMALL_NET, "epochs": 50}
    plan = image_plan(folder, run=tmp_path / "run", time_limit=1e-6, settings=settings)
    assert len(run(plan).report.history) == 1


def test_folds_test_every_image_once(folder, tmp_path):
    result = run(image_plan(folder, run=tmp_path / "run", cv=2))
    assert result.summary["rows"] == {"all": 40, "tested": 40}


# ---- what is read ----


def test_a_table_is_still_a_table_and_a_folder_is_images(folder, tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    assert Table.holds(FitPlan(data=tmp_path / "a.csv"))
    assert not LabelledImages.holds(FitPlan(data=tmp_path / "a.csv"))
    assert LabelledImages.holds(FitPlan(data=folder))


def test_a_table_without_a_target_is_refused_with_its_columns(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3,4\n")
    with pytest.raises(InvalidParameter, match="`target` must name the column.*`x` and `y`"):
        open_data(FitPlan(data=tmp_path / "a.csv"))


def test_arrays_in_a_file_and_in_memory_are_fitted_alike(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 255, (20, 12, 12), dtype=np.uint8)
    y = np.arange(20) % 2
    np.savez(tmp_path / "some.npz", images=x, labels=y)
    found, held = opened(tmp_path / "some.npz"), opened(Images(as_images(x).source, y))
    assert found.fingerprint() == held.fingerprint()
    assert found.task.classes.tolist() == [0, 1]
    assert found.grey


def test_many_whole_numbers_are_classes_of_images_and_not_quantities():
    x = np.random.default_rng(0).integers(0, 255, (60, 12, 12), dtype=np.uint8)
    assert opened(Images(as_images(x).source, np.arange(60) % 12)).task.kind == "classification"


def test_a_table_of_paths_is_read_with_its_target(folder, tmp_path):
    names = [f"{kind}/{i}.png" for kind in ("rows", "columns") for i in range(10)]
    lines = [f"{folder / name},{name[0]}" for name in names]
    (tmp_path / "list.csv").write_text("\n".join(["file,kind", *lines, "gone.png,r"]))
    found = opened(tmp_path / "list.csv", target="kind")
    assert found.task.counts == {"c": 10, "r": 10}
    assert found.target == "kind"
    assert "gone.png" in " ".join(found.notes)
    with pytest.raises(InvalidData, match="table of images, whose paths are in `file`"):
        opened(tmp_path / "list.csv")


def test_labels_decide_the_fingerprint():
    x = as_images(np.random.default_rng(0).integers(0, 255, (20, 12, 12), dtype=np.uint8)).source
    y = np.arange(20) % 2
    assert opened(Images(x, y)).fingerprint() != opened(Images(x, 1 - y)).fingerprint()


# ---- bad input ----


def test_a_folder_without_classes_is_refused(folder):
    with pytest.raises(InvalidData, match="must hold a folder for each class; got 20 images"):
        opened(folder / "rows")


def test_one_image_is_refused(folder):
    with pytest.raises(InvalidData, match="must be a folder .* got one image"):
        opened(folder / "rows" / "0.png")


def test_a_folder_with_one_image_is_refused(tmp_path):
    write_images(tmp_path / "one", each=1, kinds=("rows",))
    with pytest.raises(InvalidData, match="must have 10 different images at least .* got 1"):
        opened(tmp_path / "one")


def test_one_class_is_refused(tmp_path):
    write_images(tmp_path / "one", kinds=("rows",))
    with pytest.raises(InvalidData, match="`class` must have two classes .* all 12 images hold"):
        opened(tmp_path / "one")


def test_a_class_with_one_image_is_trained_on_and_reported(tmp_path):
    folder = write_images(tmp_path / "rare")
    write_images(folder, each=1, kinds=("disc",))
    found = opened(folder)
    assert "Classes of a single image can be trained on but not tested: `disc`." in found.notes
    assert (found.task.y[found.parts[0].train] == "disc").sum() == 1
    assert run(image_plan(folder, run=tmp_path / "run")).summary["rows"]["all"] == 25


def test_broken_and_foreign_files_are_counted_and_named(tmp_path):
    folder = write_images(tmp_path / "odd")
    whole = (folder / "rows" / "0.png").read_bytes()
    (folder / "rows" / "cut.png").write_bytes(whole[: len(whole) // 2])
    (folder / "rows" / "empty.png").write_bytes(b"")
    (folder / "rows" / "read me.txt").write_text("hello")
    said = notes(folder)
    assert "2 of 26 files" in said
    assert all(name in said for name in ("cut.png", "empty.png", "read me.txt"))
    assert len(opened(folder)) == 24


def test_labels_that_are_no_classes_are_refused():
    x = as_images(np.zeros((3, 8, 8), dtype=np.uint8)).source
    with pytest.raises(InvalidData, match="must have one label each; got none"):
        opened(Images(x))
    with pytest.raises(InvalidData, match="must have one label each; got boxes or masks"):
        opened(Images(x, [1, 2, 3]))


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"task": "regression"}, "`task` must be 'classification' for images; got 'regression'"),
        ({"group": "site"}, "`group` must be None for images"),
        ({"model": "mlp"}, "`model` must do classification on images; MLPClassifier does"),
        ({"settings": {"widht": 3}}, "`widht` must be a setting of ConvNetClassifier"),
    ],
)
def test_settings_of_tables_are_refused(folder, settings, words):
    with pytest.raises(InvalidParameter, match=words):
        opened(folder, **settings)


# ---- copies ----


def test_copies_never_stand_on_both_sides_of_a_split(tmp_path):
    folder = write_images(tmp_path / "twice")
    for i in range(6):
        shutil.copy(folder / "rows" / f"{i}.png", folder / "rows" / f"again{i}.png")
    found = opened(folder)
    assert "6 images left out as exact copies of others" in " ".join(found.notes)
    assert len(found) == 24
    assert len(set(contents(found.images))) == 24


def test_an_image_under_two_classes_is_left_out(tmp_path):
    folder = write_images(tmp_path / "torn")
    shutil.copy(folder / "rows" / "3.png", folder / "columns" / "mine.png")
    found = opened(folder)
    assert "2 images left out, for the same image is under several classes" in " ".join(found.notes)
    assert found.task.counts == {"columns": 12, "rows": 11}


def test_equal_arrays_have_equal_marks():
    x = np.random.default_rng(0).integers(0, 255, (5, 6, 7, 3), dtype=np.uint8)
    marks = contents(as_images(np.concatenate([x, x[:2]])))
    assert marks[5:].tolist() == marks[:2].tolist()
    assert len(set(marks)) == 5


def test_files_of_a_length_of_their_own_are_not_read(tmp_path, monkeypatch):
    folder = write_images(tmp_path / "some", each=3)
    images = castalia.read(folder)
    store, opened_files = images.source.store, []
    real = type(store).open
    monkeypatch.setattr(
        type(store), "open", lambda self, name: opened_files.append(name) or real(self, name)
    )
    lengths = [store.size(name) for name in images.source.names]
    contents(images)
    assert len(opened_files) == sum(lengths.count(length) > 1 for length in lengths)


# ---- what is chosen ----


@pytest.mark.parametrize(
    "sizes, rows, chosen",
    [
        ([[28, 28]] * 2, 60_000, (28, 28)),
        ([[96, 64]] * 2, 100, (96, 64)),
        ([[400, 300]] * 2, 100, (64, 48)),
        ([[400, 300], [300, 400]], 100, (64, 64)),
        ([[400, 300]] * 2, 9_000, (128, 96)),
        ([[20, 30], [24, 32]], 100, (24, 32)),
        ([[4, 4]] * 2, 100, (8, 8)),
        ([[4, 6]] * 2, 100, (8, 12)),
        ([[1, 4000]] * 2, 100, (8, 96)),
    ],
    ids=str,
)
def test_the_size_follows_the_images_and_how_many_there_are(sizes, rows, chosen):
    assert choose_size(np.array(sizes), rows) == chosen


def test_the_network_follows_the_images_and_how_many_there_are():
    assert choose_model(800, (64, 64), "cpu")[0] == "ConvNetClassifier"
    assert choose_model(60_000, (28, 28), "cpu")[0] == "ConvNetClassifier"
    assert choose_model(60_000, (64, 64), "cpu") == (
        "ConvNetClassifier",
        "a larger network takes long without a GPU",
    )


def test_many_images_get_the_larger_network_on_a_gpu(monkeypatch):
    import torch

    from castalia.method.images import image_model as model

    monkeypatch.setattr(model, "resolve_device", lambda name: torch.device("cuda"))
    assert choose_model(60_000, (32, 32), "auto")[0] == "ResNetClassifier"
    assert choose_model(4_000, (32, 32), "auto")[0] == "ConvNetClassifier"


def test_grey_images_are_not_flipped(tmp_path, folder):
    grey = notes(write_images(tmp_path / "grey", mode="L"))
    assert "but not flipped, for a mirrored sign is another one" in grey
    assert "Images are flipped and cropped at random, turned and zoomed" in notes(folder)
    assert "flipped" not in notes(folder, settings={"augment": None})


def test_a_folder_is_trained_by_the_recipe_that_classifiers_without_arguments_have(folder):
    for model in ("convnet", "resnet", "lenet"):
        made = opened(folder, settings={}, model=model).build(24)
        assert replace(made.training, verbose="auto") == castalia.ResNetClassifier.usual_training
    usual = castalia.ResNetClassifier(image_size=12)
    made = opened(folder, settings={}, model="resnet").build(24)
    given = {**made.get_params(deep=False), "random_state": None, "training": None}
    assert given == usual.get_params(deep=False)
    made = opened(folder, settings={}).build(24)
    assert (made.epochs, made.batch_size, made.lr) == image_amounts(24)
    assert repr(made.augment) == repr(image_augmentation(24, 3, (12, 12)))


def test_images_smaller_than_a_network_takes_are_enlarged(folder):
    found = opened(folder, model="vgg", settings={})
    assert found.build(24).image_size == 48
    assert "brought to 48 x 48 pixels" in " ".join(found.notes)


def test_tiny_images_of_any_shape_are_fitted(tmp_path):
    folder = write_images(tmp_path / "tiny", size=(3, 5))
    result = run(image_plan(folder, run=tmp_path / "run"))
    assert castalia.load(result.model).image_size == (8, 14)


def test_a_size_that_was_asked_for_is_kept(folder):
    found = opened(folder, settings={"image_size": 16})
    assert found.build(24).image_size == 16
    assert len(found.build(24).widths) == 3


def test_one_training_will_do_for_many_images(folder, monkeypatch):
    assert len(opened(folder, seeds=None).parts) == 3
    monkeypatch.setattr("castalia.method.kinds.image_kind.MANY", 10)
    assert len(opened(folder, seeds=None).parts) == 1


def test_photographs_make_small_thumbnails(tmp_path):
    rng = np.random.default_rng(0)
    for kind in ("a", "b"):
        (tmp_path / kind).mkdir()
        for i in range(6):
            noise = rng.integers(0, 255, (300, 400, 3), dtype=np.uint8)
            Image.fromarray(noise).save(tmp_path / kind / f"{i}.jpg")
    shown = opened(tmp_path).shown(np.array([0, 11]))
    assert all(s["image"].startswith("data:image/jpeg;base64,") for s in shown)
    assert all(len(s["image"]) < 20_000 for s in shown)
    assert shown[1]["row"] == {"path": "b/5.jpg"}
