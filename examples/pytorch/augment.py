"""Augmentation by torchvision, on the CPU workers of augment.yaml. `hetero-runtime preview` shows what it makes."""

import hetero.operators
from torchvision.transforms import v2

transform = hetero.operators.torchvision(
    v2.Compose(
        [
            v2.RandomResizedCrop(32, scale=(0.6, 1.0), antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ColorJitter(brightness=0.1, contrast=0.1),
            v2.RandomApply([v2.GaussianBlur(3)], p=0.3),
        ]
    ),
    validation=v2.Resize((32, 32), antialias=True),
)
