"""Golden files of the whole forward pass, by an independent straight-line reference in double precision.

  python3 tests/golden/make_golden.py            writes tests/golden/model/*.safetensors
  python3 tests/golden/make_golden.py --check    recomputes the logits of the files that are there; fails if they differ

Needs numpy and safetensors. Each file is one small model with random weights, norm gains and biases: the five norm placements by
the three injections, and over these 15 every pair of the other choices occurs (norms with weights or without, rotary pairing,
grouped queries, q/k bias, tied head). Tensors, named as in the published checkpoints:

  transformer.wte.weight ... lm_head.weight    F64, every value exact in float as well
  tokens (n)  I32        s_0 (n, h)  F64       logits.r1, logits.r4, logits.r8 (n, V)  F64

s_0 is the state before the first step; with "initial_state": "embedding" it is e, the prelude's output, kept for comparison.
__metadata__["case"] is the description, a JSON object: the fields of CASES below. transformer.ln_f always has its weight;
"norm_weights" is about the norms of the blocks. With grouped queries attn.qk_bias is (heads + kv_heads, d), q heads first.

The script says what recurrent_depth's section 1 says, one line a formula, loops and all; nothing is shared with the library.
"""

import argparse
import json
import math
import os
import sys

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model")
STEPS = (1, 4, 8)
# Norms on small branches amplify roundings; of the seeds 100, 200 ... 1200 this one has the best conditioned models, so that a
# test in float tells a wrong formula from a rounding.
SEED = 500
TWO_NORMS = ("sandwich", "branch_sandwich")


def case(placement, injection, gains, pairing, kv_heads, bias, tied, **changed):
    sizes = dict(vocab=13, width=8, heads=4, kv_heads=kv_heads, head_width=2, mlp=10, layers=[1, 2, 1], tokens=7,
                 rope_base=50000.0, norm_eps=1e-6, loop_norm="after")
    rules = dict(placement=placement, injection=injection, norm_weights=gains, pairing=pairing, qk_bias=bias, tied_head=tied,
                 initial_state="embedding" if injection == "none" else "given")
    # Huginn scales its tied embedding by sqrt(h), retrofitted checkpoints have an untied head and no scale.
    return {**rules, **sizes, "embedding_scale": math.sqrt(changed.get("width", 8)) if tied else 1.0, **changed}


A, S = "adjacent", "half_split"
CASES = [
    # Huginn: 4 heads of width 4.
    case("sandwich", "concat", True, A, 4, True, True, width=16, head_width=4, mlp=12, tokens=9),
    case("sandwich", "add", False, S, 2, True, False),
    case("sandwich", "none", True, S, 2, False, True, heads=2, head_width=4),
    # Retrofitted Llama: groups, half-split pairs, no bias, untied, and no norm between loop and coda.
    case("pre_norm", "concat", True, S, 2, False, False, head_width=4, rope_base=10000.0, norm_eps=1e-5, loop_norm="none"),
    case("pre_norm", "add", False, A, 4, True, True, embedding_scale=1.0),
    case("pre_norm", "none", True, A, 2, True, False, tokens=5),
    # Ouro: nothing injected, branch sandwich; heads wider than width / heads.
    case("branch_sandwich", "concat", False, A, 2, False, True, layers=[2, 2, 2]),
    case("branch_sandwich", "add", True, S, 2, True, False, heads=2, head_width=6),
    case("branch_sandwich", "none", True, S, 1, True, True, layers=[0, 2, 0]),
    # Retrofitted OLMo-2's placement.
    case("branch_post_norm", "concat", True, A, 2, True, False, heads=2, head_width=4, loop_norm="none"),
    case("branch_post_norm", "add", True, S, 2, False, True, tokens=6),
    case("branch_post_norm", "none", False, S, 2, True, True, layers=[1, 1, 2]),
    case("post_norm", "concat", False, S, 4, True, True, initial_state="embedding"),
    # The hops task's shape: no prelude.
    case("post_norm", "add", True, A, 4, True, True, layers=[0, 1, 1], head_width=2),
    case("post_norm", "none", False, A, 2, False, False, tokens=8),
]


def completed(c):
    """The description with what follows from it."""
    assert c["heads"] % c["kv_heads"] == 0 and c["head_width"] % 2 == 0
    return {**c, "name": f"{c['placement']}_{c['injection']}", "steps": list(STEPS), "context": 16}


def shapes(c):
    """Names and shapes of all parameters."""
    h, d, heads, groups, m = c["width"], c["head_width"], c["heads"], c["kv_heads"], c["mlp"]
    out = {"transformer.wte.weight": (c["vocab"], h)}
    for section, count in zip(("prelude", "core_block", "coda"), c["layers"]):
        for i in range(count):
            at = f"transformer.{section}.{i}."
            if c["norm_weights"]:
                for n in range(4 if c["placement"] in TWO_NORMS else 2):
                    out[f"{at}norm_{n + 1}.weight"] = (h,)
            if c["qk_bias"]:
                out[at + "attn.qk_bias"] = (2, 1, heads, d) if groups == heads else (heads + groups, d)
            out[at + "attn.Wqkv.weight"] = ((heads + 2 * groups) * d, h)
            out[at + "attn.proj.weight"] = (h, heads * d)
            out[at + "mlp.fc.weight"] = (2 * m, h)
            out[at + "mlp.proj.weight"] = (h, m)
    if c["injection"] == "concat":
        out["transformer.adapter.weight"] = (h, 2 * h)
    out["transformer.ln_f.weight"] = (h,)
    if not c["tied_head"]:
        out["lm_head.weight"] = (c["vocab"], h)
    return out


def draw(c, seed):
    random = np.random.default_rng(seed)
    values = {}
    for name, shape in shapes(c).items():
        if "norm_" in name or "ln_f" in name:
            value = random.uniform(0.5, 1.5, shape)
        elif "qk_bias" in name:
            value = random.normal(0, 0.5, shape)
        elif "wte" in name:
            value = random.normal(0, 1 / c["embedding_scale"], shape)
        else:  # small enough that eight steps do not amplify roundings
            value = random.normal(0, 0.7 / math.sqrt(shape[-1]), shape)
        values[name] = value.astype(np.float32).astype(np.float64)  # the same model in float and in double
    tokens = random.integers(0, c["vocab"], c["tokens"]).astype(np.int32)
    s_0 = random.normal(0, 0.7, (c["tokens"], c["width"])).astype(np.float32).astype(np.float64)
    return values, tokens, s_0


class Reference:
    """The forward pass. `real` is the precision of all arithmetic, float64 except where float's own error is looked at."""

    def __init__(self, description, weights, real=np.float64):
        self.c, self.real = description, real
        self.w = {name: value.astype(real) for name, value in weights.items()}

    def norm(self, x, gain_name):
        """x (n, h); y = x / sqrt(mean(x^2) + eps) * weight, row by row."""
        y = np.empty_like(x)
        for i, row in enumerate(x):
            y[i] = row / np.sqrt(np.mean(row * row) + self.real(self.c["norm_eps"]))
        return y * self.w[gain_name] if gain_name in self.w else y

    def turn(self, head, position):
        """Rotates one head's q or k (d). Pair j turns by position * base^(-2 j / d)."""
        d = self.c["head_width"]
        out = head.copy()
        for j in range(d // 2):
            a, b = (2 * j, 2 * j + 1) if self.c["pairing"] == "adjacent" else (j, j + d // 2)
            angle = position * self.c["rope_base"] ** (-2.0 * j / d)
            cosine, sine = self.real(math.cos(angle)), self.real(math.sin(angle))
            out[a] = head[a] * cosine - head[b] * sine
            out[b] = head[a] * sine + head[b] * cosine
        return out

    def attention(self, x, at):
        """Causal: query i reads keys 0 .. i. Query head j reads key/value head j / (heads / groups)."""
        n, d, heads, groups = len(x), self.c["head_width"], self.c["heads"], self.c["kv_heads"]
        fused = (x @ self.w[at + "attn.Wqkv.weight"].T).reshape(n, heads + 2 * groups, d)  # rows [q heads | k heads | v heads]
        q, k, v = fused[:, :heads].copy(), fused[:, heads : heads + groups].copy(), fused[:, heads + groups :]
        if self.c["qk_bias"]:
            bias = self.w[at + "attn.qk_bias"].reshape(heads + groups, d)  # q heads first
            q, k = q + bias[:heads], k + bias[heads:]
        for i in range(n):
            for j in range(heads):
                q[i, j] = self.turn(q[i, j], i)
            for j in range(groups):
                k[i, j] = self.turn(k[i, j], i)
        out = np.zeros((n, heads, d), self.real)
        for i in range(n):
            for j in range(heads):
                g = j // (heads // groups)
                scores = np.array([q[i, j] @ k[t, g] for t in range(i + 1)]) / self.real(math.sqrt(d))
                weights = np.exp(scores - scores.max())
                weights /= weights.sum()
                for t in range(i + 1):
                    out[i, j] += weights[t] * v[t, g]
        return out.reshape(n, heads * d) @ self.w[at + "attn.proj.weight"].T

    def mlp(self, x, at):
        m = self.c["mlp"]
        hidden = x @ self.w[at + "mlp.fc.weight"].T
        gate, up = hidden[:, :m], hidden[:, m:]
        return (gate / (1 + np.exp(-gate)) * up) @ self.w[at + "mlp.proj.weight"].T

    def block(self, x, at):
        def n(i, y):
            return self.norm(y, f"{at}norm_{i}.weight")

        placement = self.c["placement"]
        if placement == "pre_norm":
            x = x + self.attention(n(1, x), at)
            x = x + self.mlp(n(2, x), at)
        elif placement == "sandwich":
            x = n(2, self.attention(n(1, x), at) + x)
            x = n(4, self.mlp(n(3, x), at) + x)
        elif placement == "branch_sandwich":
            x = x + n(2, self.attention(n(1, x), at))
            x = x + n(4, self.mlp(n(3, x), at))
        elif placement == "branch_post_norm":
            x = x + n(1, self.attention(x, at))
            x = x + n(2, self.mlp(x, at))
        elif placement == "post_norm":
            x = n(1, x + self.attention(x, at))
            x = n(2, x + self.mlp(x, at))
        else:
            raise ValueError(placement)
        return x

    def embed(self, tokens):
        e = self.real(self.c["embedding_scale"]) * self.w["transformer.wte.weight"][tokens]
        for i in range(self.c["layers"][0]):
            e = self.block(e, f"transformer.prelude.{i}.")
        return e

    def logits(self, tokens, s_0, steps):
        e, s = self.embed(tokens), s_0.astype(self.real)
        for _ in range(steps):
            if self.c["injection"] == "concat":
                s = np.concatenate((s, e), axis=1) @ self.w["transformer.adapter.weight"].T
            elif self.c["injection"] == "add":
                s = s + e
            for i in range(self.c["layers"][1]):
                s = self.block(s, f"transformer.core_block.{i}.")
        x = self.norm(s, "transformer.ln_f.weight") if self.c["loop_norm"] == "after" else s
        for i in range(self.c["layers"][2]):
            x = self.block(x, f"transformer.coda.{i}.")
        x = self.norm(x, "transformer.ln_f.weight")  # the same weight a second time
        return x @ self.w["transformer.wte.weight" if self.c["tied_head"] else "lm_head.weight"].T


def write(folder):
    os.makedirs(folder, exist_ok=True)
    total = 0
    for number, description in enumerate(map(completed, CASES)):
        weights, tokens, s_0 = draw(description, SEED + number)
        reference = Reference(description, weights)
        if description["initial_state"] == "embedding":
            s_0 = reference.embed(tokens)
        tensors = {**weights, "tokens": tokens, "s_0": s_0}
        in_float = Reference(description, weights, np.float32)
        worst = 0.0
        for steps in STEPS:
            logits = reference.logits(tokens, s_0, steps)
            tensors[f"logits.r{steps}"] = logits
            worst = max(worst, np.abs(in_float.logits(tokens, s_0, steps) - logits).max() / np.abs(logits).max())
        path = os.path.join(folder, description["name"] + ".safetensors")
        save_file(tensors, path, metadata={"case": json.dumps(description, sort_keys=True)})
        os.chmod(path, 0o644)
        total += os.path.getsize(path)
        # A badly conditioned model would test roundings, not formulas.
        print(f"{description['name']:26} {os.path.getsize(path):6} bytes, float differs by {worst:.1e} of max|logit|")
    print(f"{len(CASES)} files, {total} bytes")


def check(folder):
    files = sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))
    wanted = sorted(completed(c)["name"] + ".safetensors" for c in CASES)
    if files != wanted:
        sys.exit(f"make_golden: {folder} holds {files}, expected are {wanted}")
    for name in files:
        with safe_open(os.path.join(folder, name), "numpy") as file:
            description = json.loads(file.metadata()["case"])
            tensors = {key: file.get_tensor(key) for key in file.keys()}
        reference = Reference(description, tensors)
        for steps in description["steps"]:
            kept = tensors[f"logits.r{steps}"]
            error = np.abs(reference.logits(tensors["tokens"], tensors["s_0"], steps) - kept).max() / np.abs(kept).max()
            # Another machine's exp, cos and order of sums move last bits; eight steps of two blocks multiply them.
            if not error <= 1e-13:
                sys.exit(f"make_golden: {name} at {steps} steps differs by {error:.1e} of max|logit|")
    print(f"{len(files)} files agree")


def command_line(description, write_all, check_all, folder):
    """The command line of a maker of golden files."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--folder", default=folder)
    arguments = parser.parse_args()
    (check_all if arguments.check else write_all)(arguments.folder)


if __name__ == "__main__":
    command_line(__doc__, write, check, FOLDER)
