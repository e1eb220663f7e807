#!/usr/bin/env python3
"""Reads a safetensors file with the official package and prints what it holds, for comparison with gyre.

read_safetensors.py FILE          one line of JSON a tensor, by name: name, dtype, shape, CRC-32 of the bytes, sum of the
                                  elements where numpy or this script knows the type; first a line with the metadata
read_safetensors.py --accepts FILE...   one line a file: "accepted" or "refused" by the official package, and the name
read_safetensors.py --make FILE   writes tests/golden/io/official.safetensors, with the official package

Exits with 77 when safetensors or numpy is missing.
"""
import json
import sys
import zlib

try:
    import numpy
    import safetensors
except ImportError as missing:
    print(f"skipped: {missing.name} is not installed for {sys.executable}")
    sys.exit(77)

NUMPY_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "U64": "<u8", "I32": "<i4", "U32": "<u4", "I16": "<i2",
               "U16": "<u2", "I8": "i1", "U8": "u1", "BOOL": "u1"}


def total(dtype, data):
    """The sum of the elements: exact for integers, in double precision for the others; None for types unknown here."""
    if dtype == "BF16":  # the upper half of a 32-bit number
        return float((numpy.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4").astype("f8").sum())
    if dtype not in NUMPY_TYPES:
        return None
    values = numpy.frombuffer(data, NUMPY_TYPES[dtype])
    return float(values.astype("f8").sum()) if dtype[0] == "F" else sum(int(v) for v in values)


def show(path):
    with open(path, "rb") as file:
        tensors = dict(safetensors.deserialize(file.read()))
    with safetensors.safe_open(path, framework="np") as file:
        print(json.dumps(file.metadata() or {}, sort_keys=True))
    for name in sorted(tensors):
        t = tensors[name]
        data = bytes(t["data"])
        print(json.dumps([name, t["dtype"], list(t["shape"]), zlib.crc32(data), total(t["dtype"], data)]))


def accepts(paths):
    for path in paths:
        with open(path, "rb") as file:
            data = file.read()
        try:
            safetensors.deserialize(data)
            print("accepted", path)
        except Exception:  # the package raises its own, MemoryError and OverflowError
            print("refused", path)


def make(path):
    """Each type that numpy has, shapes of rank 0 to 3 and one without elements; byte i of a tensor is (37 i + 11) mod 251."""
    def pattern(dtype, shape):
        count = int(numpy.prod(shape, dtype=int)) * numpy.dtype(dtype).itemsize
        raw = bytes((37 * i + 11) % 251 for i in range(count))
        return numpy.frombuffer(raw, dtype).reshape(shape)

    from safetensors.numpy import save_file

    tensors = {
        "core_block.0.attn.Wqkv.weight": pattern("<f4", (3, 5)),
        "transformer.wte.weight": pattern("<f2", (2, 3, 2)),
        "a/double": pattern("<f8", (2,)),
        "scalar": pattern("<i4", ()),
        "none": pattern("<f4", (0, 7)),
        "bytes": pattern("u1", (3,)),
        "signed": pattern("i1", (1, 1)),
        "steps": pattern("<u8", (2,)),
        "long": pattern("<i8", (1,)),
        "short": pattern("<i2", (3,)),
        "unsigned short": pattern("<u2", (1,)),
        "unsigned": pattern("<u4", (2,)),
        "flags": numpy.array([True, False, True]),
        "pairs": pattern("<c8", (2,)),
        "\u00e4\u20ac\"\\\n\u0001": pattern("u1", (1,)),
    }
    save_file(tensors, path, metadata={"format": "gyre \u00e4 \"quoted\"\n"})


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--make":
        make(sys.argv[2])
    elif len(sys.argv) >= 3 and sys.argv[1] == "--accepts":
        accepts(sys.argv[2:])
    elif len(sys.argv) == 2:
        show(sys.argv[1])
    else:
        sys.exit(__doc__)
