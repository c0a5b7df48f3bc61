"""The benchmark's rules for measuring, in Python: bench/measure and frontend/command/bench_child.cpp, step by step.

Inputs are rotated past the last-level cache, GPU times are CUDA events around groups of at least a millisecond, medians
over many groups after a warm-up. Rows have the fields of docs/benchmarking.md; null where a field does not apply.
Everything here runs in the process that is measured; processes.py starts those.
"""

import copy
import math
import os
import re
import statistics
import sys
import time

import torch
from torch.nn import functional as F

import models
from processes import OF_MODEL

FIRST_CALLS = 9  # that are timed one by one, as in the benchmark
BATCHES = 4  # that steps whose losses are compared see in turn: frontend/command/training_losses.cpp

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


def rotated_inputs(first, device):
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
    group = int(min(max(math.ceil(1e-3 / one), 8), 512))
    groups = int(min(max(budget / (one * group), 5), 200))
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


class MemoryMeter:
    """What this process takes of the device, from here on: make it before anything touches the device."""

    def __init__(self, device):
        self.device = device
        self.before = self.taken()

    def taken(self):
        if self.device != "cuda":
            with open("/proc/self/status") as status:
                return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM:"))
        free, total = torch.cuda.mem_get_info()
        return total - free

    def read(self):
        synchronize(self.device)
        row = {"device_bytes": max(0, self.taken() - self.before), "allocated_bytes": None, "reserved_bytes": None}
        if self.device == "cuda":
            row["allocated_bytes"] = torch.cuda.max_memory_allocated()
            row["reserved_bytes"] = torch.cuda.max_memory_reserved()
        return row


def kernel_table(device, call):
    """The kernels, copies and fills of one call, those of one name as one row; None on a CPU."""
    if device != "cuda":
        return None
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as trace:
        call()
        torch.cuda.synchronize()
    rows = {}
    for event in trace.events():
        annotation = getattr(event, "is_user_annotation", False) or event.name.startswith(("##", "Torch-Compiled"))
        if event.device_type != torch.autograd.DeviceType.CUDA or annotation:
            continue
        row = rows.setdefault(event.name, {"name": event.name, "count": 0, "us": 0.0})
        row["count"] += 1
        row["us"] += event.time_range.elapsed_us()
    return sorted(rows.values(), key=lambda row: -row["us"])


def kernel_count(table):
    if table is None:
        return None
    return sum(row["count"] for row in table if not row["name"].startswith("Mem"))


def error(result, reference):
    difference = (result.double() - reference).abs()
    return difference.max().item(), difference.square().mean().sqrt().item()


def settings_of(texts):
    return {name: float(value) for name, value in (text.split("=") for text in texts)}


class Subject:
    """Model (or training step) and inputs of one case, with the benchmark's seed and flags."""

    def __init__(self, case):
        device = case["device"]
        torch.manual_seed(case["seed"])
        self.module = models.build(case["model"], settings_of(case["set"]))
        specs = [parse_input(text) for text in case["inputs"] or models.inputs_of(case["model"])]
        if case["batch"]:
            specs = [(dtype, [case["batch"], *sizes[1:]], below) for dtype, sizes, below in specs]
        if case["dtype"]:
            specs = [(case["dtype"], *spec[1:]) if DTYPES[spec[0]].is_floating_point else spec for spec in specs]
        floats = [spec[0] for spec in specs if DTYPES[spec[0]].is_floating_point]
        self.dtype = floats[0] if floats else case["dtype"] or "f32"
        self.module.to(device, DTYPES[self.dtype])
        self.call = self.module
        if case["train"]:
            classes, dims = models.MODELS[case["model"]][2]
            specs.append(("i64", specs[0][1][:dims], classes))
            self.call = training_step(self.module.train(), self.module, case)
        self.specs = specs


def training_step(module, forward, case):
    """Forward (under autocast), cross entropy, backward, optimizer: frontend/command/training_target.cpp. `forward` is
    the module, or what was compiled of it."""
    parameters = list(module.parameters())
    if case["train"] == "adamw":
        optimizer = torch.optim.AdamW(parameters, lr=1e-3)
    elif case["train"] == "radam":
        optimizer = torch.optim.RAdam(parameters, lr=1e-3)
    else:
        optimizer = torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, weight_decay=1e-4)
    dtype = DTYPES[case["amp"]] if case["amp"] else None

    def step(*inputs):
        *images, labels = inputs
        optimizer.zero_grad()
        with torch.autocast(case["device"], dtype=dtype, enabled=dtype is not None):
            loss = F.cross_entropy(forward(*images).flatten(0, -2), labels.flatten())
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def compiled(case, subject, compile_module, inputs):
    """What is measured: the whole call or, in a mode whose name ends so, the model within a step that is not compiled."""
    if case["train"] and case["mode"].endswith(OF_MODEL):
        return training_step(subject.module, compile_module(subject.module, inputs[:-1]), case)
    return compile_module(subject.call, inputs)


def shape_of(specs):
    return ", ".join(f"{dtype}[{','.join(map(str, sizes))}]" for dtype, sizes, _ in specs)


def float64_result(module, inputs):
    wide = [tensor.double() if tensor.is_floating_point() else tensor for tensor in inputs]
    return copy.deepcopy(module).double()(*wide)


def errors_of(case, subject, call, inputs):
    if case["train"]:  # every call steps: there is nothing to compare one result with
        return dict.fromkeys(["max_error", "rms_error", "eager_max_error", "eager_rms_error"])
    reference = float64_result(subject.module, inputs)
    max_error, rms_error = error(call(0), reference)
    eager_max_error, eager_rms_error = error(subject.call(*inputs), reference)
    return {
        "max_error": max_error,
        "rms_error": rms_error,
        "eager_max_error": eager_max_error,
        "eager_rms_error": eager_rms_error,
    }


def options_of(case):
    """What belongs to a row only where it says something."""
    said = {"freeze": case["freeze"], "train": case["train"], "amp": case["amp"]}
    return {name: value for name, value in said.items() if value}


def compiled_row(case, compile_module):
    """One row, in this process. `compile_module(function, inputs)` gives what is measured."""
    device, budget = case["device"], case["budget"]
    memory = MemoryMeter(device)
    subject = Subject(case)
    first = [draw(spec, device) for spec in subject.specs]
    made = {}

    def first_call():
        made["function"] = compiled(case, subject, compile_module, first)
        made["function"](*first)

    first_calls = [seconds_of(device, first_call)]
    while len(first_calls) < FIRST_CALLS:
        first_calls.append(seconds_of(device, lambda: made["function"](*first)))
    used = memory.read()
    inputs = rotated_inputs(first, device)
    call = lambda i: made["function"](*inputs[i % len(inputs)])
    eager = lambda i: subject.call(*inputs[i % len(inputs)])
    errors = errors_of(case, subject, call, inputs[0])
    eager(0)
    kernels, eager_kernels = kernel_table(device, lambda: call(0)), kernel_table(device, lambda: eager(0))
    eager_ms, steady_ms = steady(device, eager, budget), steady(device, call, budget)
    eager_latency, latency_ms = latency(device, eager, budget / 2), latency(device, call, budget / 2)
    tables = {"kernel_table": kernels, "eager_kernel_table": eager_kernels} if case["kernels"] else {}
    return used | errors | tables | options_of(case) | {
        "model": case["model"],
        "settings": case["set"],
        "device": "cuda:0" if device == "cuda" else "cpu",
        "dtype": subject.dtype,
        "shape": shape_of(subject.specs),
        "mode": case["mode"],
        "eager_ms": eager_ms["median"],
        "steady_ms": steady_ms["median"],
        "latency_ms": latency_ms["median"],
        "eager_latency_ms": eager_latency["median"],
        "unsynchronised_ms_wrong": unsynchronised(device, call),
        "speedup": eager_ms["median"] / steady_ms["median"],
        "cold_s": first_calls[0],
        "first_calls_s": first_calls,
        "phases": None,
        "kernels": kernel_count(kernels),
        "eager_kernels": kernel_count(eager_kernels),
        "breaks": None,
        "timing": {"eager": eager_ms, "steady": steady_ms},
        "kernel_trace": None,
        "report": None,
    }


def eager_alone(case):
    """Eager's first calls in this process, and the memory they take."""
    memory = MemoryMeter(case["device"])
    subject = Subject(case)
    first = [draw(spec, case["device"]) for spec in subject.specs]
    seconds = [seconds_of(case["device"], lambda: subject.call(*first)) for _ in range(FIRST_CALLS)]
    return {"eager_cold_s": seconds[0], "eager_first_calls_s": seconds} | {
        "eager_" + name: value for name, value in memory.read().items()
    }


def start(case, compile_module):
    """The first call of what is measured, in this process."""
    subject = Subject(case)
    first = [draw(spec, case["device"]) for spec in subject.specs]
    return {"cold_s": seconds_of(case["device"], lambda: compiled(case, subject, compile_module, first)(*first))}


def losses_of(case, compile_module):
    """The loss of every step, on a few batches in turn, from the start that the case's seed gives."""
    subject = Subject(case)
    batches = [[draw(spec, case["device"]) for spec in subject.specs] for _ in range(BATCHES)]
    step = compiled(case, subject, compile_module, batches[0])
    torch.manual_seed(case["seed"])
    return [step(*batches[i % BATCHES]).item() for i in range(case["losses"])]


def losses_over_steps(case, compile_module):
    """Python's eager and what is measured, step beside step. Null where a loss is no finite number."""
    eager = losses_of(case, lambda function, inputs: function)
    compiled = losses_of(case, compile_module)
    differences = [0.0 if a == b else abs(a - b) / abs(b) if b else math.inf for a, b in zip(compiled, eager)]
    finite = lambda value: value if math.isfinite(value) else None
    return {
        "steps": len(eager),
        "first": finite(compiled[0]),
        "last": finite(compiled[-1]),
        "eager_last": finite(eager[-1]),
        "largest_difference": max(differences) if all(map(math.isfinite, differences)) else None,
    }


def measure_case(case, compile_module):
    """What the case's kind asks for, in this process."""
    with torch.set_grad_enabled(bool(case["train"])):
        if case["kind"] == "eager":
            return eager_alone(case)
        if case["kind"] == "start":
            return start(case, compile_module)
        if case["kind"] == "losses":
            return {"losses": losses_over_steps(case, compile_module)}
        return compiled_row(case, compile_module)


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
