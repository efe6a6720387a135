"""Class folders and tables of paths."""

import os
import zipfile

import numpy as np
import pytest
from PIL import Image

from castalia.data.images import read_folder, read_table_of_paths
from castalia.data.images.file_stores import Folder
from castalia.errors import DataWarning, InvalidData


def write(folder, *names, size=(6, 5)):
    for i, name in enumerate(names):
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size, (i, 0, 0)).save(place)


def test_folders_are_classes_and_folders_inside_belong_to_them(tmp_path):
    write(tmp_path, "cat/1.png", "cat/more/2.jpg", "dog/1.PNG")
    images = read_folder(tmp_path)
    assert images.target.tolist() == ["cat", "cat", "dog"]
    assert images.source.names == ["cat/1.png", "cat/more/2.jpg", "dog/1.PNG"]
    assert images.pixels([0, 1, 2], (4, 4), 3).shape == (3, 3, 4, 4)
    assert images.take([2]).target.tolist() == ["dog"]


def test_an_archive_may_have_one_folder_around_the_classes(tmp_path):
    write(tmp_path, "cat/1.png", "dog/1.png")
    with zipfile.ZipFile(tmp_path / "pets.zip", "w") as archive:
        for name in ("cat/1.png", "dog/1.png"):
            archive.write(tmp_path / name, f"pets/{name}")
        archive.writestr("__MACOSX/pets/._1.png", b"")
    assert read_folder(tmp_path / "pets.zip").target.tolist() == ["cat", "dog"]


def test_other_files_are_counted_and_system_files_ignored(tmp_path):
    write(tmp_path, "cat/1.png", "dog/1.png")
    (tmp_path / "cat" / ".DS_Store").write_bytes(b"x")
    assert len(read_folder(tmp_path)) == 2
    (tmp_path / "cat" / "notes.txt").write_text("hello")
    (tmp_path / "labels.csv").write_text("a,b")
    with pytest.warns(DataWarning, match=r"2 files .* no images, left out: `cat/notes.txt`"):
        assert len(read_folder(tmp_path)) == 2


def test_images_beside_classes_and_empty_classes_are_reported(tmp_path):
    write(tmp_path, "cat/1.png", "dog/1.png", "lost.png")
    with pytest.warns(DataWarning, match="1 in .* have no class: `lost.png`"):
        assert len(read_folder(tmp_path)) == 2
    os.remove(tmp_path / "lost.png")
    (tmp_path / "bird").mkdir()
    with pytest.warns(DataWarning, match="are folders without images: `bird`"):
        assert len(read_folder(tmp_path)) == 2


def test_a_folder_without_classes_says_what_it_found(tmp_path):
    with pytest.raises(InvalidData, match="must hold images; got no file"):
        read_folder(tmp_path)
    (tmp_path / "readme.md").write_text("hello")
    with pytest.raises(InvalidData, match="must hold images; got 1 other file: `readme.md`"):
        read_folder(tmp_path)
    os.remove(tmp_path / "readme.md")
    write(tmp_path, "1.png", "2.png")
    with pytest.raises(InvalidData, match="got 2 images and no class folder"):
        read_folder(tmp_path)
    images = read_folder(tmp_path, labelled=False)
    assert len(images) == 2
    assert images.target is None


def test_one_class_is_reported_and_parts_are_not_classes(tmp_path):
    write(tmp_path / "one", "cat/1.png")
    with pytest.warns(DataWarning, match="one class only, `cat`"):
        assert len(read_folder(tmp_path / "one")) == 1
    write(tmp_path / "parts", "train/cat/1.png", "test/cat/1.png")
    with pytest.raises(InvalidData, match=r"`test` and `train`, which are parts .*parts/test`"):
        read_folder(tmp_path / "parts")


def test_a_folder_is_listed_without_opening_or_asking_about_a_file(tmp_path, monkeypatch):
    def never(self, name):
        raise AssertionError(name)

    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    for i in range(500):
        (tmp_path / "ab"[i % 2] / f"{i}.jpg").touch()
    monkeypatch.setattr(Folder, "open", never)
    monkeypatch.setattr(Folder, "size", never)
    images = read_folder(tmp_path)
    assert len(images) == 500
    assert images.target[::250].tolist() == ["a", "b"]


def test_paths_of_a_table_start_at_its_folder(tmp_path):
    write(tmp_path, "pics/1.png", "pics/2.png", "pics/3.png")
    (tmp_path / "t.csv").write_text("file,kind,age\npics/1.png,cat,3\npics/3.png,dog,5\n")
    images = read_table_of_paths(tmp_path / "t.csv", "file", "kind")
    assert images.target.tolist() == ["cat", "dog"]
    assert images.pixels([0, 1], (2, 2), 3)[:, 0, 0, 0].tolist() == [0, 2]
    ages = read_table_of_paths(str(tmp_path / "t.csv"), "file", "age").target
    np.testing.assert_array_equal(ages, [3, 5])
    (tmp_path / "u.csv").write_text("file,kind\n1.png,cat\n2.png,dog\n")
    moved = read_table_of_paths(tmp_path / "u.csv", "file", "kind", root=tmp_path / "pics")
    assert moved.source.sizes().tolist() == [[5, 6], [5, 6]]


def test_paths_that_lead_nowhere_are_named_and_counted(tmp_path):
    write(tmp_path, "1.png")
    (tmp_path / "t.csv").write_text("file,kind\n1.png,cat\ngone.png,dog\n")
    with pytest.warns(DataWarning, match="1 of 2 paths of .* left out: `gone.png`"):
        assert read_table_of_paths(tmp_path / "t.csv", "file", "kind").target.tolist() == ["cat"]
    with pytest.raises(InvalidData, match="1 of 2 paths"):
        read_table_of_paths(tmp_path / "t.csv", "file", "kind", broken="raise")
    with pytest.raises(InvalidData, match=r"2 of 2 paths .* Set `root`"):
        read_table_of_paths(tmp_path / "t.csv", "file", root=tmp_path.parent)
    with pytest.raises(InvalidData, match="Did you mean `kind`"):
        read_table_of_paths(tmp_path / "t.csv", "file", "kinds")
