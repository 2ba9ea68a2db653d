"""Writes tests/golden/training/: what training in Python eager gives, and model files made by Python.

    python -m pip install torch==2.11.0 torchvision==0.26.0 safetensors
    python tests/golden/make_training_vectors.py [CASE ...]

Weights come from the formula of make_model_vectors.py (fill), pictures from the formula below; the C++
tests share both, so the files hold losses, some parameters and small models only.
"""

import json
import pathlib
import sys

import safetensors.torch
import torch
import torchvision
from make_model_vectors import MASK, fill, uniform

DIRECTORY = pathlib.Path(__file__).parent / "training"
STEPS = 100


def picture(sample, classes, side):
    """uint8 [side, side, 3] of a sample; the same as GoldenSample() in golden_samples.h."""
    index = torch.arange(side * side * 3, dtype=torch.int64)
    h = (index * 2654435761 + (50000 + sample) * 40503 + 12345) & MASK
    h = h ^ (h >> 15)
    h = (h * 2246822519) & MASK
    h = h ^ (h >> 13)
    return (20 * (sample % classes) + h % 56).to(torch.uint8).reshape(side, side, 3)


def batch(samples, classes, side):
    images = torch.stack([picture(s, classes, side) for s in samples]).permute(0, 3, 1, 2)
    return (images.float() / 255 - 0.5) / 0.25, torch.tensor([s % classes for s in samples])


def mlp(side, classes):
    nn = torch.nn
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * side * side, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(),
                         nn.Linear(128, classes))


def small_vit(side, classes):
    return torchvision.models.VisionTransformer(image_size=side, patch_size=16, num_layers=2, num_heads=4,
                                                hidden_dim=64, mlp_dim=128, num_classes=classes)


def schedule(optimizer, case):
    """One value per step, by torch.optim.lr_scheduler."""
    s = torch.optim.lr_scheduler
    warmup = case.get("warmup", 0)
    kind = case.get("schedule", "Constant")
    if kind == "Cosine":
        after = s.CosineAnnealingLR(optimizer, T_max=STEPS - warmup, eta_min=case.get("floor", 0))
    elif kind == "Step":
        every = case["step_epochs"] * case["steps_per_epoch"]
        after = s.MultiStepLR(optimizer, [m - warmup for m in range(every, STEPS + 1, every)], case["gamma"])
    else:
        after = s.ConstantLR(optimizer, factor=1.0)
    if warmup == 0:
        return after
    rise = s.LinearLR(optimizer, 1 / warmup, 1.0, total_iters=warmup - 1)
    return s.SequentialLR(optimizer, [rise, after], milestones=[warmup])


def make_optimizer(parameters, case):
    o = torch.optim
    rate, decay = case["learning_rate"] * case.get("ranks", 1), case.get("weight_decay", 0)
    if case["optimizer"] == "SGD":
        return o.SGD(parameters, lr=rate, momentum=case.get("momentum", 0), weight_decay=decay)
    kind = o.Adam if case["optimizer"] == "Adam" else o.AdamW
    return kind(parameters, lr=rate, betas=tuple(case["betas"]), eps=1e-8, weight_decay=decay)


def undetermined(name):
    """The keys' part has no influence on the attention: its gradient is rounding alone, which Adam makes large."""
    return name.endswith("in_proj_bias")


def freeze(model, layers):
    """Neither weights nor batch norm's statistics of these layers change."""
    for name in layers:
        layer = model.get_submodule(name).eval()
        for parameter in layer.parameters():
            parameter.requires_grad_(False)


def train(model, case):
    """STEPS steps over the samples in order; a short last step of an epoch is taken as it is."""
    dtype = torch.float64 if case.get("float64") else torch.float32
    fill(model)
    model.to(dtype).train()
    freeze(model, case.get("freeze", []))
    optimizer = make_optimizer([p for p in model.parameters() if p.requires_grad], case)
    scheduler = schedule(optimizer, case)
    size, losses, step = case["batch"], [], 0
    pieces = case.get("accumulation", 1)
    while step < STEPS:
        for first in range(0, case["samples"], size):
            if step == STEPS:
                break
            samples = list(range(first, min(first + size, case["samples"])))
            optimizer.zero_grad()
            total = 0.0
            for piece in torch.tensor(samples).chunk(pieces):
                images, labels = batch(piece.tolist(), case["classes"], case["side"])
                loss = torch.nn.functional.cross_entropy(
                    model(images.to(dtype)), labels, label_smoothing=case.get("label_smoothing", 0),
                    reduction="sum")
                (loss / len(samples)).backward()
                total += loss.item()
            if "clip" in case:
                torch.nn.utils.clip_grad_norm_(model.parameters(), case["clip"])
            optimizer.step()
            scheduler.step()
            losses.append(total / len(samples))
            step += 1
    finals = [[name, t.double().norm().item(), t.flatten()[:4].tolist()]
              for name, t in model.state_dict().items() if t.is_floating_point() and not undetermined(name)]
    return case | {"losses": losses, "finals": finals}


LOOP_CASES = [
    {"name": "sgd", "model": "mlp", "side": 8, "classes": 10, "samples": 160, "batch": 16, "optimizer": "SGD",
     "learning_rate": 0.05, "momentum": 0.9, "weight_decay": 1e-4, "label_smoothing": 0.1, "clip": 0.5,
     "schedule": "Cosine", "warmup": 10, "floor": 0.001},
    {"name": "adam", "model": "mlp", "side": 8, "classes": 10, "samples": 160, "batch": 16, "accumulation": 2,
     "optimizer": "Adam", "learning_rate": 1e-3, "betas": [0.9, 0.98], "weight_decay": 1e-3, "schedule": "Step",
     "step_epochs": 3, "steps_per_epoch": 10, "gamma": 0.5},
    {"name": "adamw_tail", "model": "mlp", "side": 8, "classes": 10, "samples": 165, "batch": 16,
     "optimizer": "AdamW", "learning_rate": 1e-3, "betas": [0.9, 0.999], "weight_decay": 0.05, "warmup": 7},
    {"name": "sgd_two_ranks", "model": "mlp", "side": 8, "classes": 10, "samples": 160, "batch": 16, "ranks": 2,
     "optimizer": "SGD", "learning_rate": 0.005, "momentum": 0.9, "schedule": "Cosine", "warmup": 5},
    {"name": "script_vit", "model": "small_vit.pt", "side": 32, "classes": 10, "samples": 160, "batch": 8,
     "optimizer": "AdamW", "learning_rate": 1e-3, "betas": [0.9, 0.999], "weight_decay": 0.05, "clip": 1.0,
     "label_smoothing": 0.1, "schedule": "Cosine", "warmup": 10},
]

# Models with batch norm in float64 and with few values per channel avoided: otherwise rounding grows to any size within
# a hundred steps, between two memory layouts of PyTorch itself too.
STEP_CASES = [
    {"name": "small_vit", "side": 32, "classes": 10, "samples": 160, "batch": 8, "optimizer": "AdamW",
     "learning_rate": 1e-3, "betas": [0.9, 0.999], "weight_decay": 0.05, "clip": 1.0, "label_smoothing": 0.1,
     "schedule": "Cosine", "warmup": 10},
    {"name": "resnet18_float64", "side": 64, "classes": 10, "samples": 40, "batch": 8, "optimizer": "SGD",
     "learning_rate": 0.001, "momentum": 0.9, "weight_decay": 1e-4, "float64": True, "steps": 30},
    {"name": "resnet18_frozen_float64", "side": 64, "classes": 10, "samples": 40, "batch": 8, "optimizer": "SGD",
     "learning_rate": 0.001, "momentum": 0.9, "weight_decay": 1e-4, "float64": True, "steps": 30,
     "freeze": ["conv1", "bn1", "layer1", "layer2.0"]},
    {"name": "resnet50_float64", "side": 64, "classes": 10, "samples": 40, "batch": 8, "optimizer": "SGD",
     "learning_rate": 0.0005, "momentum": 0.9, "weight_decay": 1e-4, "float64": True, "steps": 5},
]


def model_of(case):
    if "vit" in case["name"]:
        return small_vit(case["side"], case["classes"])
    if case["name"].startswith("resnet"):
        return getattr(torchvision.models, case["name"].split("_")[0])(num_classes=case["classes"])
    return mlp(case["side"], case["classes"])


class DropoutNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)
        self.drop = torch.nn.Dropout(0.5)
        self.head = torch.nn.Linear(4 * 36, 10)

    def forward(self, x):
        return self.head(self.drop(torch.relu(self.norm(self.conv(x))).flatten(1)))


def write_models():
    """One file per way a TorchScript file can be right or wrong, and weights as Python saves them."""
    net, images = DropoutNet(), torch.zeros(2, 3, 8, 8)
    fill(net)
    plain = mlp(8, 10)
    fill(plain)
    only_dropout = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Dropout(0.5), torch.nn.Linear(192, 10))
    torch.jit.save(torch.jit.script(net), str(DIRECTORY / "scripted.pt"))
    torch.jit.save(torch.jit.trace(net.eval(), images), str(DIRECTORY / "traced_batch_norm.pt"))
    torch.jit.save(torch.jit.trace(only_dropout, images, check_trace=False), str(DIRECTORY / "traced_dropout.pt"))
    torch.jit.save(torch.jit.trace(plain, images), str(DIRECTORY / "traced_plain.pt"))
    vit = small_vit(32, 10)
    fill(vit)
    torch.jit.save(torch.jit.script(vit), str(DIRECTORY / "small_vit.pt"))
    safetensors.torch.save_file(plain.state_dict(), str(DIRECTORY / "mlp_10_side_8.safetensors"),
                                metadata={"format": "pt"})


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    DIRECTORY.mkdir(exist_ok=True)
    wanted = sys.argv[1:]  # names of cases; none: all, and the models
    if not wanted:
        write_models()
    for group, cases in [("loop", LOOP_CASES), ("step", STEP_CASES)]:
        for case in cases:
            if wanted and case["name"] not in wanted:
                continue
            global STEPS
            STEPS = case.get("steps", 100)
            result = train(model_of(case), case)
            path = DIRECTORY / f"{group}_{case['name']}.json"
            path.write_text(json.dumps(result, separators=(",", ":")) + "\n")
            print(path.name, path.stat().st_size, "bytes, loss", result["losses"][0], "->", result["losses"][-1],
                  flush=True)


if __name__ == "__main__":
    sys.exit(main())
