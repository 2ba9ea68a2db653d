"""The stream as PyTorch's loaders want it."""

import subprocess
import sys

import numpy as np
import pytest

import hetero
from hetero.conversion import Conversion

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, IterableDataset  # noqa: E402


def test_tensors(open_stream):
    stream = open_stream()
    assert isinstance(stream, IterableDataset) and isinstance(stream, hetero.Stream)
    batch = next(iter(stream))
    images, labels = batch
    assert images.dtype == torch.float32 and images.shape == (8, 3, 12, 10)
    assert images.is_contiguous()  # as a DataLoader's
    assert labels.dtype == torch.int64 and batch.ids.dtype == torch.int64
    assert batch.to("cpu").image is images
    last = next(iter(open_stream(channels_last=True))).image
    assert last.is_contiguous(memory_format=torch.channels_last) and torch.equal(last, images)


def test_views_and_dlpack(open_stream):
    stream = open_stream(raw=True)
    batch = next(iter(stream))
    shared = torch.from_dlpack(batch.image)
    shared[0] = 7
    assert (batch.image[0] == 7).all()
    crop = batch.image[1:, 2:5]
    del batch, shared
    assert len(stream._batches.arena.held()) == 1
    del crop
    assert len(stream._batches.arena.held()) == 0


def test_a_gradient_keeps_its_batch(open_stream, manifest):
    """What autograd has saved is freed in whichever thread runs backward."""
    stream = open_stream(job=manifest(lambda spec: spec["pipeline"].pop()))
    weight = torch.ones(3, requires_grad=True)
    for batch in stream:
        loss = (batch.image.float() * weight.view(3, 1, 1)).mean()
        del batch
        loss.backward()
        del loss
    assert len(stream._batches.arena.held()) == 0


def test_data_loader(open_stream):
    stream = open_stream()
    loader = DataLoader(stream, batch_size=None, num_workers=0)
    assert len(loader) == 13
    seen = []
    for _ in range(3):
        batches = list(loader)
        assert [type(batch) for batch in batches] == [hetero.Batch] * 13
        seen.append(torch.cat([batch.ids for batch in batches]))
    assert [sorted(ids.tolist()) for ids in seen] == [list(range(100))] * 3
    assert list(loader) == []


def test_a_collate_function(open_stream):
    loader = DataLoader(
        open_stream(), batch_size=None, collate_fn=lambda batch: {"pixels": batch.image, "labels": batch.label}
    )
    assert next(iter(loader))["pixels"].shape == (8, 3, 12, 10)


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_are_refused(open_stream, context):
    loader = DataLoader(open_stream(), batch_size=None, num_workers=2, multiprocessing_context=context)
    with pytest.raises(hetero.MisuseError, match="num_workers=0"):
        next(iter(loader))


def test_batches_of_batches_are_refused(open_stream):
    with pytest.raises(hetero.MisuseError, match="batch_size=None"):
        next(iter(DataLoader(open_stream(), batch_size=4)))


def test_stateful_data_loader(open_stream):
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    stream = open_stream()
    whole = [batch.ids.tolist() for epoch in stream.epochs() for batch in epoch]

    first = stateful.StatefulDataLoader(open_stream(), batch_size=None, num_workers=0)
    loop = iter(first)
    seen = [next(loop).ids.tolist() for _ in range(5)]
    state = first.state_dict()

    second = stateful.StatefulDataLoader(open_stream(), batch_size=None, num_workers=0)
    second.load_state_dict(state)
    for _ in range(3):
        seen += [batch.ids.tolist() for batch in second]
    assert seen == whole


def test_numpy_until_torch_is_imported(manifest, tmp_path):
    text = f"""
import sys
import hetero
with hetero.Stream({str(manifest())!r}, output={str(tmp_path / "numpy")!r}) as stream:
    assert type(next(iter(stream)).image).__module__ == "numpy"
assert "torch" not in sys.modules
with hetero.Stream({str(manifest())!r}, output={str(tmp_path / "torch")!r}, device="cpu") as stream:
    assert type(next(iter(stream)).image).__module__ == "torch"
"""
    subprocess.run([sys.executable, "-c", text], check=True)


def test_the_conversion_for_devices():
    pixels = np.stack([np.arange(768) % 256] * 3, axis=1).astype(np.uint8).reshape(4, 16, 12, 3)
    for order in (torch.contiguous_format, torch.channels_last):
        last = order == torch.channels_last
        conversion = Conversion([0.01712475, 1 / 255, 0.0174291953], [-2.117904, 0.0, -1.8044444], 12, last)
        converted = conversion.with_torch(torch.from_numpy(pixels))
        assert converted.is_contiguous(memory_format=order)
        assert np.array_equal(converted.numpy(), conversion.with_numpy(pixels))
        of_views = conversion.with_torch(torch.from_numpy(pixels.reshape(2, 2, 16, 12, 3)))
        assert of_views.shape == (2, 2, 3, 16, 12)
        assert np.array_equal(of_views.flatten(0, 1).numpy(), converted.numpy())


def test_the_same_bits_as_numpy(open_stream):
    stream = open_stream()
    raw = open_stream(raw=True)
    for batch, bytes_of_it in zip(stream, raw):
        again = stream._batches.views._arrays._pictures["image"].with_numpy(np.asarray(bytes_of_it.image))
        assert np.array_equal(batch.image.numpy(), again)
