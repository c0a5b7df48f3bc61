"""The benchmark's rules for measuring, in Python: bench/measure and frontend/command/bench.cpp, step by step.

Inputs are rotated past the last-level cache, GPU times are CUDA events around groups of at least a millisecond, medians
over many groups after a warm-up. Rows have the fields of docs/benchmarking.md; null where a field does not apply.
"""

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import torch

import models

DTYPES = {
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f64": torch.float64,
    "i64": torch.int64,
    "i32": torch.int32,
}


def parse_input(text):
    """ "i64[1,128]<30000" as (dtype name, sizes, exclusive upper bound)."""
    match = re.fullmatch(r"(\w+)\[([\d,]*)\](?:<(\d+))?", text)
    if not match or match[1] not in DTYPES:
        sys.exit(f"input '{text}' is not one like f16[1,3,224,224] or i64[1,128]<30000")
    return match[1], [int(size) for size in match[2].split(",") if size], int(match[3] or 2)


def draw(spec, device):
    dtype, sizes, below = spec
    if DTYPES[dtype].is_floating_point:
        return torch.randn(sizes).to(device, DTYPES[dtype])
    return torch.randint(below, sizes).to(device, DTYPES[dtype])


def cache_bytes(device):
    if device == "cuda":
        return torch.cuda.get_device_properties(0).L2_cache_size
    try:
        found = os.sysconf("SC_LEVEL3_CACHE_SIZE")
    except (ValueError, OSError):
        found = 0
    return found if found > 0 else 32 << 20


def rotated_inputs(specs, device):
    first = [draw(spec, device) for spec in specs]
    size = sum(tensor.nbytes for tensor in first)
    sets = min(max(2 * cache_bytes(device) // max(size, 1) + 1, 1), 4096)
    return [first] + [[tensor.clone() for tensor in first] for _ in range(sets - 1)]


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def seconds_of(device, call):
    synchronize(device)
    start = time.perf_counter()
    call()
    synchronize(device)
    return time.perf_counter() - start


def summarise(samples):
    samples = sorted(samples)
    part = lambda share: samples[int(share * (len(samples) - 1))]
    return {"median": part(0.5), "q1": part(0.25), "q3": part(0.75), "samples": len(samples)}


def warm_up(device, call, seconds, least):
    """Calls until `seconds` have passed. Gives the seconds of one call."""
    start, done = time.perf_counter(), 0
    while done < least or time.perf_counter() - start < seconds:
        call(done)
        done += 1
        if done % 16 == 0:
            synchronize(device)
    synchronize(device)
    return (time.perf_counter() - start) / done


def latency(device, call, budget):
    one = warm_up(device, call, budget / 8, 2)
    count = int(min(max(budget / one, 5), 300))
    return summarise([1e3 * seconds_of(device, lambda: call(i)) for i in range(count)])


def steady(device, call, budget):
    """Milliseconds of one call, back to back."""
    one = warm_up(device, call, budget / 4, 3)
    if device != "cuda":
        return latency(device, call, budget)
    group = int(min(max(math.ceil(1e-3 / one), 1), 512))
    groups = int(min(max(budget / (one * group), 10), 200))
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    samples, following = [], 0
    for _ in range(groups):
        start.record()
        for _ in range(group):
            call(following)
            following += 1
        stop.record()
        stop.synchronize()
        samples.append(start.elapsed_time(stop) / group)
    return summarise(samples)


def unsynchronised(device, call):
    samples = []
    for i in range(20):
        start = time.perf_counter()
        call(i)
        samples.append(1e3 * (time.perf_counter() - start))
    synchronize(device)
    return statistics.median(samples)


def peak_bytes(device, call):
    """What the allocator handed out at most during a call, beyond what was in use. CUDA only."""
    if device != "cuda":
        return None
    synchronize(device)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    synchronize(device)
    return torch.cuda.max_memory_allocated() - before


def kernel_count(device, call):
    if device != "cuda":
        return None
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as trace:
        call()
        torch.cuda.synchronize()
    is_kernel = lambda event: event.device_type == torch.autograd.DeviceType.CUDA and not event.name.startswith("Mem")
    return sum(1 for event in trace.events() if is_kernel(event))


def error(result, reference):
    difference = (result.double() - reference).abs()
    return difference.max().item(), difference.square().mean().sqrt().item()


def settings_of(texts):
    return {name: float(value) for name, value in (text.split("=") for text in texts)}


def prepare(case, device):
    """Model and input sets of one case, with the benchmark's seed and flags."""
    torch.manual_seed(case["seed"])
    module = models.build(case["model"], settings_of(case["set"]))
    specs = [parse_input(text) for text in case["inputs"] or models.MODELS[case["model"]][1]]
    if case["dtype"]:
        specs = [(case["dtype"], *spec[1:]) if DTYPES[spec[0]].is_floating_point else spec for spec in specs]
    floats = [spec[0] for spec in specs if DTYPES[spec[0]].is_floating_point]
    dtype = floats[0] if floats else case["dtype"] or "f32"
    return module.to(device, DTYPES[dtype]), specs, dtype


def shape_of(specs):
    return ", ".join(f"{dtype}[{','.join(map(str, sizes))}]" for dtype, sizes, _ in specs)


@torch.no_grad()
def float64_result(module, inputs):
    import copy

    wide = [tensor.double() if tensor.is_floating_point() else tensor for tensor in inputs]
    return copy.deepcopy(module).double()(*wide)


@torch.no_grad()
def measure_case(case, compile_module):
    """One row, in this process. `compile_module(module, inputs)` gives what is measured."""
    device, budget = case["device"], case["budget"]
    module, specs, dtype = prepare(case, device)
    inputs = rotated_inputs(specs, device)
    made = {}

    def first_call():
        made["function"] = compile_module(module, inputs[0])
        made["function"](*inputs[0])

    # Compiled first, as in the benchmark: eager's first call is measured in a process of its own.
    cold_s = seconds_of(device, first_call)
    call = lambda i: made["function"](*inputs[i % len(inputs)])
    eager = lambda i: module(*inputs[i % len(inputs)])
    once = lambda function: lambda: function(0)
    second_s, third_s = seconds_of(device, once(call)), seconds_of(device, once(call))
    reference = float64_result(module, inputs[0])
    max_error, rms_error = error(call(0), reference)
    eager_max_error, eager_rms_error = error(eager(0), reference)
    peak, eager_peak = peak_bytes(device, once(call)), peak_bytes(device, once(eager))
    kernels, eager_kernels = kernel_count(device, once(call)), kernel_count(device, once(eager))
    eager_ms, steady_ms = steady(device, eager, budget), steady(device, call, budget)
    eager_latency, latency_ms = latency(device, eager, budget / 2), latency(device, call, budget / 2)
    gain, eager_s = eager_ms["median"] - steady_ms["median"], eager_ms["median"] / 1e3
    cost = (cold_s - case["eager_cold_s"]) + (second_s - eager_s) + (third_s - steady_ms["median"] / 1e3)
    return {
        "model": case["model"],
        "settings": case["set"],
        "device": "cuda:0" if device == "cuda" else "cpu",
        "dtype": dtype,
        "shape": shape_of(specs),
        "mode": case["mode"],
        "eager_ms": eager_ms["median"],
        "steady_ms": steady_ms["median"],
        "latency_ms": latency_ms["median"],
        "eager_latency_ms": eager_latency["median"],
        "unsynchronised_ms_wrong": unsynchronised(device, call),
        "speedup": eager_ms["median"] / steady_ms["median"],
        "cold_s": cold_s,
        "warm_s": None,
        "verify_s": None,
        "second_call_s": second_s,
        "first_replay_s": third_s,
        "eager_cold_s": case["eager_cold_s"],
        "phases": None,
        "peak_bytes": peak,
        "eager_peak_bytes": eager_peak,
        "kernels": kernels,
        "eager_kernels": eager_kernels,
        "max_error": max_error,
        "rms_error": rms_error,
        "eager_max_error": eager_max_error,
        "eager_rms_error": eager_rms_error,
        "breaks": None,
        "break_even_calls": math.ceil(max(0, cost) / (gain / 1e3)) if gain > 0 else None,
        "timing": {"eager": eager_ms, "steady": steady_ms},
        "kernel_trace": None,
        "report": None,
    }


@torch.no_grad()
def eager_cold(case):
    """The first call of eager in this process."""
    module, specs, _ = prepare(case, case["device"])
    inputs = [draw(spec, case["device"]) for spec in specs]
    return {"eager_cold_s": seconds_of(case["device"], lambda: module(*inputs))}


def cpu_name():
    try:
        with open("/proc/cpuinfo") as file:
            return next((line.split(": ", 1)[1].strip() for line in file if line.startswith("model name")), "")
    except OSError:
        return ""


def environment(device):
    info = {
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "tf32_matmul": torch.get_float32_matmul_precision() != "highest",
        "tf32_cudnn": torch.backends.cudnn.allow_tf32,
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "device": "cuda:0" if device == "cuda" else device,
        "cpu": cpu_name(),
    }
    if device == "cuda":
        info["gpu"] = torch.cuda.get_device_name()
        info["cudnn"] = torch.backends.cudnn.version()
        info["compute_capability"] = "%d.%d" % torch.cuda.get_device_capability()
    return info


def in_child(script, case, extra_environment):
    """Runs one case in a fresh process of the same script; None when it failed."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "row.json")
        command = [sys.executable, script, "--child", json.dumps(case), "--json", out]
        caches = {key: os.path.join(folder, value) for key, value in extra_environment.items()}
        try:
            done = subprocess.run(command, env={**os.environ, **caches}, timeout=case["timeout"])
        except subprocess.TimeoutExpired:
            return None
        if done.returncode != 0:
            return None
        with open(out) as file:
            return json.load(file)


def arguments(modes, description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("models", nargs="*", metavar="MODEL or MODEL:INPUT", help="resnet50 or resnet50:f16[8,3,224,224]")
    parser.add_argument("--input", action="append", default=[], help="an input of every named model; once for each")
    parser.add_argument("--set", action="append", default=[], help="a setting of the model, as of `sinter bench --set`")
    parser.add_argument("--dtype", default="", help="converts the model and its float inputs")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cpu", "cuda"])
    parser.add_argument("--mode", action="append", default=[], choices=modes, help="once for each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=float, default=1.0, help="seconds of timing per measure")
    parser.add_argument("--timeout", type=float, default=600, help="seconds that one row may take")
    parser.add_argument("--json", default="-", help="write rows to this file")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def cases_of(options, modes):
    for text in options.models:
        model, _, spec = text.partition(":")
        if model not in models.MODELS:
            sys.exit(f"model '{model}' is unknown. Known: {', '.join(models.MODELS)}")
        inputs = [spec] if spec else options.input
        dtype = options.dtype or (parse_input(spec)[0] if spec and DTYPES[parse_input(spec)[0]].is_floating_point else "")
        base = {"model": model, "inputs": inputs, "dtype": dtype, "device": options.device, "seed": options.seed}
        base |= {"set": options.set, "budget": options.budget, "timeout": options.timeout}
        yield base, [{**base, "mode": mode} for mode in modes]


def write(path, document):
    text = json.dumps(document, indent=1, sort_keys=True)
    if path == "-":
        print(text)
        return
    with open(path, "w") as file:
        file.write(text + "\n")


def line(row):
    return (
        f"{row['model']:<12} {row['shape']:<22} {row['mode']:<30} {row['eager_ms']:8.4g} ms eager "
        f"{row['steady_ms']:8.4g} ms  {row['speedup']:5.2f}x  cold {row['cold_s']:.2f} s"
    )


def main(peer, description, modes, default_modes, compile_module, caches, extra_fields=lambda row: {}):
    """A peer's program. `compile_module(mode)` gives the function that measure_case takes."""
    options = arguments(modes, description)
    if options.child:
        case = json.loads(options.child)
        result = eager_cold(case) if case["mode"] == "eager" else measure_case(case, compile_module(case["mode"]))
        return write(options.json, result)
    rows, failed = [], 0
    document = {"peer": peer, "environment": environment(options.device), "rows": rows}
    for base, cases in cases_of(options, options.mode or default_modes):
        cold = in_child(sys.argv[0], {**base, "mode": "eager"}, caches)
        for case in cases:
            row = in_child(sys.argv[0], {**case, **cold}, caches) if cold else None
            if row is None:
                failed += 1
                print(f"{peer}: {case['model']} {case['mode']}: the measuring process failed", file=sys.stderr)
                continue
            row |= {"peer": peer, "mode": f"{peer} {case['mode']}".strip()} | extra_fields(row)
            print(line(row), file=sys.stderr, flush=True)
            rows.append(row)
            if options.json != "-":  # after every row: a run that is cut off keeps what it has
                write(options.json, document)
    if options.json == "-" or not rows:
        write(options.json, document)
    sys.exit(1 if failed else 0)
