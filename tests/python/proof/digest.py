"""The digest of a stream, written a second time: from docs and papers, not from the C++ sources' tables.

CRC32C (Castagnoli) of each sample's bytes, SipHash-2-4 with 128 bits of (epoch, step, slot, id, CRC) under keys made of
the seed, summed modulo 2^128.
"""

import numpy as np

PURPOSE = 0x7374726561646967  # "streadig"
MASK = (1 << 64) - 1


def _crc_table():
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82F63B78), table >> 1).astype(np.uint32)
    return table


_TABLE = _crc_table()


def crc32c(rows):
    """CRC32C of each row of a uint8 matrix, all rows at once."""
    crc = np.full(len(rows), 0xFFFFFFFF, dtype=np.uint32)
    for column in np.ascontiguousarray(rows.T):
        crc = _TABLE[(crc ^ column) & 0xFF] ^ (crc >> np.uint32(8))
    return crc ^ np.uint32(0xFFFFFFFF)


def _mix(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def _key(seed, index):
    value = _mix((seed + 0x9E3779B97F4A7C15) & MASK)
    for word in (PURPOSE, index):
        value = _mix(((value ^ word) + 0x9E3779B97F4A7C15) & MASK)
    return value


def _rotate(x, bits):
    return ((x << bits) | (x >> (64 - bits))) & MASK


def sip_hash_128(key_low, key_high, data):
    """SipHash-2-4-128 of bytes whose length is a multiple of eight."""
    v = [
        key_low ^ 0x736F6D6570736575,
        key_high ^ 0x646F72616E646F6D ^ 0xEE,
        key_low ^ 0x6C7967656E657261,
        key_high ^ 0x7465646279746573,
    ]

    def rounds(count):
        for _ in range(count):
            v[0] = (v[0] + v[1]) & MASK
            v[2] = (v[2] + v[3]) & MASK
            v[1] = _rotate(v[1], 13) ^ v[0]
            v[3] = _rotate(v[3], 16) ^ v[2]
            v[0] = _rotate(v[0], 32)
            v[2] = (v[2] + v[1]) & MASK
            v[0] = (v[0] + v[3]) & MASK
            v[1] = _rotate(v[1], 17) ^ v[2]
            v[3] = _rotate(v[3], 21) ^ v[0]
            v[2] = _rotate(v[2], 32)

    words = [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8)]
    for word in [*words, (len(data) & 0xFF) << 56]:
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xEE
    rounds(4)
    low = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    rounds(4)
    return low | (v[0] ^ v[1] ^ v[2] ^ v[3]) << 64


def stream_digest(seed, samples):
    """`samples`: (epoch, step, slot, id, crc) of each; 32 digits, as in report.json."""
    keys = _key(seed, 0), _key(seed, 1)
    total = 0
    for sample in samples:
        data = b"".join((int(number) & MASK).to_bytes(8, "little") for number in sample)
        total += sip_hash_128(*keys, data)
    return f"{total & ((1 << 128) - 1):032x}"
