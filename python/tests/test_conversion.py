"""Normalize and Cast, to the last bit."""

import struct
from fractions import Fraction

import numpy as np
import pytest

from hetero.conversion import Conversion


def rounded(value):
    """The float32 nearest to a fraction, ties to even, by exact arithmetic; without numpy."""
    nearest = struct.unpack("<f", struct.pack("<f", float(value)))[0]  # may be rounded twice
    (bits,) = struct.unpack("<i", struct.pack("<f", nearest))
    if not bits:
        return nearest
    around = [struct.unpack("<f", struct.pack("<i", bits + step))[0] for step in (-1, 0, 1)]
    return min(around, key=lambda x: (abs(Fraction(x) - value), struct.unpack("<I", struct.pack("<f", x))[0] & 1))


SCALE = [0.01712475, 1 / 255, 0.0174291953]
SHIFT = [-2.117904, 0.0, -1.8044444]


def expected(byte, channel):
    """x * scale + shift, each operation rounded to float32, as runtime/train/device/cpu_device.cpp does."""
    scale, shift = (Fraction(float(np.float32(numbers[channel]))) for numbers in (SCALE, SHIFT))
    return rounded(Fraction(rounded(byte * scale)) + shift)


def all_bytes():
    """[4, 16, 12, 3] with every byte in every channel."""
    return np.stack([np.arange(768) % 256] * 3, axis=1).astype(np.uint8).reshape(4, 16, 12, 3)


@pytest.mark.parametrize("channels_last", [False, True])
def test_every_byte_to_the_bit(channels_last):
    converted = Conversion(SCALE, SHIFT, 12, channels_last).with_numpy(all_bytes())
    assert converted.shape == (4, 3, 16, 12) and converted.dtype == np.float32
    assert converted.strides[1] == (4 if channels_last else 16 * 12 * 4)
    assert converted.flags.c_contiguous != channels_last
    flat = converted.transpose(0, 2, 3, 1).reshape(-1, 3)
    for byte in range(256):
        for channel in range(3):
            assert flat[byte, channel] == np.float32(expected(byte, channel)), (byte, channel)


def test_pictures_of_several_parts():
    """A picture that is converted in parts, the last of them shorter."""
    pixels = np.random.default_rng(1).integers(0, 256, (2, 211, 200, 3), np.uint8)
    exact = pixels.astype(np.float32) * np.float32(SCALE) + np.float32(SHIFT)
    for channels_last in (False, True):
        converted = Conversion(SCALE, SHIFT, 200, channels_last).with_numpy(pixels)
        assert np.array_equal(converted, exact.transpose(0, 3, 1, 2))


def test_empty():
    assert Conversion(SCALE, SHIFT, 12).with_numpy(np.empty((0, 16, 12, 3), np.uint8)).shape == (0, 3, 16, 12)


def test_a_stream_with_and_without(open_stream):
    """What the manifest's Normalize makes of the bytes that raw=True gives."""
    raw = next(iter(open_stream(raw=True)))
    converted = next(iter(open_stream()))
    assert raw.image.dtype == np.uint8 and raw.image.shape == (8, 12, 10, 3)
    assert converted.image.dtype == np.float32 and converted.image.shape == (8, 3, 12, 10)
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    exact = ((raw.image / 255 - mean) / std).transpose(0, 3, 1, 2)
    assert np.abs(converted.image - exact).max() < 1e-6
    assert np.array_equal(np.asarray(raw.ids), np.asarray(converted.ids))


def test_without_normalize_bytes(open_stream, manifest):
    stream = open_stream(job=manifest(lambda spec: spec["pipeline"].pop()))
    image = next(iter(stream)).image
    assert image.dtype == np.uint8 and image.shape == (8, 3, 12, 10)
