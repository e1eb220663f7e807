"""A PyTorch twin of gyre's benchmark of a depth-recurrent attention mixture, to be timed beside gyre on the same machine.

The model is the one of benchmark_mixture_step: width 256, depth 8, 4 query heads of 64 and one key/value head in sequence and
depth attention, 64 experts of width 256 of which 4 are active, one shared expert of width 256, router width 64, plain
projections, branch_sandwich norms, q/k norm, vocabulary 4096, rows of 256 tokens, fp32, tied head. Variants:

  sdpa     scaled_dot_product_attention, torch's rms_norm, tokens sorted by expert and each expert run on its own slice, fused
           AdamW
  compile  torch.compile on top, with the experts' loop left out of the graph (its sizes change from step to step)

Output as huginn_twin.py's.
"""

import argparse
import math

import torch
import torch.nn.functional as F
from torch import nn

from twin_timing import time_it, timing_options

EPS = 1e-6
ROPE_BASE = DEPTH_BASE = 10000.0


def matrix(out, inner):
    return nn.Parameter(torch.randn(out, inner) / math.sqrt(inner))


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, EPS)


def rotate(x, cosine, sine):
    """Adjacent pairs; cosine and sine broadcast against (…, d / 2)."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), dim=-1).flatten(-2)


def depth_angles(width, step, steps):
    pairs = width // 4
    theta = DEPTH_BASE ** (-torch.arange(pairs) / pairs)
    angles = torch.cat((theta * step, theta * (steps - 1 - step)))
    return angles.cos(), angles.sin()


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads, self.kv_heads, self.d = config.heads, config.kv_heads, config.head_width
        self.Wqkv = matrix((self.heads + 2 * self.kv_heads) * self.d, config.hidden)
        self.proj = matrix(config.hidden, self.heads * self.d)
        self.q_norm, self.k_norm = RMSNorm(self.d), RMSNorm(self.d)

    def qkv(self, x):
        q, k, v = F.linear(x, self.Wqkv).view(*x.shape[:-1], -1, self.d).split((self.heads, self.kv_heads, self.kv_heads), -2)
        return self.q_norm(q), self.k_norm(k), v


class SequenceAttention(Attention):
    def forward(self, x, rope):
        q, k, v = self.qkv(x)
        q, k, v = (t.transpose(1, 2) for t in (rotate(q, *rope), rotate(k, *rope), v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return F.linear(y.transpose(1, 2).flatten(-2), self.proj)


class DepthAttention(Attention):
    def forward(self, x, angles, keys, values):
        """keys and values: lists of what the steps so far wrote, (tokens, kv_heads, d) each; this step's are added."""
        q, k, v = self.qkv(x.flatten(0, 1))
        keys.append(rotate(k, *angles)), values.append(v)
        # Every token is a sequence of its own, as long as there are steps; one query sees all of them.
        q = rotate(q, *angles).unsqueeze(2)
        k, v = torch.stack(keys, 2), torch.stack(values, 2)
        y = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        return F.linear(y.flatten(1), self.proj).view(x.shape)


class Experts(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.active, width, m = config.active, config.hidden, config.expert_width
        self.query, self.keys = matrix(config.router_width, width), nn.Parameter(torch.randn(config.experts, config.router_width))
        self.register_buffer("bias", torch.zeros(config.experts))
        self.fc = nn.ParameterList(matrix(2 * m, width) for _ in range(config.experts))
        self.proj = nn.ParameterList(matrix(width, m) for _ in range(config.experts))
        self.shared_fc, self.shared_proj = matrix(2 * m, width), matrix(width, m)
        self.scale = nn.Parameter(torch.ones(1))

    @staticmethod
    def mlp(x, fc, proj):
        gate, up = F.linear(x, fc).chunk(2, -1)
        return F.linear(F.silu(gate) * up, proj)

    def route(self, x, angles):
        scores = F.linear(rotate(F.linear(x, self.query), *angles), self.keys) / math.sqrt(self.query.shape[0])
        chosen = (scores + self.bias).topk(self.active, -1).indices
        gates = F.logsigmoid(scores.gather(-1, chosen)).softmax(-1)
        return chosen, gates

    @torch.compiler.disable
    def mix(self, x, chosen, gates):
        order = chosen.flatten().argsort(stable=True)
        rows = order // self.active
        counts = chosen.flatten().bincount(minlength=len(self.fc)).tolist()
        results = [self.mlp(part, fc, proj) for part, fc, proj in zip(x[rows].split(counts), self.fc, self.proj) if len(part)]
        return torch.zeros_like(x).index_add(0, rows, torch.cat(results) * gates.flatten()[order].unsqueeze(-1))

    def forward(self, x, angles):
        flat = x.flatten(0, 1)
        chosen, gates = self.route(flat, angles)
        y = self.mix(flat, chosen, gates) + self.scale * self.mlp(flat, self.shared_fc, self.shared_proj)
        return y.view(x.shape)


class Mixture(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.wte = nn.Parameter(0.02 * torch.randn(config.vocab, config.hidden))
        self.depth, self.sequence, self.experts = DepthAttention(config), SequenceAttention(config), Experts(config)
        self.before = nn.ModuleList(RMSNorm(config.hidden) for _ in range(3))
        self.after = nn.ModuleList(RMSNorm(config.hidden) for _ in range(3))
        self.norm = RMSNorm(config.hidden)
        d = config.head_width
        angles = torch.arange(config.context)[:, None] * ROPE_BASE ** (-torch.arange(0, d, 2) / d)
        self.register_buffer("cosine", angles.cos()[:, None]), self.register_buffer("sine", angles.sin()[:, None])
        for step in range(config.steps):
            for name, width in (("head", d), ("router", config.router_width)):
                for what, table in zip(("cosine", "sine"), depth_angles(width, step, config.steps)):
                    self.register_buffer(f"{name}_{what}_{step}", table)

    def turns(self, name, step):
        return getattr(self, f"{name}_cosine_{step}"), getattr(self, f"{name}_sine_{step}")

    def loss(self, tokens, targets):
        h, keys, values = F.embedding(tokens, self.wte), [], []
        for step in range(self.config.steps):
            h = h + self.after[0](self.depth(self.before[0](h), self.turns("head", step), keys, values))
            h = h + self.after[1](self.sequence(self.before[1](h), (self.cosine, self.sine)))
            h = h + self.after[2](self.experts(self.before[2](h), self.turns("router", step)))
        logits = F.linear(self.norm(h), self.wte)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def train_run(config):
    """Returns a function that does one optimiser step and returns (tokens, loss)."""
    model = Mixture(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.01, fused=True)
    loss_of = torch.compile(model.loss, dynamic=False) if config.variant == "compile" else model.loss
    text = torch.randint(config.vocab, (config.batch, config.context + 1))

    def step():
        loss = loss_of(text[:, :-1].contiguous(), text[:, 1:].contiguous())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return config.batch * config.context, loss.item()

    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=("mixture",))
    parser.add_argument("variant", choices=("sdpa", "compile"))
    timing_options(parser)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--kv-heads", type=int, default=1)
    parser.add_argument("--head-width", type=int, default=64)
    parser.add_argument("--experts", type=int, default=64)
    parser.add_argument("--active", type=int, default=4)
    parser.add_argument("--expert-width", type=int, default=256)
    parser.add_argument("--router-width", type=int, default=64)
    parser.add_argument("--steps", type=int, default=8, help="depth")
    parser.add_argument("--vocab", type=int, default=4096)
    parser.add_argument("--context", type=int, default=256)
    parser.add_argument("--batch", type=int, default=8)
    config = parser.parse_args()
    time_it(config, lambda: train_run(config))


if __name__ == "__main__":
    main()
