"""How a twin is timed: repeats that print one JSON line each, started one by one where a driver asks for it."""

import json
import sys
import time

import torch


def measure(run, seconds):
    """Runs for at least `seconds`; a run may return its own time as third value. Returns a dictionary.

    best_tokens_per_second is that of the fastest single run: what the machine gives when nobody else uses it.
    """
    tokens, spent, runs, last, best = 0, 0.0, 0, 0.0, 0.0
    while spent < seconds:
        started = time.perf_counter()
        result = run()
        took = result[2] if len(result) > 2 else time.perf_counter() - started
        tokens, spent, runs, last, best = tokens + result[0], spent + took, runs + 1, result[1], max(best, result[0] / took)
    return {"tokens_per_second": tokens / spent, "best_tokens_per_second": best, "tokens": tokens, "seconds": spent,
            "runs": runs, "last": last}


def processor():
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        return names[0] if names else "unknown"
    except OSError:
        return "unknown"


def timing_options(parser):
    parser.add_argument("--seconds", type=float, default=5.0, help="shortest time of one repeat")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--warm-up", type=float, default=1.0, help="seconds before the first repeat, after compilation")
    parser.add_argument("--wait", action="store_true", help="start each repeat when a line arrives on standard input")
    parser.add_argument("--threads", type=int, default=2)


def time_it(config, make_run):
    """make_run() returns the function that measure() takes; config.work and config.variant name it."""
    torch.set_num_threads(config.threads)
    torch.manual_seed(1)
    started = time.perf_counter()
    run = make_run()
    run()
    first = time.perf_counter() - started
    if config.warm_up > 0:
        measure(run, config.warm_up)
    about = {"work": config.work, "variant": config.variant, "threads": config.threads, "torch": torch.__version__,
             "processor": processor(), "cpu_capability": torch.backends.cpu.get_cpu_capability()}
    if config.wait:
        print(json.dumps({"ready": True, "first_run_seconds": first, **about}), flush=True)
    for repeat in range(config.repeats):
        if config.wait and not sys.stdin.readline():
            break
        print(json.dumps({"repeat": repeat, **measure(run, config.seconds), **about}), flush=True)
