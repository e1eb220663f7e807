#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets: tests/fuzz/seeds/<target>/<name>. Each seed takes a way through the parser of its own;
the names say which. Run it again after a change here and commit what it wrote."""
import json
import pathlib
import shutil
import struct

SEEDS = pathlib.Path(__file__).resolve().parent / "seeds"


def write(target, files):
    folder = SEEDS / target
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    print(f"{target}: {len(files)} seeds, {sum(map(len, files.values()))} bytes")


def container(header, data=0, declared=None):
    """A file: size of the header (or what a liar says), header, data."""
    text = header if isinstance(header, bytes) else header.encode()
    return struct.pack("<Q", len(text) if declared is None else declared) + text + bytes(i % 256 for i in range(data))


def tensor(dtype="U8", shape=(4,), begin=0, end=4):
    return json.dumps({"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}, separators=(",", ":"))


def safetensors():
    one = '{"a":' + tensor() + "}"
    sizes = {"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
             "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
             "C64": 64, "F64": 64, "I64": 64, "U64": 64}
    entries, at = [], 0
    for name, bits in sizes.items():
        entries.append(f'"{name}":' + tensor(name, (2, 2), at, at + bits // 2))
        at += bits // 2
    meta = '{"__metadata__":{"format":"pt","k\\u00e4\\n":"\\ud83d\\ude00"},'
    return {
        "every_dtype": container("{" + ",".join(entries) + "}", at),
        "least": container("{}"),
        "metadata": container(meta + one[1:], 4),
        "padded": container(one + "   ", 4),
        "white_space": container('{ "a"\t: \n{"dtype" :"F16","shape":[ 1 , 2 ],\r"data_offsets":[0, 4] } }', 4),
        "scalar": container('{"s":' + tensor("F64", (), 0, 8) + "}", 8),
        "zero_size": container(
            '{"a":' + tensor("F32", (0, 7), 0, 0) + ',"b":' + tensor() + ',"c":' + tensor("I8", (0,), 4, 4) + "}", 4),
        "unaligned": container('{"a":' + tensor("U8", (1,), 0, 1) + ',"b":' + tensor("F64", (1,), 1, 9) + "}", 9),
        "out_of_order": container('{"b":' + tensor("U8", (2,), 4, 6) + ',"a":' + tensor("F32", (1,), 0, 4) + "}", 6),
        "half_precision": container('{"h":' + tensor("F16", (3,), 0, 6) + ',"b":' + tensor("BF16", (2,), 6, 10) + "}", 10),
        "empty": b"",
        "seven_bytes": b"\0" * 7,
        "header_of_no_bytes": container(""),
        "header_too_large": container("{}", declared=100_000_001),
        "header_all_ones": container("{}", declared=2**64 - 1),
        "header_beyond_file": container(one, declared=len(one) + 1),
        "header_cut": container(one, 4, declared=len(one) - 1),
        "leading_space": container(" " + one, 4),
        "not_json": container("{a}"),
        "not_an_object": container("[]"),
        "trailing_text": container(one + "x", 4),
        "trailing_bytes": container(one, 5),
        "truncated": container(one, 3),
        "duplicate_name": container('{"a":' + tensor() + ',"\\u0061":' + tensor(begin=4, end=8) + "}", 8),
        "duplicate_metadata_key": container('{"__metadata__":{"a":"","a":""}}'),
        "duplicate_metadata": container('{"__metadata__":{},"__metadata__":{}}'),
        "duplicate_field": container('{"a":{"dtype":"U8","dtype":"U8"}}'),
        "metadata_number": container('{"__metadata__":{"a":1}}'),
        "metadata_null": container('{"__metadata__":null}'),
        "null_byte": container('{"a\\u0000":' + tensor() + "}", 4),
        "null_byte_in_metadata": container('{"__metadata__":{"a":"\\u0000"}}'),
        "no_dtype": container('{"a":{"shape":[4],"data_offsets":[0,4]}}', 4),
        "no_shape": container('{"a":{"dtype":"U8","data_offsets":[0,4]}}', 4),
        "no_offsets": container('{"a":{"dtype":"U8","shape":[4]}}', 4),
        "unknown_field": container('{"a":{"x":1}}'),
        "unknown_dtype": container('{"a":' + tensor("F33") + "}", 4),
        "one_offset": container('{"a":{"data_offsets":[0]}}', 4),
        "three_offsets": container('{"a":{"data_offsets":[0,4,4]}}', 4),
        "negative": container('{"a":{"shape":[-4]}}', 4),
        "fraction": container('{"a":{"shape":[4.5e1]}}', 4),
        "sixty_four_bits": container('{"a":{"shape":[18446744073709551615]}}', 4),
        "overflow": container('{"a":' + tensor("F64", (4294967296, 4294967296), 0, 4) + "}", 4),
        "many_dimensions": container('{"a":' + tensor("U8", (1,) * 10, 0, 2) + "}", 2),
        "packed_odd": container('{"a":' + tensor("F4", (3,), 0, 1) + "}", 1),
        "wrong_size": container('{"a":' + tensor("F32", (2,), 0, 4) + "}", 4),
        "end_before_begin": container('{"a":' + tensor("U8", (4,), 4, 0) + "}", 4),
        "overlap": container('{"a":' + tensor() + ',"b":' + tensor(begin=2, end=6) + "}", 6),
        "hole": container('{"a":' + tensor() + ',"b":' + tensor(begin=5, end=9) + "}", 9),
        "bad_utf8": container(b'{"\xff":1}'),
        "every_utf8_length": container('{"\u00e4\u20ac\U0001f600":' + tensor() + "}", 4),
        "lone_surrogate": container('{"\\udc00":1}'),
        "half_a_pair": container('{"\\ud800\\u0041":1}'),
        "high_without_low": container('{"\\ud800x":1}'),
        "bad_escape": container('{"\\x":1}'),
        "bad_hexadecimal": container('{"\\u00G0":1}'),
        "hexadecimal": container('{"\\u00fF\\u00Ab":' + tensor() + "}", 4),
        "escapes": container('{"\\"\\\\\\/\\b\\f\\n\\r\\t":' + tensor() + "}", 4),
        "control_character": container('{"\n":1}'),
        "open_string": container('{"a'),
        "nested": container('{"a":{"shape":[[1]]}}'),
        "true": container('{"a":true}'),
        "leading_zero": container('{"a":{"shape":[04]}}'),
        "no_comma": container('{"a":{"shape":[1 2]}}'),
        "long_name": container('{"' + "n" * 90 + '":{"dtype":"?"}}'),
    }


def json_seeds():
    texts = {
        "null": "null", "true": "true", "false": "false", "zero": "0", "minus_zero": "-0", "integer": "-12",
        "most": "9223372036854775807", "least": "-9223372036854775808", "unsigned": "18446744073709551615",
        "too_large": "18446744073709551616", "fraction": "0.1", "exponent": "1e5", "signed_exponent": "-2.5E-3",
        "plus_exponent": "1e+308", "infinite": "1e309", "tiny": "1e-400", "digits": "1" * 50, "string": '"text"',
        "empty_string": '""',
        "escapes": r'"\"\\\/\b\f\n\r\t"', "unicode_escape": r'"\u00e4\u20AC"', "pair": r'"\ud83d\ude00"',
        "null_byte": r'"\u0000"', "raw_unicode": '"\u00e4\u20ac\U0001f600"', "array": "[1,2,3]", "empty_array": "[ ]",
        "object": '{"a":1,"b":[true,null]}', "empty_object": "{ }", "nested": "[[[[]]],{}]",
        "white_space": " \t\r\n[ 1 , 2 ]\n",
        "deep": "[" * 16 + "]" * 16, "too_deep": "[" * 17, "many": "[" + "0," * 499 + "0]", "duplicate": '{"k":1,"\\u006b":2}',
        "long": '"' + "x" * 4096 + '"', "empty": "", "bad_null": "nul", "bad_true": "trux", "bad_false": "falsy", "nan": "NaN",
        "plus": "+1", "leading_zero": "01", "minus": "-", "bare_point": "1.", "bare_exponent": "1e", "open_array": "[1",
        "trailing_comma": "[1,]", "no_comma": "[1 2]", "wrong_bracket": "[1}", "no_colon": '{"a" 1}', "bare_key": "{a:1}",
        "object_no_comma": '{"a":1 "b":2}', "trailing_text": "[] x", "comment": "[] // x", "open_string": '"a',
        "bad_escape": r'"\x"',
        "short_escape": r'"\u12"', "low_surrogate": r'"\udc00"', "high_surrogate": r'"\ud800"', "high_high": r'"\ud800\ud800"',
        "control": '"\x01"', "mark": "\ufeff1",
    }
    files = {name: text.encode() for name, text in texts.items()}
    for name, raw in {"stray": b"\x80", "overlong_2": b"\xc0\x80", "overlong_3": b"\xe0\x80\x80",
                      "overlong_4": b"\xf0\x80\x80\x80",
                      "surrogate": b"\xed\xa0\x80", "beyond": b"\xf4\x90\x80\x80", "cut": b"\xe2\x82"}.items():
        files["utf8_" + name] = b'"' + raw + b'"'
    return files


write("safetensors", safetensors())
write("json", json_seeds())
