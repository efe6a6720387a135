"""Images of every kind become the same 8-bit pixels."""

import io

import numpy as np
import pytest
from PIL import Image

from castalia.data.images.image_bounds import Capped
from castalia.data.images.image_decoder import decode, decode_labels, header
from castalia.errors import InvalidData


def stored(image, kind="PNG", **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    file.seek(0)
    return file


def ramp(height=6, width=8):
    values = np.arange(height * width * 3, dtype=np.uint8).reshape(height, width, 3)
    return Image.fromarray(values)


def test_colour_comes_back_as_it_was_written():
    np.testing.assert_array_equal(decode(stored(ramp()), None, 3), np.asarray(ramp()))


def test_grey_is_repeated_over_colours_and_colour_becomes_luminance():
    grey = ramp().convert("L")
    found = decode(stored(grey), None, 3)
    assert (found == np.asarray(grey)[..., None]).all()
    np.testing.assert_array_equal(decode(stored(ramp()), None, 1)[..., 0], np.asarray(grey))


def test_sixteen_bits_are_scaled_to_eight():
    values = np.array([[0, 256, 257, 32768, 65535]], dtype=np.uint16)
    found = decode(stored(Image.fromarray(values)), None, 1)
    assert found[0, :, 0].tolist() == [0, 1, 1, 128, 255]


def test_transparency_is_laid_on_white():
    image = Image.new("RGBA", (3, 1), (255, 0, 0, 255))
    image.putpixel((1, 0), (0, 0, 0, 0))
    image.putpixel((2, 0), (0, 0, 0, 51))
    assert decode(stored(image), None, 3)[0].tolist() == [[255, 0, 0], [255] * 3, [204] * 3]
    assert decode(stored(image), None, 4)[0, 1].tolist() == [0, 0, 0, 0]


def test_palettes_and_cmyk_are_colours():
    image = Image.new("RGB", (4, 4), (10, 200, 30))
    assert decode(stored(image.quantize(4)), None, 3)[0, 0].tolist() == [10, 200, 30]
    see_through = image.quantize(4)
    assert (
        decode(stored(see_through, transparency=see_through.getpixel((0, 0))), None, 3) == 255
    ).all()
    cmyk = decode(stored(image.convert("CMYK"), "TIFF"), None, 3)
    assert abs(cmyk[0, 0].astype(int) - [10, 200, 30]).max() <= 2


@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_turned_upright_as_their_exif_tag_says(orientation):
    from PIL import ImageOps

    exif = Image.Exif()
    exif[0x0112] = orientation
    for kind in ("PNG", "JPEG"):
        file = stored(ramp(48, 80), kind, exif=exif)
        with Image.open(file) as image:
            want = np.asarray(ImageOps.exif_transpose(image))
        file.seek(0)
        assert header(file)[:2] == want.shape[:2]
        file.seek(0)
        np.testing.assert_array_equal(decode(file, None, 3), want)
        file.seek(0)
        assert decode(file, (7, 5), 3).shape == (7, 5, 3)


def test_a_jpeg_decoded_small_is_the_large_one_shrunk():
    down, across = np.mgrid[:200, :300]
    smooth = np.stack([down, across * 0.8, (down + across) * 0.4], axis=2).astype(np.uint8)
    file = stored(Image.fromarray(smooth), "JPEG", quality=95)
    small = decode(file, (25, 30), 3).astype(int)
    file.seek(0)
    with Image.open(file) as image:
        want = np.asarray(image.resize((30, 25), Image.Resampling.BILINEAR)).astype(int)
    assert abs(small - want).max() <= 6
    file.seek(0)
    assert decode(file, (25, 30), 1).shape == (25, 30, 1)


def test_headers_say_size_and_whether_there_is_colour():
    kinds = {"1": 1, "L": 1, "LA": 1, "P": 3, "RGB": 3, "RGBA": 3}
    for mode, channels in kinds.items():
        assert header(stored(ramp().convert(mode))) == (6, 8, channels)


def test_the_numbers_of_masks_are_classes():
    classes = np.array([[0, 3], [11, 255]], dtype=np.uint8)
    palette = Image.fromarray(classes).convert("L")
    palette.putpalette([7] * 768)
    for image in (Image.fromarray(classes), palette):
        np.testing.assert_array_equal(decode_labels(stored(image)), classes)
    many = np.array([[0, 1000]], dtype=np.uint16)
    np.testing.assert_array_equal(decode_labels(stored(Image.fromarray(many))), many)
    two = Image.fromarray(classes > 3)
    np.testing.assert_array_equal(decode_labels(stored(two)), classes > 3)


def _claims(data: bytes, wide: int) -> bytes:
    """Let the header of a WebP or JPEG 2000 file claim a square of ``wide`` pixels."""
    if data[12:16] == b"VP8X":
        side = (wide - 1).to_bytes(3, "little")
        return data[:24] + 2 * side + data[30:]
    if data[12:16] == b"VP8L":
        return data[:21] + ((wide - 1) << 14 | (wide - 1)).to_bytes(4, "little") + data[25:]
    if data[12:16] == b"VP8 ":
        return data[:26] + 2 * wide.to_bytes(2, "little") + data[30:]
    at = data.index(b"\xff\x4f\xff\x51") + 8
    return data[:at] + 2 * wide.to_bytes(4, "big") + data[at + 8 :]


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("webp", {}),
        ("webp", {"lossless": True}),
        ("webp", {"exif": Image.Exif()}),  # with metadata, so a canvas of its own
        ("jpeg2000", {}),
    ],
)
def test_a_header_is_read_before_its_decoder_allocates_what_it_claims(kind, settings, monkeypatch):
    file = stored(Image.new("RGB", (20, 10), "red"), kind, **settings)
    assert decode(file, None, 3).shape == (10, 20, 3)
    bomb = io.BytesIO(_claims(file.getvalue(), 16_000))
    monkeypatch.setattr(Image, "open", lambda file: pytest.fail("opened"))
    with pytest.raises(InvalidData, match=r"its header claims [\d,]{11,}"):
        decode(bomb, None, 3)


def test_a_read_reserves_no_more_than_the_file_has_left(tmp_path):
    (tmp_path / "some").write_bytes(b"12345")
    with (tmp_path / "some").open("rb") as file:
        capped = Capped(file)
        assert capped.read(2) == b"12"
        assert capped.read(2**62) == b"345"  # which a plain file would try to reserve
        assert capped.read() == b""
