"""Exports PyTorch's own operator samples as `.pt2` files, for `sinter check-files FOLDER`.

    python tests/conformance/export_samples.py FOLDER [--dtypes f32 f16 ...] [--samples 2] [--jobs 2] [--only REGEX]

FOLDER/index.json lists every file with its operator and dtype, and what could not be exported and why. Needs PyTorch
2.11 with numpy, scipy, expecttest, pytest and hypothesis (docs/conformance.md). The same versions write the same
programs with the same inputs.
"""

import argparse
import json
import multiprocessing
import pathlib
import re
import signal
import sys
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

DTYPES = {
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f64": torch.float64,
    "i64": torch.int64,
    "bool": torch.bool,
    "c64": torch.complex64,
}
LARGEST_INPUT = 256 * 1024  # bytes of one sample's tensors: larger samples say nothing that smaller ones do not
SECONDS = 60  # for one export
TRIES = 6  # samples of one operator and dtype that are tried before those that export are enough

# Results hold whatever was in memory: only their dtype, sizes and strides can be compared.
UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_",
                 "resize_as_"}


class Program(torch.nn.Module):
    """One sample as a program: its tensors are arguments, everything else is fixed. Results are a tuple of tensors and
    numbers."""

    def __init__(self, op, values, tree):
        super().__init__()
        self.op, self.values, self.tree = op, values, tree

    def forward(self, *tensors):
        left = iter(tensors)
        values = [next(left) if isinstance(value, torch.Tensor) else value for value in self.values]
        first, args, kwargs = pytree.tree_unflatten(values, self.tree)
        result = self.op(first, *args, **kwargs)
        return tuple(leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, (torch.Tensor, int, float, bool)))


class TooLong(Exception):
    pass


def stop(signum, frame):
    raise TooLong(f"took longer than {SECONDS} s")


def first_line(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200] if lines else ''}"


def programs(op, dtype):
    """The samples of an operator that are small and strided, the first and the last of them first."""
    torch.manual_seed(0)
    samples = []
    for sample in op.sample_inputs("cpu", dtype, requires_grad=False):
        values, tree = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        tensors = [value for value in values if isinstance(value, torch.Tensor)]
        if any(tensor.layout != torch.strided or tensor.is_quantized for tensor in tensors):
            continue
        if sum(tensor.numel() * tensor.element_size() for tensor in tensors) <= LARGEST_INPUT:
            samples.append((values, tree, tensors))
    spread = [samples[i] for i in range(0, len(samples), max(1, len(samples) // TRIES))]
    return [spread[0], spread[-1], *spread[1:-1]] if len(spread) > 1 else spread


def name_of(op):
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


def export_one(folder, op, label, wanted):
    """Files of one operator in one dtype, and the first reason why a sample gave none."""
    files, reason = [], None
    for number, (values, tree, tensors) in enumerate(programs(op, DTYPES[label])[:TRIES]):
        name = re.sub(r"[^A-Za-z0-9_.]", "_", f"{name_of(op)}.{label}.{number}.pt2")
        signal.alarm(SECONDS)
        try:
            with torch.no_grad():
                program = torch.export.export(Program(op.op, values, tree), tuple(tensors), strict=False)
            torch.export.save(program, folder / name)
        except Exception as error:  # whatever PyTorch says of a sample that it cannot export
            (folder / name).unlink(missing_ok=True)
            reason = reason or first_line(error)
            continue
        finally:
            signal.alarm(0)
        targets = sorted({str(node.target) for node in program.graph.nodes if node.op == "call_function"})
        files.append({"file": name, "op": name_of(op), "dtype": label, "calls": targets,
                      "uninitialised": op.name in UNINITIALISED})
        if len(files) == wanted:
            break
    return files, reason


def export_share(task):
    folder, position, labels, wanted = task
    signal.signal(signal.SIGALRM, stop)
    op = op_db[position]
    files, refused = [], []
    for label in labels:
        if DTYPES[label] not in op.supported_dtypes("cpu"):
            continue
        try:
            done, reason = export_one(folder, op, label, wanted)
        except Exception as error:  # a sample that cannot be made here
            done, reason = [], first_line(error)
        files += done
        if not done:
            refused.append({"op": name_of(op), "dtype": label, "reason": reason or "no small strided sample"})
    return files, refused


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=list(DTYPES))
    parser.add_argument("--samples", type=int, default=2, help="of one operator in one dtype")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="operators whose name holds this regular expression")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    tasks = [(options.folder, i, options.dtypes, options.samples) for i, op in enumerate(op_db)
             if re.search(options.only, name_of(op))]
    files, refused = [], []
    with multiprocessing.Pool(options.jobs, maxtasksperchild=40) as pool:
        for done, (new, not_done) in enumerate(pool.imap(export_share, tasks), 1):
            files += new
            refused += not_done
            if done % 20 == 0 or done == len(tasks):
                print(f"{done} of {len(tasks)} operators, {len(files)} files", file=sys.stderr, flush=True)
    index = {"pytorch": torch.__version__, "samples": options.samples, "files": files, "not_exported": refused}
    (options.folder / "index.json").write_text(json.dumps(index, indent=1))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    main()
