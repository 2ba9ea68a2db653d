#!/usr/bin/env python3
"""Writes tests/golden/pipeline: what torchvision makes of two pictures, for every kernel.

    pip install torch==2.11.0 torchvision==0.26.0 numpy pillow
    python tests/golden/make_pipeline_vectors.py

Run it on a processor with AVX2: without it torchvision resizes uint8 through float32, not through the
integer path that the pipeline follows.

Files: cases.json lists {kernel, parameters, input, output, tolerance}; a picture is {file, height,
width, channels}, its file uint8 [height, width, channels] without a header. `tolerance` is the largest
difference of a byte that the test accepts. An encoded input is {file} alone.
"""

import io
import json
import pathlib
import struct
import zlib

import numpy as np
import PIL.Image
import torch
import torchvision
from torchvision.io import ImageReadMode, decode_jpeg
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import RandAugment
from torchvision.transforms.v2 import functional as F

OUTPUT = pathlib.Path(__file__).parent / "pipeline"
VERSIONS = {"torch": "2.11.0", "torchvision": "0.26.0"}
cases = []


def colour_picture():
    """37x53x3: gradients, a hard edge, noise, and flat patches of grey and of pure colours."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:37, 0:53]
    picture = np.stack([x * 255 // 52, y * 255 // 36, (x * 3 + y * 5) % 256], axis=-1)
    picture[:, 26:40] = 255 - picture[:, 26:40]
    picture[20:, :20] = rng.integers(0, 256, (17, 20, 3))
    for i, colour in enumerate([(0, 0, 0), (255, 255, 255), (128, 128, 128), (255, 0, 0), (0, 255, 0),
                                (0, 0, 255), (255, 255, 0), (3, 2, 1)]):
        picture[0:4, 4 * i:4 * i + 4] = colour
    return picture.astype(np.uint8)


def grey_picture():
    """28x28x1: a bright ring on black, as a handwritten digit."""
    y, x = np.mgrid[0:28, 0:28]
    distance = np.abs(np.sqrt((y - 13.0) ** 2 + (x - 14.5) ** 2) - 8)
    return np.clip(255 - distance * 90, 0, 255).astype(np.uint8)[..., None]


def to_tensor(picture):
    return torch.from_numpy(picture).permute(2, 0, 1).contiguous()


def write(name, picture):
    (OUTPUT / name).write_bytes(np.ascontiguousarray(picture).tobytes())
    height, width, channels = picture.shape
    return {"file": name, "height": height, "width": width, "channels": channels}


def add(kernel, parameters, source, result, tolerance):
    """`result` is a [C, H, W] tensor."""
    name = f"{len(cases):02d}-{kernel}.bin"
    output = write(name, result.permute(1, 2, 0).numpy())
    cases.append({"kernel": kernel, "parameters": parameters, "input": source, "output": output,
                  "tolerance": tolerance})


def add_geometry(name, picture):
    source, image = write(f"input-{name}.bin", picture), to_tensor(picture)
    height, width = picture.shape[:2]
    for h, w in [(19, 23), (74, 106), (64, 20), (height, 31), (12, width), (2, 3), (7, 150)]:
        add("resize", {"height": h, "width": w}, source, F.resize(image, [h, w], antialias=True), 1)
        add("resize_nearest", {"height": h, "width": w}, source,
            F.resize(image, [h, w], interpolation=InterpolationMode.NEAREST), 0)
    for side in (20, 37, 50):
        add("resize_shorter_side", {"side": side}, source, F.resize(image, [side], antialias=True), 1)
    for h, w in [(20, 20), (21, 24), (height, width), (60, 20), (20, 61), (64, 65)]:
        add("center_crop", {"height": h, "width": w}, source, F.center_crop(image, [h, w]), 0)
    for top, left, h, w, size in [(3, 5, 20, 17, (24, 24)), (0, 0, 28, 28, (16, 16)),
                                  (10, 2, 9, 25, (24, 24))]:
        parameters = {"top": top, "left": left, "box_height": h, "box_width": w, "height": size[0],
                      "width": size[1]}
        add("resized_crop", parameters, source,
            F.resized_crop(image, top, left, h, w, list(size), antialias=True), 1)
    add("horizontal_flip", {}, source, F.horizontal_flip(image), 0)


def add_colour(name, picture):
    source, image = write(f"input-{name}.bin", picture), to_tensor(picture)
    for channels in (1, 3):
        add("grayscale", {"channels": channels}, source, F.rgb_to_grayscale(image, channels), 1)
    for factor in (0.0, 0.37, 0.8, 1.0, 1.2, 2.5):
        add("brightness", {"factor": factor}, source, F.adjust_brightness(image, factor), 1)
        add("contrast", {"factor": factor}, source, F.adjust_contrast(image, factor), 1)
        add("saturation", {"factor": factor}, source, F.adjust_saturation(image, factor), 1)
    for factor in (-0.5, -0.3, -0.05, 0.0, 0.1, 0.25, 0.5):
        add("hue", {"factor": factor}, source, F.adjust_hue(image, factor), 1)
    for size, sigma in [(3, 0.1), (3, 0.8), (5, 1.0), (11, 0.5), (11, 2.0), (23, 4.0), (1, 1.0)]:
        add("gaussian_blur", {"kernel_size": size, "sigma": sigma}, source,
            F.gaussian_blur(image, [size, size], [sigma, sigma]), 1)


def add_jpeg(picture, grey):
    options = {"444": {"subsampling": 0}, "422": {"subsampling": 1}, "420": {"subsampling": 2},
               "progressive": {"subsampling": 2, "progressive": True}}
    pictures = {name: PIL.Image.fromarray(picture) for name in options}
    pictures["grey"], options["grey"] = PIL.Image.fromarray(grey[..., 0]), {}
    for name, image in pictures.items():
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=85, **options[name])
        data = buffer.getvalue()
        (OUTPUT / f"{name}.jpg").write_bytes(data)
        decoded = decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8),
                              mode=ImageReadMode.RGB)
        add("decode_jpeg", {}, {"file": f"{name}.jpg"}, decoded, 1)


def png_bytes(picture, bit_depth, colour_type, palette=None):
    """A PNG of already packed rows; Pillow cannot write 16-bit RGB."""
    def chunk(tag, data):
        return struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))
    height, width = picture.shape[:2]
    rows = b"".join(b"\0" + picture[y].tobytes() for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, bit_depth, colour_type, 0, 0, 0)
    middle = chunk(b"PLTE", palette) if palette else b""
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + middle +
            chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def add_png(picture, grey):
    """The expected pixels are those that the file was made of."""
    height, width = picture.shape[:2]
    grey_rgb = np.repeat(grey, 3, axis=-1)
    indices = (np.arange(height)[:, None] + np.arange(width)) % 16
    palette = np.random.default_rng(2).integers(0, 256, (16, 3)).astype(np.uint8)
    alpha = np.concatenate([picture, (indices[..., None] * 16).astype(np.uint8)], axis=-1)
    wide = picture.astype(">u2") * 257
    files = {
        "rgb": (png_bytes(picture, 8, 2), picture),
        "rgba": (png_bytes(alpha, 8, 6), picture),
        "grey": (png_bytes(grey, 8, 0), grey_rgb),
        "rgb16": (png_bytes(wide.astype(">u2"), 16, 2), picture),
        "palette": (png_bytes(indices.astype(np.uint8)[..., None], 8, 3, palette.tobytes()),
                    palette[indices]),
    }
    buffer = io.BytesIO()
    PIL.Image.fromarray(grey[..., 0] > 127).save(buffer, "PNG")
    files["bilevel"] = (buffer.getvalue(), np.where(grey_rgb > 127, 255, 0).astype(np.uint8))
    for name, (data, pixels) in files.items():
        (OUTPUT / f"{name}.png").write_bytes(data)
        add("decode_png", {}, {"file": f"{name}.png"}, to_tensor(pixels), 0)


AUGMENTATIONS = list(RandAugment._AUGMENTATION_SPACE)


def add_augmentations(name, picture):
    """What RandAugment does, for magnitudes at which no shear or turn maps a pixel half way between two others:
    torchvision's float32 coordinates round there by chance."""
    source, image = write(f"input-{name}.bin", picture), to_tensor(picture)
    add("vertical_flip", {}, source, F.vertical_flip(image), 0)
    for degrees in (-360, -123.4, -90, -17, 0, 3.3, 45.5, 90, 180, 211):
        for mode in (InterpolationMode.NEAREST, InterpolationMode.BILINEAR):
            add(f"rotate_{mode.value}", {"degrees": degrees}, source, F.rotate(image, degrees, mode),
                0 if mode == InterpolationMode.NEAREST else 1)
    for top, left, h, w, value in [(3, 5, 20, 17, 0), (0, 0, 1, 28, 255), (27, 27, 1, 1, 127)]:
        erased = F.erase(image, top, left, h, w, torch.tensor([float(value)])[:, None, None])
        add("erase", {"top": top, "left": left, "box_height": h, "box_width": w, "value": value}, source,
            erased, 0)
    height, width = picture.shape[:2]
    augment = RandAugment()
    for index, op in enumerate(AUGMENTATIONS):
        magnitudes_of, signed = RandAugment._AUGMENTATION_SPACE[op]
        magnitudes = magnitudes_of(31, height, width)
        for magnitude in (0, 9, 17, 30) if magnitudes is not None else (9,):
            if (op.startswith("Shear") or op == "Rotate") and magnitude == 30:
                continue
            for negative in (False, True) if signed else (False,):
                level = float(magnitudes[magnitude]) if magnitudes is not None else 0.0
                result = augment._apply_image_or_video_transform(
                    image, op, -level if negative else level, InterpolationMode.NEAREST, augment._fill)
                add("augment", {"index": index, "name": op, "magnitude": magnitude, "negative": negative},
                    source, result, 1)
    add("invert", {}, source, F.invert(image), 0)
    for bits in range(9):
        add("posterize", {"bits": bits}, source, F.posterize(image, bits), 0)
    for factor in (0.0, 0.37, 1.0, 2.5, 7.0):
        add("sharpness", {"factor": factor}, source, F.adjust_sharpness(image, factor), 1)


def main():
    for name, version in VERSIONS.items():
        found = {"torch": torch, "torchvision": torchvision}[name].__version__.split("+")[0]
        assert found == version, f"{name} {version} is needed, this is {found}"
    OUTPUT.mkdir(exist_ok=True)
    for old in OUTPUT.iterdir():
        old.unlink()
    colour, grey = colour_picture(), grey_picture()
    for name, picture in (("colour", colour), ("grey", grey)):
        add_geometry(name, picture)
        add_colour(name, picture)
    add_jpeg(colour, grey)
    add_png(colour, grey)
    for name, picture in (("colour", colour), ("grey", grey)):
        add_augmentations(name, picture)
    index = {"made_with": VERSIONS, "cases": cases}
    (OUTPUT / "cases.json").write_text(json.dumps(index, indent=1) + "\n")


if __name__ == "__main__":
    main()
