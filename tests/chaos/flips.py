"""What VerticalFlip does, as a Python operator."""


def upside_down(sample, rng):
    return {"image": sample["image"][::-1]}
