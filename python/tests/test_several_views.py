"""Several views of a sample: shapes, and each with the Normalize of its own entries."""

import numpy as np

from hetero.conversion import Conversion

SCALE = [0.01712475, 1 / 255, 0.0174291953]
SHIFT = [-2.117904, 0.0, -1.8044444]
BOTH = {
    "views": [{"name": "image", "count": 2}, {"name": "local", "count": 3}, {"name": "alone"}],
    "pipeline": [
        {"op": "RandomResizedCrop", "size": {"height": 8, "width": 6}, "views": ["image"]},
        {"op": "RandomResizedCrop", "size": {"height": 4, "width": 5}, "views": ["local", "alone"]},
        {"op": "HorizontalFlip"},
        {"op": "Normalize", "mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25], "views": ["image"]},
        {"op": "Normalize", "mean": [0.0, 0.0, 0.0], "std": [1.0, 1.0, 1.0], "views": ["local"]},
    ],
}


def test_each_view_is_converted_as_a_picture():
    pixels = np.random.default_rng(1).integers(0, 256, (3, 2, 5, 4, 3), np.uint8)
    for channels_last in (False, True):
        conversion = Conversion(SCALE, SHIFT, 4, channels_last)
        converted = conversion.with_numpy(pixels)
        assert converted.shape == (3, 2, 3, 5, 4)
        for view in range(2):
            alone = conversion.with_numpy(np.ascontiguousarray(pixels[:, view]))
            assert np.array_equal(converted[:, view], alone)
            assert converted[:, view].strides[1:] == alone.strides[1:]
        assert conversion.with_numpy(pixels[:0]).shape == (0, 2, 3, 5, 4)


def test_bytes_of_every_view(open_stream):
    stream = open_stream(raw=True, overrides=BOTH)
    assert stream.views == {"image": 2, "local": 3, "alone": 1}
    batch = next(iter(stream))
    image, label, alone, local = batch
    assert list(batch.keys()) == ["image", "label", "alone", "local"]
    assert image.shape == (8, 2, 8, 6, 3) and label.shape == (8,)
    assert alone.shape == (8, 4, 5, 3) and local.shape == (8, 3, 4, 5, 3)
    assert {array.dtype.name for array in (image, alone, local)} == {"uint8"} and label.dtype == np.int64
    assert np.array_equal(label, batch.ids % 4)


def test_every_view_has_its_own_conversion(open_stream):
    converted = next(iter(open_stream(overrides=BOTH)))
    raw = next(iter(open_stream(raw=True, overrides=BOTH)))
    assert converted.image.shape == (8, 2, 3, 8, 6) and converted.image.dtype == np.float32
    assert converted.local.shape == (8, 3, 3, 4, 5) and converted.local.dtype == np.float32
    assert converted.alone.shape == (8, 3, 4, 5) and converted.alone.dtype == np.uint8

    def planes(array):
        return np.moveaxis(array, -1, -3).astype(np.float32)

    np.testing.assert_allclose(converted.image, (planes(raw.image) / 255 - 0.5) / 0.25, atol=1e-6)
    np.testing.assert_allclose(converted.local, planes(raw.local) / 255, atol=1e-6)
    assert np.array_equal(converted.alone, planes(raw.alone))


def test_validation_has_one_image(open_stream):
    stream = open_stream(overrides=BOTH)
    next(iter(stream))
    shapes = []
    for batch in stream.validation():
        assert list(batch.keys()) == ["image", "label"]
        shapes.append(batch.image.shape)
    assert shapes == [(8, 3, 8, 6), (8, 3, 8, 6), (5, 3, 8, 6)]


def test_without_views(open_stream):
    assert open_stream().views == {"image": 1}


def test_large_views_stay_where_the_worker_has_put_them(open_stream):
    """The first view is the image of a job without views, wherever its bytes lie."""
    large = {f"dataset.{of}image.{side}": 64 for of in ("", "validation.") for side in ("height", "width")}
    large["dataset.samples"] = 2000
    views = {"views": [{"name": "image", "count": 2}, {"name": "other"}]}
    alone = open_stream(raw=True, overrides=large)
    stream = open_stream(raw=True, overrides={**large, **views})
    files = stream._batches.arena._files
    for both, one in zip(iter(stream), iter(alone)):
        assert np.array_equal(both.ids, one.ids) and both.image.shape == (8, 2, 64, 64, 3)
        assert np.array_equal(both.image[:, 0], one.image)
        flipped = np.flip(one.image, axis=2)
        for view in (both.image[:, 1], both.other):
            same = [np.array_equal(a, b) or np.array_equal(a, c) for a, b, c in zip(view, one.image, flipped)]
            assert all(same)
        del both, one
        if files:
            break
    assert files
