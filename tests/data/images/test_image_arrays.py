"""Images that are arrays in a file."""

import numpy as np
import pytest
import torch

from castalia.data.images import read_arrays
from castalia.data.images.image_rows import images_at
from castalia.errors import InvalidData, ShapeMismatch

X = np.arange(2 * 4 * 5, dtype=np.uint8).reshape(2, 4, 5)


@pytest.mark.parametrize(
    "names, part",
    [(("x", "y"), None), (("images", "labels"), None), (("x_train", "y_train"), "train")],
)
def test_arrays_are_found_by_their_names(tmp_path, names, part):
    np.savez(tmp_path / "a.npz", **{names[0]: X, names[1]: [[7], [9]]})
    images = read_arrays(tmp_path / "a.npz", part=part)
    assert images.target.tolist() == [7, 9]
    np.testing.assert_array_equal(images.pixels([0, 1], (4, 5), 1)[:, 0].numpy(), X)


def test_channels_last_becomes_channels_first_exactly(tmp_path):
    colour = np.arange(2 * 3 * 4 * 3, dtype=np.uint8).reshape(2, 3, 4, 3)  # (N, H, W, C)
    np.savez(tmp_path / "a.npz", images=colour)
    found = read_arrays(tmp_path / "a.npz").pixels([0, 1], (3, 4), 3)  # (N, C, H, W)
    assert found.shape == (2, 3, 3, 4)
    for channel in range(3):
        np.testing.assert_array_equal(found[:, channel].numpy(), colour[..., channel])
    np.testing.assert_array_equal(found.permute(0, 2, 3, 1).numpy(), colour)
    # the feature vector of a pixel is a slice over channels
    np.testing.assert_array_equal(found[1, :, 2, 3].numpy(), colour[1, 2, 3])


def test_the_labels_of_an_idx_file_lie_beside_it(tmp_path):
    head = bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 5])
    (tmp_path / "t-images-idx3-ubyte").write_bytes(head + X.tobytes())
    assert read_arrays(tmp_path / "t-images-idx3-ubyte").target is None
    labels = tmp_path / "t-labels-idx1-ubyte"
    labels.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 4, 6]))
    assert read_arrays(tmp_path / "t-images-idx3-ubyte").target.tolist() == [4, 6]
    labels.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 1, 4]))
    with pytest.raises(ShapeMismatch, match="1 labels for 2 images"):
        read_arrays(tmp_path / "t-images-idx3-ubyte")


def test_files_without_images_say_what_they_hold(tmp_path):
    np.savez(tmp_path / "a.npz", weights=X)
    with pytest.raises(InvalidData, match="must have an array `images`, .*; got `weights`"):
        read_arrays(tmp_path / "a.npz")
    with pytest.raises(InvalidData, match="`x_test` or `test_images`; got"):
        read_arrays(tmp_path / "a.npz", part="test")
    (tmp_path / "b.npz").write_bytes(b"nothing")
    with pytest.raises(InvalidData, match="must be a whole NPZ file"):
        read_arrays(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", images=np.array([{}], dtype=object))
    with pytest.raises(InvalidData, match="plain arrays"):
        read_arrays(tmp_path / "c.npz")
    with pytest.raises(InvalidData, match="there is none"):
        read_arrays(tmp_path / "d.npz")


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("channels", [1, 3])
def test_some_images_are_laid_out_as_all_of_them(layout, channels):
    x = torch.randint(256, (6, channels, 5, 4)).contiguous(memory_format=layout)
    found = images_at(x, torch.tensor([4, 0, 4]))
    assert found.equal(x[[4, 0, 4]])
    if channels == 1 and layout is torch.contiguous_format:
        assert found.stride() == (20, 20, 4, 1)  # (20, 1, 4, 1) is taken for the other layout
    assert found.is_contiguous(memory_format=layout)
