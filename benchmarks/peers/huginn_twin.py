"""A PyTorch twin of gyre's Huginn-like benchmark model, to be timed beside gyre on the same machine.

The model is the one of the train and decode benchmarks: hidden 256, 4 heads, mlp 896, layers (1, 2, 1), r 8, k 4,
vocabulary 4096, rows of 256 tokens, fp32, sandwich norms with weights, q/k bias, adjacent RoPE, concat adapter, tied head,
scaled embedding. Variants:

  plain    as a user first writes it: explicit softmax attention with a mask, RMSNorm by hand, AdamW with its defaults
  sdpa     scaled_dot_product_attention, torch's rms_norm, q and k rotated together, fused AdamW
  compile  torch.compile on top of sdpa

Every repeat prints one JSON line with tokens_per_second. With --wait a repeat starts when a line arrives on standard input,
so that a driver (compare.py) can alternate programs without paying for start-up and compilation again.
"""

import argparse
import json
import math
import time

import torch
import torch.nn.functional as F
from torch import nn

from twin_timing import time_it, timing_options

EPS = 1e-6
ROPE_BASE = 50000.0


def truncated_normal(shape, std):
    return nn.init.trunc_normal_(torch.empty(shape), std=std, a=-3 * std, b=3 * std)


class RMSNorm(nn.Module):
    def __init__(self, width, by_hand):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.by_hand = by_hand

    def forward(self, x):
        if self.by_hand:
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * self.weight
        return F.rms_norm(x, self.weight.shape, self.weight, EPS)


def rotate(x, cosine, sine):
    """Adjacent pairs; x (batch, tokens, heads, d), cosine and sine (tokens, 1, d / 2)."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), dim=-1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, config, out_std, in_std):
        super().__init__()
        self.heads, self.d, self.plain = config.heads, config.hidden // config.heads, config.plain
        self.Wqkv = nn.Linear(config.hidden, 3 * config.hidden, bias=False)
        self.proj = nn.Linear(config.hidden, config.hidden, bias=False)
        self.qk_bias = nn.Parameter(torch.zeros(2, 1, self.heads, self.d))
        self.Wqkv.weight.data = truncated_normal(self.Wqkv.weight.shape, in_std)
        self.proj.weight.data = truncated_normal(self.proj.weight.shape, out_std)

    def forward(self, x, cosine, sine, mask, cache):
        batch, tokens, width = x.shape
        if self.plain:
            q, k, v = self.Wqkv(x).view(batch, tokens, 3, self.heads, self.d).unbind(2)
            q = rotate(q + self.qk_bias[0], cosine, sine)
            k = rotate(k + self.qk_bias[1], cosine, sine)
        else:
            qkv = self.Wqkv(x)
            qk = qkv[..., : 2 * width].view(batch, tokens, 2 * self.heads, self.d) + self.qk_bias.view(2 * self.heads, self.d)
            q, k = rotate(qk, cosine, sine).split(self.heads, dim=2)
            v = qkv[..., 2 * width :].view(batch, tokens, self.heads, self.d)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))  # (batch, heads, tokens, d)
        if cache is not None:
            k, v = cache.append(k, v)
        if self.plain:
            scores = q @ k.transpose(-2, -1) / math.sqrt(self.d)
            if mask is not None:
                scores = scores.masked_fill(~mask, float("-inf"))
            y = scores.softmax(dim=-1) @ v
        elif cache is None:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.proj(y.transpose(1, 2).reshape(batch, tokens, width))


class MLP(nn.Module):
    def __init__(self, config, out_std, in_std):
        super().__init__()
        self.fc = nn.Linear(config.hidden, 2 * config.mlp, bias=False)
        self.proj = nn.Linear(config.mlp, config.hidden, bias=False)
        self.fc.weight.data = truncated_normal(self.fc.weight.shape, in_std)
        self.proj.weight.data = truncated_normal(self.proj.weight.shape, out_std)

    def forward(self, x):
        gate, up = self.fc(x).chunk(2, dim=-1)
        return self.proj(F.silu(gate) * up)


class Block(nn.Module):
    def __init__(self, config, out_std, in_std):
        super().__init__()
        self.norm_1, self.norm_2, self.norm_3, self.norm_4 = (RMSNorm(config.hidden, config.plain) for _ in range(4))
        self.attn = Attention(config, out_std, in_std)
        self.mlp = MLP(config, out_std, in_std)

    def forward(self, x, cosine, sine, mask, cache=None):
        x = self.norm_2(self.attn(self.norm_1(x), cosine, sine, mask, cache) + x)
        return self.norm_4(self.mlp(self.norm_3(x)) + x)


class Huginn(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        depth = config.prelude + config.mean_depth * config.core + config.coda
        in_std = math.sqrt(2 / (5 * config.hidden))
        out_std = math.sqrt(1 / (5 * config.hidden * depth))
        self.wte = nn.Embedding(config.vocab, config.hidden)
        self.wte.weight.data = truncated_normal(self.wte.weight.shape, in_std)
        self.prelude = nn.ModuleList(Block(config, out_std, in_std) for _ in range(config.prelude))
        self.adapter = nn.Linear(2 * config.hidden, config.hidden, bias=False)
        self.adapter.weight.data = truncated_normal(self.adapter.weight.shape, in_std)
        self.core_block = nn.ModuleList(Block(config, out_std, in_std) for _ in range(config.core))
        self.coda = nn.ModuleList(Block(config, out_std, in_std) for _ in range(config.coda))
        self.ln_f = RMSNorm(config.hidden, config.plain)
        d = config.hidden // config.heads
        rate = ROPE_BASE ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
        angle = torch.arange(config.context, dtype=torch.float64)[:, None, None] * rate
        self.register_buffer("cosine", angle.cos().float(), persistent=False)  # (context, 1, d / 2)
        self.register_buffer("sine", angle.sin().float(), persistent=False)
        mask = torch.ones(config.context, config.context, dtype=torch.bool).tril()
        self.register_buffer("causal", mask, persistent=False)

    def initial_state(self, batch, tokens):
        return truncated_normal((batch, tokens, self.config.hidden), math.sqrt(2 / 5))

    def step(self, s, e, cosine, sine, mask, caches=None):
        x = self.adapter(torch.cat((s, e), dim=-1))
        for layer, block in enumerate(self.core_block):
            x = block(x, cosine, sine, mask, caches[layer] if caches else None)
        return x

    def forward(self, tokens, s, steps, backprop):
        """Logits after `steps` steps, the last `backprop` of them with gradient. tokens (batch, n), s (batch, n, hidden)."""
        n = tokens.shape[1]
        cosine, sine, mask = self.cosine[:n], self.sine[:n], self.causal[:n, :n]
        e = self.wte(tokens) * math.sqrt(self.config.hidden)
        for block in self.prelude:
            e = block(e, cosine, sine, mask)
        with torch.no_grad():
            for _ in range(steps - backprop):
                s = self.step(s, e, cosine, sine, mask)
        for _ in range(min(backprop, steps)):
            s = self.step(s, e, cosine, sine, mask)
        x = self.ln_f(s)
        for block in self.coda:
            x = block(x, cosine, sine, mask)
        return F.linear(self.ln_f(x), self.wte.weight)

    def loss(self, tokens, targets, s, steps, backprop):
        logits = self(tokens, s, steps, backprop)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))

    def decode(self, tokens, s, position, caches, steps):
        """Greedy next token. tokens (1, n) begin at `position`, caches: one per executed layer."""
        first = slice(position.first, position.first + tokens.shape[1])
        cosine, sine, mask = self.cosine[first], self.sine[first], position.mask
        e = self.wte(tokens) * math.sqrt(self.config.hidden)
        slot = 0
        for block in self.prelude:
            e = block(e, cosine, sine, mask, caches[slot])
            slot += 1
        for _ in range(steps):
            s = self.step(s, e, cosine, sine, mask, caches[slot : slot + len(self.core_block)])
            slot += len(self.core_block)
        x = self.ln_f(s[:, -1:] if not self.coda else s)
        for block in self.coda:
            x = block(x, cosine, sine, mask, caches[slot])
            slot += 1
        return F.linear(self.ln_f(x[:, -1:]), self.wte.weight).argmax(-1)


class Position:
    """Where new tokens stand, and what they see."""

    def __init__(self, first, count):
        self.first = first
        # One query sees every key; a prompt starts at position 0, so its mask is square.
        self.mask = None if count == 1 else torch.ones(count, first + count, dtype=torch.bool).tril(first)


class Cache:
    def __init__(self, config):
        shape = (1, config.heads, config.context, config.hidden // config.heads)
        self.k, self.v, self.used = torch.zeros(shape), torch.zeros(shape), 0

    def append(self, k, v):
        end = self.used + k.shape[2]
        self.k[:, :, self.used : end], self.v[:, :, self.used : end] = k, v
        self.used = end
        return self.k[:, :, :end], self.v[:, :, :end]


def train_run(config, variant):
    """Returns a function that does one optimiser step and returns (tokens, loss)."""
    model = Huginn(config)
    fused = variant != "plain"
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-4, betas=(0.9, 0.95), weight_decay=0.01, fused=fused)
    loss_of = torch.compile(model.loss, dynamic=False) if variant == "compile" else model.loss
    text = torch.randint(config.vocab, (config.batch, config.context + 1))

    def step():
        state = model.initial_state(config.batch, config.context)
        loss = loss_of(text[:, :-1], text[:, 1:], state, config.steps, config.backprop)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return config.batch * config.context, loss.item()

    return step


def decode_run(config, variant):
    """Returns a function that answers one prompt and returns (new tokens, last token)."""
    model = Huginn(config).eval()
    slots = config.prelude + config.steps * config.core + config.coda
    prompt = torch.randint(config.vocab, (1, config.prompt))
    decode = torch.compile(model.decode, options=config.inductor) if variant == "compile" else model.decode

    @torch.inference_mode()
    def answer():
        caches = [Cache(config) for _ in range(slots)]
        tokens, first = prompt, 0
        started = None
        for _ in range(config.new + 1):
            state = model.initial_state(1, tokens.shape[1])
            now = decode(tokens, state, Position(first, tokens.shape[1]), caches, config.steps)
            first, tokens = first + tokens.shape[1], now
            started = started or time.perf_counter()  # the prompt's pass is not decoding
        return config.new, tokens.item(), time.perf_counter() - started

    return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=("train", "decode"))
    parser.add_argument("variant", choices=("plain", "sdpa", "compile"))
    timing_options(parser)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--mlp", type=int, default=896)
    parser.add_argument("--prelude", type=int, default=1)
    parser.add_argument("--core", type=int, default=2)
    parser.add_argument("--coda", type=int, default=1)
    parser.add_argument("--steps", type=int, default=8, help="r")
    parser.add_argument("--backprop", type=int, default=4, help="k")
    parser.add_argument("--mean-depth", type=int, default=8)
    parser.add_argument("--vocab", type=int, default=4096)
    parser.add_argument("--context", type=int, default=256)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--prompt", type=int, default=16, help="decode: tokens of the prompt, not timed")
    parser.add_argument("--new", type=int, default=128, help="decode: new tokens of one answer")
    parser.add_argument("--inductor", type=json.loads, default=None, 
                        help="decode: torch.compile's options, as JSON; {\"cpp_wrapper\": true} takes Python out of the step")
    config = parser.parse_args()
    if config.work == "decode" and config.prompt + config.new > config.context:
        parser.error("--prompt plus --new exceed --context")
    config.plain = config.variant == "plain"

    time_it(config, lambda: (train_run if config.work == "train" else decode_run)(config, config.variant))


if __name__ == "__main__":
    main()
