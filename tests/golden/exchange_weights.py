"""Python's half of the exchange of weights with torchvision.

    python exchange_weights.py check MODEL SIDE FILE   # FILE holds our model filled by the formula (fill)
    python exchange_weights.py write MODEL SIDE FILE   # torchvision's model, filled likewise, saved by Python

Exit code 77 when torch, torchvision or safetensors is not installed; torchvision_files.py needs neither of the first two.
"""

import pathlib
import sys

try:
    import safetensors.torch
    import torch
    import torchvision
except ImportError as error:
    print(error)
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from make_model_vectors import fill  # noqa: E402


def main():
    action, name, side, path = sys.argv[1:]
    size = {"image_size": int(side)} if name.startswith("vit") else {}
    model = getattr(torchvision.models, name)(num_classes=10, **size)
    fill(model)
    if action == "write":
        safetensors.torch.save_file(model.state_dict(), path)
        return 0
    stored = safetensors.torch.load_file(path)
    wanted = {key: value.clone() for key, value in model.state_dict().items()}
    model.load_state_dict(stored, strict=True)
    different = [key for key, value in wanted.items() if not torch.equal(stored[key], value)]
    print(name, "differs in" if different else "is equal", different)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
