"""The tests' own digest is made of the published functions, and is that of a C++ job whose stream was written down."""

import numpy as np

from proof.digest import crc32c, sip_hash_128
from proof.dump import read_dump
from proof.job import manifest
from proof.record import digest_of


def test_published_vectors():
    digits = np.frombuffer(b"123456789", dtype=np.uint8)
    assert crc32c(digits.reshape(1, -1)).tolist() == [0xE3069283]
    key = bytes(range(16))
    low, high = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
    # vectors_sip128 of the authors' reference code, for inputs of these lengths
    for length, expected in ((0, "a3817f04ba25a8e66df67214c7550293"), (8, "3b62a9ba6258f5610f83e264f31497b4")):
        assert sip_hash_128(low, high, bytes(range(length))).to_bytes(16, "little").hex() == expected


def test_digest_of_a_dumped_stream(start):
    run = start(manifest(None, training__model={"name": "mlp"}), "--input-only", "--dump-stream", "dump")
    report = run.succeed()
    entries = sum(read_dump(run.folder / "dump", ranks=2, steps_per_epoch=13), [])
    assert len(entries) == 2 * 39 == 2 * report["steps"]
    assert digest_of(report["seed"], entries) == report["streamDigest"]
    entries[7]["ids"][0] ^= 1
    assert digest_of(report["seed"], entries) != report["streamDigest"]
