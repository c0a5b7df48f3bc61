"""The cases of sinter_bandwidth under torch.compile, one row each: milliseconds back to back, and the share of what a
copy of the same dtype reaches in this process.

    python bench/peers/bandwidth.py --only "layer norm" --json bandwidth.json
"""

import argparse
import json
import statistics

import torch
import torch.nn.functional as F

ELEMENTS = 1 << 26
ROWS = (64, 256, 1024, 4096, 16384, 65536)
DTYPES = {"f32": torch.float32, "f16": torch.float16}


def drawn(sizes, dtype):
    return torch.randn(sizes, device="cuda", dtype=dtype)


def with_backward(run, count):
    """A step that gives the gradients of the first `count` inputs and the result; the last input is the result's
    gradient."""

    def step(*inputs):
        y = run(*inputs[:-1])
        grads = torch.autograd.grad([y], inputs[:count], [inputs[-1]], allow_unused=True)
        return [g for g in grads if g is not None] + [y.detach()]

    return step


def row_cases():
    functions = {
        "softmax": lambda x, w, b: torch.softmax(x, -1),
        "layer norm": lambda x, w, b: F.layer_norm(x, [x.size(-1)], w, b),
        "RMS norm": lambda x, w, b: F.rms_norm(x, [x.size(-1)], w, 1e-5),
        "softmax and layer norm": lambda x, w, b: F.layer_norm(torch.softmax(x, -1), [x.size(-1)], w, b),
    }
    for name, run in functions.items():
        for dtype_name, dtype in DTYPES.items():
            for columns in ROWS:
                size = dtype.itemsize * ELEMENTS

                def make(dtype=dtype, columns=columns):
                    return [drawn([ELEMENTS // columns, columns], dtype), drawn([columns], dtype), drawn([columns], dtype)]

                yield f"{name} {dtype_name} rows of {columns}", make, run, 2 * size, 0
                yield (
                    f"{name} forward and backward {dtype_name} rows of {columns}",
                    lambda make=make: (lambda made: [*made, torch.randn_like(made[0])])(make()),
                    run,
                    5 * size,
                    3,
                )


def reduction_cases():
    for name, dtype in DTYPES.items():
        def make(dtype=dtype):
            return [drawn([ELEMENTS // 8192, 8192], dtype)]

        size = dtype.itemsize * ELEMENTS
        yield f"sum to a scalar {name}", make, lambda x: x.sum(), size, 0
        yield f"sum of rows {name}", make, lambda x: x.sum(1), size, 0
        yield f"sum of columns {name}", make, lambda x: x.sum(0), size, 0


def movement_cases():
    half = torch.float16
    yield "transpose f16", lambda: [drawn([ELEMENTS // 8192, 8192], half)], lambda x: x.t().contiguous(), 4 * ELEMENTS, 0
    channels = ELEMENTS // (16 * 56 * 56 * 64) * 64

    def windows(x):
        rolled = torch.roll(x, (-3, -3), (1, 2)).view(16, 8, 7, 8, 7, channels)
        return rolled.permute(0, 1, 3, 2, 4, 5).reshape(16 * 64, 49, channels)

    yield (
        "window partition and roll f16",
        lambda: [drawn([16, 56, 56, channels], half)],
        windows,
        4 * 16 * 56 * 56 * channels,
        0,
    )


def image_cases():
    half = torch.float16
    for suffix, memory in (("", torch.contiguous_format), (" channels last", torch.channels_last)):
        def image(sizes, memory=memory):
            return drawn(sizes, half).contiguous(memory_format=memory)

        def count(*sizes):
            return 2 * torch.Size(sizes).numel()

        yield (
            f"max pool 3x3 f16{suffix}",
            lambda image=image: [image([128, 64, 112, 112])],
            lambda x: F.max_pool2d(x, 3, 2, 1),
            1.25 * count(128, 64, 112, 112),
            0,
        )
        yield (
            f"depthwise 7x7 f16{suffix}",
            lambda image=image: [image([32, 192, 56, 56]), drawn([192, 1, 7, 7], half), drawn([192], half)],
            lambda x, w, b: F.conv2d(x, w, b, 1, 3, 1, 192),
            2 * count(32, 192, 56, 56),
            0,
        )
        yield (
            f"group norm and SiLU f16{suffix}",
            lambda image=image: [image([16, 320, 64, 64]), drawn([320], half), drawn([320], half)],
            lambda x, w, b: F.silu(F.group_norm(x, 32, w, b)),
            2 * count(16, 320, 64, 64),
            0,
        )

        def norm_inputs(image=image):
            x = image([64, 256, 56, 56])
            floats = dict(device="cuda", dtype=torch.float32)
            weights = [torch.randn(256, **floats), torch.randn(256, **floats)]
            return [x, *weights, torch.zeros(256, **floats), torch.ones(256, **floats), torch.randn_like(x)]

        yield (
            f"batch norm forward and backward f16{suffix}",
            norm_inputs,
            lambda x, w, b, mean, var: F.batch_norm(x, mean, var, w, b, True, 0.1, 1e-5),
            8 * count(64, 256, 56, 56),
            3,
        )


def place_cases():
    half = torch.float16

    def places(sizes, end):
        return torch.randint(0, end, sizes, device="cuda")

    words, rows, images = ELEMENTS // 1024, ELEMENTS // 256, ELEMENTS // 4194304
    yield (
        "places: words and layer norm f16",
        lambda: [drawn([32768, 768], half), places([words], 32768), drawn([768], half), drawn([768], half)],
        lambda t, p, w, b: F.layer_norm(F.embedding(p, t), [768], w, b),
        words * (2 * 768 * 2 + 8),
        0,
    )
    yield (
        "places: rows of 128 f32",
        lambda: [drawn([rows, 128], torch.float32), places([rows], rows)],
        lambda x, p: x.index_select(0, p),
        rows * (4 * 128 * 2 + 8),
        0,
    )
    yield (
        "places: an element each f16",
        lambda: [drawn([rows // 32, 4096], half), places([rows // 32, 4096], 4096)],
        lambda x, p: x.gather(1, p),
        rows // 32 * 4096 * 12,
        0,
    )
    yield (
        "places: upper triangles f16",
        lambda: [drawn([images, 2048, 2048], half)],
        lambda x: torch.triu(x, 1),
        4 * ELEMENTS,
        0,
    )
    yield (
        "places: cross entropy forward and backward f32",
        lambda: [
            drawn([ELEMENTS // 32768, 32768], torch.float32),
            places([ELEMENTS // 32768], 32768),
            torch.ones([], device="cuda"),
        ],
        lambda x, t: F.cross_entropy(x, t),
        3 * 4 * ELEMENTS,
        1,
    )
    for suffix, memory in (("", torch.contiguous_format), (" channels last", torch.channels_last)):
        def image(memory=memory):
            return [drawn([images, 64, 64, 64], half).contiguous(memory_format=memory)]

        yield (
            f"places: bilinear with aligned corners f16{suffix}",
            image,
            lambda x: F.interpolate(x, [256, 256], mode="bilinear", align_corners=True),
            2 * images * 64 * (64 * 64 + 256 * 256),
            0,
        )
        yield (
            f"places: nearest by 1.5 f16{suffix}",
            image,
            lambda x: F.interpolate(x, [96, 96], mode="nearest"),
            2 * images * 64 * (64 * 64 + 96 * 96),
            0,
        )


def milliseconds(call, budget):
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    times = []
    spent = 0.0
    while spent < budget or len(times) < 5:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(5):
            call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 5)
        spent += times[-1] * 5e-3
    return statistics.median(times)


def copy_bandwidth(dtype, budget):
    source = drawn([ELEMENTS], dtype)
    target = torch.empty_like(source)
    return 2 * dtype.itemsize * ELEMENTS / (milliseconds(lambda: target.copy_(source), budget) * 1e-3)


def measured(case, copies, mode, budget):
    name, make, run, size, gradients = case
    torch._dynamo.reset()
    inputs = make()
    for tensor in inputs[:gradients]:
        tensor.requires_grad_(True)
    compiled = torch.compile(run, mode=mode, dynamic=False)
    call = with_backward(compiled, gradients) if gradients else compiled

    def once():
        torch.compiler.cudagraph_mark_step_begin()
        call(*inputs)

    with torch.set_grad_enabled(gradients > 0):
        ms = milliseconds(once, budget)
    copy = copies["f16" if "f16" in name else "f32"]
    percent = 100 * size / (ms * 1e-3) / copy
    return {"case": name, "mode": "torch.compile", "bytes": size, "ms": ms, "percent_of_copy": percent}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose names hold this")
    parser.add_argument("--mode", default=None, help="of torch.compile")
    parser.add_argument("--budget", type=float, default=0.05, help="seconds of timing a measure")
    parser.add_argument("--json", help="the result file")
    arguments = parser.parse_args()
    copies = {name: copy_bandwidth(dtype, arguments.budget) for name, dtype in DTYPES.items()}
    rows = []
    for cases in (row_cases(), reduction_cases(), movement_cases(), image_cases(), place_cases()):
        for case in cases:
            if arguments.only in case[0]:
                rows.append(measured(case, copies, arguments.mode, arguments.budget))
                print(f"{rows[-1]['case']:58} {rows[-1]['ms']:8.3f} ms  {rows[-1]['percent_of_copy']:5.1f} %", flush=True)
    if arguments.json:
        environment = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
        with open(arguments.json, "w") as file:
            json.dump({"environment": environment, "copy_bytes_per_s": copies, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
