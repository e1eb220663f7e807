"""Golden files of depth-recurrent attention mixtures, by an independent straight-line reference in double precision.

  python3 tests/golden/make_mixtures.py            writes tests/golden/mixtures/*.safetensors
  python3 tests/golden/make_mixtures.py --check    recomputes the logits of the files that are there; fails if they differ

Needs numpy and safetensors. Each file is one small model with random weights, gains, selection biases and scales. The cases cover
the forms of a mixture and their norm placements, the options of depth attention, the sizes and encodings of routing, mixed
projections, a stack of mixtures in one step, and mixtures in prelude, core and coda. Tensors:

  transformer.wte.weight ... transformer.ln_f.weight    F32
  tokens (n)  I32        s_0 (n, h)  F64       sequences, steps  I32        and for every r of steps
  logits.r1 (n, V)  F64        chosen.r1 (m)  I32        auxiliary.r1 (1)  F64

s_0 is the state before the first step; with "initial_state": "embedding" it is e, kept for comparison. The tokens are those of
sequences of these lengths, one after the other. chosen: what every router that runs kept, one after the other as a pass meets
them (layer by layer, depth, sequence, experts), token by token, ascending in a token. auxiliary: the routers' losses, for every
router and depth alpha sum_e f_e P_e averaged over tokens, each with its sequence's, plus beta mean(logsumexp(x)^2).
__metadata__["case"] is the description, a JSON object: the fields of CASES below.

What the selections look like is printed: the smallest distance between a score kept and one left out, and how many selections
the bias changed.

The script says what attention_mixtures says in sections 1 to 5, one line a formula, loops and all; the frame around it (embedding,
injection, last norm, head, rotation by position) is that of make_golden.py. Nothing is shared with the library.
"""

import json
import math
import os
import sys

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

import make_golden

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mixtures")


def routing(count, active, d_r=8, encoding="split", base=10000.0, balance=0.0, z=0.0):
    return dict(count=count, active=active, d_r=d_r, encoding=encoding, base=base, balance=balance, z=z)


def attention(heads=4, kv_heads=2, d=8, maps=None, **changed):
    return dict(heads=heads, kv_heads=kv_heads, head_width=d, maps=maps or routing(1, 1), **changed)


def depth(heads=4, kv_heads=2, d=8, encoding="split", base=10000.0, exclusive=False, maps=None):
    return attention(heads, kv_heads, d, maps, encoding=encoding, base=base, exclusive=exclusive)


def experts(count, active, m=5, m_s=3, **changed):
    """m_s 0: no shared expert."""
    return dict(routing(count, active, **changed), m=m, m_s=m_s)


def case(name, seed, form, da, sa, ea, placement="branch_sandwich", state_norm=False, **changed):
    """A Dreamer: no prelude, no coda, no injection; h_0 is the embedding and there is one norm before the head."""
    return dict(name=name, seed=seed, form=form, placement=placement, state_norm=state_norm, depth=da, sequence=sa, experts=ea,
                **{**dict(vocab=11, width=12, layers=[0, 1, 0], sequences=[6], injection="none", initial_state="embedding",
                          embedding_scale=1.0, loop_norm="none", rope_base=10000.0, norm_eps=1e-6, pairing="adjacent",
                          tied_head=True, steps=[1, 3, 6], context=8), **changed})


# Of the seeds 1 to 12 each case has the one whose model is best conditioned among those with wide gaps and a bias that matters.
CASES = [
    case("sequential", 3, "sequential", depth(), attention(), experts(5, 2, balance=0.75, z=0.25), sequences=[5, 3]),
    case("parallel_3", 2, "parallel_3", depth(encoding="forward", exclusive=True), attention(),
         experts(5, 1, encoding="forward")),
    case("parallel_2", 4, "parallel_2", depth(encoding="none"), attention(kv_heads=1), experts(3, 3, encoding="none")),
    # Depth attention with heads of its own; widths where `forward` does not have four divide them; bases where more pairs turn.
    case("own_heads", 8, "sequential", depth(2, 1, 6, "forward", 100.0), attention(4, 1, 4),
         experts(5, 2, d_r=6, encoding="forward", base=100.0), placement="pre_norm"),
    case("state_norm", 7, "parallel_2", depth(2, 2, 8, "split", 100.0, exclusive=True), attention(),
         experts(5, 2, d_r=12, base=100.0), state_norm=True),
    case("mixed_two", 12, "sequential", depth(maps=routing(3, 1)), attention(maps=routing(3, 2)), experts(1, 1),
         placement="pre_norm", state_norm=True),
    case("mixed_one", 6, "parallel_3", depth(exclusive=True, maps=routing(3, 2, encoding="forward")),
         attention(maps=routing(3, 1, encoding="none")), experts(5, 1, m_s=0), placement="pre_norm"),
    case("mixed_both", 12, "parallel_2", depth(encoding="none", maps=routing(3, 2, base=100.0)), attention(maps=routing(3, 2)),
         experts(5, 2)),
    # The layered model: separate mixtures in one step. With three steps every layer reads its own earlier steps.
    case("layered", 4, "sequential", depth(2, 1), attention(2, 1), experts(5, 2), layers=[0, 3, 0], steps=[1, 3]),
    # As Huginn: outside the recurrence a mixture is at depth 0 of 1.
    case("huginn", 3, "sequential", depth(2, 1, 4), attention(2, 1, 4), experts(5, 2, m=4), layers=[1, 2, 1], injection="concat",
         initial_state="given", embedding_scale=math.sqrt(12.0), loop_norm="after"),
]


def norm_count(c):
    normed = c["placement"] == "branch_sandwich"
    return {"sequential": 6 if normed else 3, "parallel_3": 4 if normed else 1, "parallel_2": 5 if normed else 2}[c["form"]]


def shapes(c):
    """Names and shapes of all parameters."""
    h = c["width"]
    out = {"transformer.wte.weight": (c["vocab"], h)}

    def router(at, r):
        out[at + "query.weight"] = (r["d_r"], h)
        out[at + "keys"] = (r["count"], r["d_r"])
        out[at + "bias"] = (1, r["count"])

    def swiglu(at, m):
        out[at + "fc.weight"] = (2 * m, h)
        out[at + "proj.weight"] = (h, m)

    def projections(at, a):
        d, n, groups, copies = a["head_width"], a["heads"], a["kv_heads"], a["maps"]["count"]
        out[at + "q_norm.weight"] = (d,)
        out[at + "k_norm.weight"] = (d,)
        if copies > 1:
            router(at + "router.", a["maps"])
        for e in range(copies):
            copy = f"{e}." if copies > 1 else ""
            out[f"{at}Wqkv.{copy}weight"] = ((n + 2 * groups) * d, h)
            out[f"{at}proj.{copy}weight"] = (h, n * d)

    for section, count in zip(("prelude", "core_block", "coda"), c["layers"]):
        for i in range(count):
            at = f"transformer.{section}.{i}."
            for n in range(norm_count(c)):
                out[f"{at}norm_{n + 1}.weight"] = (h,)
            if c["state_norm"]:
                out[at + "state_norm.weight"] = (h,)
            projections(at + "depth_attn.", c["depth"])
            projections(at + "attn.", c["sequence"])
            r = c["experts"]
            if r["count"] > 1:
                router(at + "experts.router.", r)
            for e in range(r["count"]):
                swiglu(at + (f"experts.expert.{e}." if r["count"] > 1 else "experts.expert."), r["m"])
            if r["m_s"]:
                swiglu(at + "experts.shared.", r["m_s"])
                out[at + "experts.shared_scale"] = (1,)
    if c["injection"] == "concat":
        out["transformer.adapter.weight"] = (h, 2 * h)
    out["transformer.ln_f.weight"] = (h,)
    return out


def draw(c):
    random = np.random.default_rng(c["seed"])
    values = {}
    for name, shape in shapes(c).items():
        if "norm" in name or "ln_f" in name or "scale" in name:
            value = random.uniform(0.5, 1.5, shape)
        elif name.endswith("bias"):
            value = random.normal(0, 1, shape)
        elif name.endswith("keys"):
            value = random.normal(0, 1, shape)
        elif "wte" in name:
            value = random.normal(0, 1 / c["embedding_scale"], shape)
        elif "query" in name:  # logits of size 1
            value = random.normal(0, 1 / math.sqrt(shape[-1]), shape)
        else:
            value = random.normal(0, 0.7 / math.sqrt(shape[-1]), shape)
        values[name] = value.astype(np.float32).astype(np.float64)  # the same model in float and in double
    tokens = random.integers(0, c["vocab"], sum(c["sequences"])).astype(np.int32)
    s_0 = random.normal(0, 0.7, (len(tokens), c["width"])).astype(np.float32).astype(np.float64)
    return values, tokens, s_0


class Reference(make_golden.Reference):
    """The forward pass: norm, turn (by position) and logits' frame are make_golden's; a block is a mixture.

    A depth is a pair (l, D). `past` is what a layer's depth attention keeps of earlier depths: a list of (k, v) for all tokens.
    """

    def __init__(self, description, weights, real=np.float64):
        super().__init__(description, weights, real)
        self.gap, self.moved, self.selections = math.inf, 0, 0
        self.kept, self.auxiliary = {}, self.real(0)

    def rms(self, v, gain_name):
        return self.norm(v[None, :], gain_name)[0]

    def encode(self, v, kind, base, l, D):
        """RoSE of one vector. Adjacent pairs; split: the first half of the pairs turns by l, the second by D - 1 - l."""
        out, pairs = v.copy(), len(v) // 2
        for i in range(pairs):
            P = pairs // 2
            if kind == "none":
                angle = 0.0
            elif kind == "forward":
                angle = base ** (-i / pairs) * l
            else:
                angle = base ** (-i / P) * l if i < P else base ** (-(i - P) / P) * (D - 1 - l)
            cosine, sine = self.real(math.cos(angle)), self.real(math.sin(angle))
            out[2 * i] = v[2 * i] * cosine - v[2 * i + 1] * sine
            out[2 * i + 1] = v[2 * i] * sine + v[2 * i + 1] * cosine
        return out

    def choose(self, y, at, r, l, D):
        """Experts of one token and their gates: [(e, g_e)]. y (h) is the normed input."""
        if r["count"] == 1:
            return [(0, self.real(1))]
        q = self.encode(self.w[at + "query.weight"] @ y, r["encoding"], r["base"], l, D)
        x = self.w[at + "keys"] @ q / self.real(math.sqrt(r["d_r"]))
        scores = x + self.w[at + "bias"][0]
        best = sorted(range(r["count"]), key=lambda e: (-scores[e], e))  # ties go to the lower index
        kept = best[: r["active"]]
        self.kept.setdefault((at, l), []).extend(sorted(kept))
        self.selections += 1
        if r["active"] < r["count"]:
            self.gap = min(self.gap, float(scores[kept[-1]] - scores[best[r["active"]]]))
            self.moved += set(kept) != set(sorted(range(r["count"]), key=lambda e: (-x[e], e))[: r["active"]])
        sigmoid = 1 / (1 + np.exp(-x))
        self.seen.append((kept, x))
        if r["active"] == 1:
            return [(kept[0], sigmoid[kept[0]])]  # the normalised gate would be 1
        total = sum(sigmoid[e] for e in kept)
        return [(e, sigmoid[e] / total) for e in kept]

    def choices(self, y, at, r, l, D):
        """choose for all tokens of a sequence, and the router's losses over them."""
        self.seen = []
        chosen = [self.choose(token, at, r, l, D) for token in y]
        T, E = len(y), r["count"]
        if self.seen:
            count = [sum(e in kept for kept, _ in self.seen) for e in range(E)]
            share = [np.exp(x) / (1 + np.exp(x)) / sum(np.exp(x) / (1 + np.exp(x))) for _, x in self.seen]
            balance = sum(E / (r["active"] * T) * count[e] * np.mean([p[e] for p in share]) for e in range(E))
            z = np.mean([np.log(sum(np.exp(x))) ** 2 for _, x in self.seen])
            self.auxiliary += T * (r["balance"] * balance + r["z"] * z)  # of all tokens; the average follows in `run`
        return chosen

    def mapped(self, v, at, name, chosen, copies):
        """sum_e a_e W_e v"""
        return sum(a * (self.w[f"{at}{name}.{e}.weight" if copies > 1 else f"{at}{name}.weight"] @ v) for e, a in chosen)

    def attend(self, q, keys, values):
        """softmax(q . k / sqrt(d)) v over lists of keys and values; one head."""
        scores = np.array([q @ k for k in keys]) / self.real(math.sqrt(len(q)))
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        return sum(weight * v for weight, v in zip(weights, values))

    def projected(self, y, at, a, l, D, turn):
        """Of all tokens: choices, q (n, heads, d), k and v (n, groups, d); q and k normed, then turned by turn(v, token)."""
        d, heads, groups = a["head_width"], a["heads"], a["kv_heads"]
        choices, queries, keys, values = self.choices(y, at + "router.", a["maps"], l, D), [], [], []
        for i in range(len(y)):
            fused = self.mapped(y[i], at, "Wqkv", choices[i], a["maps"]["count"]).reshape(heads + 2 * groups, d)
            queries.append([turn(self.rms(q, at + "q_norm.weight"), i) for q in fused[:heads]])
            keys.append([turn(self.rms(k, at + "k_norm.weight"), i) for k in fused[heads : heads + groups]])
            values.append(fused[heads + groups :])
        return choices, queries, keys, values

    def sequence_attention(self, y, at, l, D):
        a = self.c["sequence"]
        choices, q, k, v = self.projected(y, at, a, l, D, self.turn)
        out = []
        for i in range(len(y)):
            o = []
            for j in range(a["heads"]):
                g = j // (a["heads"] // a["kv_heads"])
                o.append(self.attend(q[i][j], [k[t][g] for t in range(i + 1)], [v[t][g] for t in range(i + 1)]))
            out.append(self.mapped(np.concatenate(o), at, "proj", choices[i], a["maps"]["count"]))
        return np.array(out)

    def depth_attention(self, y, at, l, D, past):
        a = self.c["depth"]
        choices, q, k, v = self.projected(y, at, a, l, D, lambda x, token: self.encode(x, a["encoding"], a["base"], l, D))
        past.append((k, v))  # of depth l
        out = np.zeros_like(y)
        depths = range(l if a["exclusive"] else l + 1)
        if len(depths) == 0:
            return out
        for i in range(len(y)):
            o = []
            for j in range(a["heads"]):
                g = j // (a["heads"] // a["kv_heads"])
                o.append(self.attend(q[i][j], [past[t][0][i][g] for t in depths], [past[t][1][i][g] for t in depths]))
            out[i] = self.mapped(np.concatenate(o), at, "proj", choices[i], a["maps"]["count"])
        return out

    def swiglu(self, v, at):
        hidden = self.w[at + "fc.weight"] @ v
        gate, up = np.split(hidden, 2)
        return self.w[at + "proj.weight"] @ (gate / (1 + np.exp(-gate)) * up)

    def expert_attention(self, y, at, l, D):
        r, out = self.c["experts"], np.zeros_like(y)
        choices = self.choices(y, at + "router.", r, l, D)
        for i in range(len(y)):
            for e, g in choices[i]:
                out[i] += g * self.swiglu(y[i], at + (f"expert.{e}." if r["count"] > 1 else "expert."))
            if r["m_s"]:
                out[i] += self.w[at + "shared_scale"][0] * self.swiglu(y[i], at + "shared.")
        return out

    def mixture(self, h, at, l, D, past):
        def n(i, x):
            return self.norm(x, f"{at}norm_{i}.weight")

        def da(x):
            return self.depth_attention(x, at + "depth_attn.", l, D, past)

        def sa(x):
            return self.sequence_attention(x, at + "attn.", l, D)

        def ea(x):
            return self.expert_attention(x, at + "experts.", l, D)

        form = (self.c["form"], self.c["placement"])
        if form == ("sequential", "branch_sandwich"):
            a = h + n(2, da(n(1, h)))
            b = a + n(4, sa(n(3, a)))
            h = b + n(6, ea(n(5, b)))
        elif form == ("sequential", "pre_norm"):
            a = h + da(n(1, h))
            b = a + sa(n(2, a))
            h = b + ea(n(3, b))
        elif form == ("parallel_3", "branch_sandwich"):
            x = n(1, h)
            h = h + n(2, da(x)) + n(3, sa(x)) + n(4, ea(x))
        elif form == ("parallel_3", "pre_norm"):
            x = n(1, h)
            h = h + da(x) + sa(x) + ea(x)
        elif form == ("parallel_2", "branch_sandwich"):
            x = n(1, h)
            b = h + n(2, da(x)) + n(3, sa(x))
            h = b + n(5, ea(n(4, b)))
        elif form == ("parallel_2", "pre_norm"):
            x = n(1, h)
            b = h + da(x) + sa(x)
            h = b + ea(n(2, b))
        else:
            raise ValueError(form)
        return self.norm(h, at + "state_norm.weight") if self.c["state_norm"] else h

    def turn(self, head, position):
        """By position; the width is the head's own."""
        self.c["head_width"] = len(head)
        return super().turn(head, position)

    def embed(self, tokens):
        e = self.real(self.c["embedding_scale"]) * self.w["transformer.wte.weight"][tokens]
        for i in range(self.c["layers"][0]):
            e = self.mixture(e, f"transformer.prelude.{i}.", 0, 1, [])
        return e

    def logits(self, tokens, s_0, steps):
        e, s = self.embed(tokens), s_0.astype(self.real)
        past = [[] for _ in range(self.c["layers"][1])]  # one list a layer
        for l in range(steps):
            if self.c["injection"] == "concat":
                s = np.concatenate((s, e), axis=1) @ self.w["transformer.adapter.weight"].T
            for i in range(self.c["layers"][1]):
                s = self.mixture(s, f"transformer.core_block.{i}.", l, steps, past[i])
        x = self.norm(s, "transformer.ln_f.weight") if self.c["loop_norm"] == "after" else s
        for i in range(self.c["layers"][2]):
            x = self.mixture(x, f"transformer.coda.{i}.", 0, 1, [])
        return self.norm(x, "transformer.ln_f.weight") @ self.w["transformer.wte.weight"].T

    def run(self, tokens, s_0, steps):
        """Logits, choices and losses of all sequences."""
        self.kept, self.auxiliary, parts, at = {}, self.real(0), [], 0
        for count in self.c["sequences"]:
            parts.append(self.logits(tokens[at : at + count], s_0[at : at + count], steps))
            at += count
        chosen = np.array([e for kept in self.kept.values() for e in kept], np.int32)
        return np.concatenate(parts), chosen, np.array([self.auxiliary / len(tokens)], np.float64)

    def embedded(self, tokens):
        """e of all sequences."""
        ends = np.cumsum(self.c["sequences"])
        return np.concatenate([self.embed(tokens[end - count : end]) for count, end in zip(self.c["sequences"], ends)])


def results(c, weights, tokens, s_0, real=np.float64):
    """Per number of steps the tensors of a pass, and the reference that made them."""
    reference, tensors = Reference(dict(c), weights, real), {}
    for r in c["steps"]:
        tensors[f"logits.r{r}"], tensors[f"chosen.r{r}"], tensors[f"auxiliary.r{r}"] = reference.run(tokens, s_0, r)
    return tensors, reference


def difference(got, kept):
    """Largest error of the logits, relative to max|logit|; infinite if anything is chosen otherwise."""
    worst = 0.0
    for name, value in kept.items():
        if name.startswith("chosen"):
            worst = worst if np.array_equal(got[name], value) else math.inf  # another expert is no rounding
        elif np.abs(value).max() > 0:
            worst = max(worst, np.abs(got[name] - value).max() / np.abs(value).max())
    return worst


def write(folder):
    os.makedirs(folder, exist_ok=True)
    total = 0
    for c in CASES:
        weights, tokens, s_0 = draw(c)
        if c["initial_state"] == "embedding":
            s_0 = Reference(dict(c), weights).embedded(tokens)
        tensors, reference = results(c, weights, tokens, s_0)
        in_float = difference(results(c, weights, tokens, s_0, np.float32)[0], tensors)
        path = os.path.join(folder, c["name"] + ".safetensors")
        # Selections that a rounding could turn, and badly conditioned models, would test roundings, not formulas.
        print(f"{c['name']:12} gap {reference.gap:.1e}, the bias changed {reference.moved} of {reference.selections} selections, "
              f"float differs by {in_float:.1e} of max|logit|", end="")
        if not (reference.gap > 1e-3 and in_float < 5e-6 and (reference.gap == math.inf or reference.moved > 0)):
            sys.exit("\nmake_mixtures: choose another seed")
        described = {key: np.array(c[key], np.int32) for key in ("sequences", "steps")}
        stored = {name: value.astype(np.float32) for name, value in weights.items()}
        save_file({**stored, **described, "tokens": tokens, "s_0": s_0, **tensors}, path,
                  metadata={"case": json.dumps(c, sort_keys=True)})
        os.chmod(path, 0o644)
        total += os.path.getsize(path)
        print(f", {os.path.getsize(path)} bytes")
    print(f"{len(CASES)} files, {total} bytes")


def check(folder):
    files = sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))
    wanted = sorted(c["name"] + ".safetensors" for c in CASES)
    if files != wanted:
        sys.exit(f"make_mixtures: {folder} holds {files}, expected are {wanted}")
    for name in files:
        with safe_open(os.path.join(folder, name), "numpy") as file:
            c = json.loads(file.metadata()["case"])
            tensors = {key: file.get_tensor(key) for key in file.keys()}
        weights = {key: value for key, value in tensors.items() if key.startswith("transformer.")}
        got, _ = results(c, weights, tensors["tokens"], tensors["s_0"])
        error = difference(got, {key: tensors[key] for key in got})
        # Another machine's exp, cos and order of sums move last bits; six steps of three branches multiply them.
        if not error <= 1e-13:
            sys.exit(f"make_mixtures: {name} differs by {error:.1e} of max|logit|")
    print(f"{len(files)} files agree")


if __name__ == "__main__":
    make_golden.command_line(__doc__, write, check, FOLDER)
