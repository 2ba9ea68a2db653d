"""Writes tests/golden/models/*.json: what torchvision's models are called inside and what they compute.

    python -m pip install torch==2.11.0 torchvision==0.26.0
    python tests/golden/make_model_vectors.py

Weights and inputs come from a formula (fill) that the C++ tests share, so the files hold results only.
"""

import json
import pathlib
import sys

import torch
import torchvision

DIRECTORY = pathlib.Path(__file__).parent / "models"
MASK = 0xFFFFFFFF


def uniform(count, key):
    """float32 in [0, 1), a hash of (key, element); the same as Uniform() in golden_weights.cpp."""
    h = (torch.arange(count, dtype=torch.int64) * 2654435761 + key * 40503 + 12345) & MASK
    h = h ^ (h >> 15)
    h = (h * 2246822519) & MASK
    h = h ^ (h >> 13)
    return (h.to(torch.float64) / 2**32).to(torch.float32)


def fill(model):
    """Parameters in order get the keys 0, 1, ..., buffers go on from there."""
    entries = [(n, p.data) for n, p in model.named_parameters()]
    entries += [(n, b) for n, b in model.named_buffers()]
    for key, (name, tensor) in enumerate(entries):
        if not tensor.is_floating_point():
            continue
        u = uniform(tensor.numel(), key).reshape(tensor.shape)
        if name.endswith("running_mean"):
            value = (u - 0.5) * 0.2
        elif name.endswith("running_var"):
            value = 0.5 + u
        elif tensor.dim() >= 2:
            value = (u - 0.5) * (2 * (3.0 / tensor[0].numel()) ** 0.5)
        elif name.endswith("weight"):
            value = 0.9 + 0.2 * u
        else:
            value = (u - 0.5) * 0.2
        tensor.copy_(value)


def picture(samples, channels, side):
    count = samples * channels * side * side
    return (uniform(count, 9999) * 2 - 1).reshape(samples, channels, side, side)


def layout(tensors):
    return [[name, list(tensor.shape)] for name, tensor in tensors]


def numbers(tensor):
    return [round(v, 7) for v in tensor.flatten().tolist()]


def names(model):
    return {
        "parameters": layout(model.named_parameters()),
        "buffers": layout(model.named_buffers()),
        "count": sum(p.numel() for p in model.parameters()),
    }


def results(model, images):
    """Outputs in both modes, the loss's gradients and the statistics after one training step's forward.

    Models with batch norm compute in float64: over few values it magnifies float32's rounding beyond any
    useful tolerance.
    """
    fill(model)
    if any(isinstance(module, torch.nn.BatchNorm2d) for module in model.modules()):
        model.double()
        images = images.double()
    model.eval()
    with torch.no_grad():
        evaluation = model(images)
    model.train()
    labels = torch.arange(images.shape[0]) % evaluation.shape[1]
    output = model(images)
    loss = torch.nn.functional.cross_entropy(output, labels, label_smoothing=0.1)
    loss.backward()
    statistics = [[n, numbers(b[:4])] for n, b in model.named_buffers() if b.dim() == 1]
    return {
        "evaluation_output": numbers(evaluation),
        "training_output": numbers(output),
        "loss": loss.item(),
        "gradient_norms": [[n, p.grad.double().norm().item()] for n, p in model.named_parameters()],
        "statistics": statistics,
    }


def learning_rates(total, warmup, steps_per_epoch, kind, base=0.4, gamma=0.3, floor=0.01, step_epochs=2):
    """torch.optim.lr_scheduler's own values, step by step."""
    schedulers = torch.optim.lr_scheduler
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=base)
    if kind == "Cosine":
        after = schedulers.CosineAnnealingLR(optimizer, T_max=total - warmup, eta_min=floor)
    elif kind == "Step":
        milestones = range(step_epochs * steps_per_epoch, total + 1, step_epochs * steps_per_epoch)
        after = schedulers.MultiStepLR(optimizer, [m - warmup for m in milestones], gamma)
    else:
        after = schedulers.ConstantLR(optimizer, factor=1.0)
    scheduler = after
    if warmup > 0:
        rise = schedulers.LinearLR(optimizer, 1 / warmup, 1.0, total_iters=warmup - 1)
        scheduler = schedulers.SequentialLR(optimizer, [rise, after], milestones=[warmup])
    values = []
    for _ in range(total):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return {
        "schedule": kind, "total": total, "warmup": warmup, "steps_per_epoch": steps_per_epoch,
        "base": base, "gamma": gamma, "floor": floor, "step_epochs": step_epochs, "values": values,
    }


def write(name, value):
    path = DIRECTORY / name
    path.write_text(json.dumps(value, separators=(",", ":")) + "\n")
    print(path.name, path.stat().st_size, "bytes")


def main():
    torch.set_num_threads(1)
    models = torchvision.models
    write("resnet18_1000.json", names(models.resnet18()))
    write("resnet18_10.json", names(models.resnet18(num_classes=10))
          | results(models.resnet18(num_classes=10), picture(3, 3, 32)))
    write("resnet50_10.json", names(models.resnet50(num_classes=10))
          | results(models.resnet50(num_classes=10), picture(3, 3, 32)))
    write("vit_b_16_1000.json", names(models.vit_b_16()))
    write("vit_b_16_10_side_32.json",
          names(models.vit_b_16(image_size=32, num_classes=10))
          | results(models.vit_b_16(image_size=32, num_classes=10), picture(2, 3, 32)))
    nn = torch.nn
    mlp = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 256), nn.ReLU(), nn.Linear(256, 128),
                        nn.ReLU(), nn.Linear(128, 10))
    write("mlp_10_side_8.json", names(mlp) | results(mlp, picture(4, 3, 8)))
    write("learning_rates.json", [
        learning_rates(40, 0, 7, "Constant"), learning_rates(40, 5, 7, "Constant"),
        learning_rates(40, 0, 7, "Step"), learning_rates(40, 5, 7, "Step"),
        learning_rates(40, 0, 7, "Cosine"), learning_rates(40, 5, 7, "Cosine"),
    ])


if __name__ == "__main__":
    sys.exit(main())
