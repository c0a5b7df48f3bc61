"""Starts the processes that are measured, each a fresh one, and joins what they say to rows.

A peer is a program of this folder (torch_compile.py, torchscript.py): its `main` runs cases from a command line, its
child processes measure. compare.py runs the same children beside Sinter's.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field


OF_MODEL = "-of-model"  # ends the name of a mode that compiles a model, not its training step


@dataclass
class Peer:
    name: str
    modes: list  # all that it knows
    default_modes: list
    caches: dict = field(default_factory=dict)  # environment variable to folder: where it keeps what it compiled
    script: str = ""


def run(command, seconds, environment=None):
    """Runs a program; False when it failed or took longer than `seconds`, when it and its children are ended."""
    if seconds <= 0:
        return False
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        return process.wait(timeout=seconds) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 9)
            process.wait()


def in_child(peer, case, folder, deadline=float("inf")):
    """What one child measured, {"row": ..., "environment": ...}; None when it failed. `folder` holds its caches."""
    with tempfile.TemporaryDirectory() as own:
        out = os.path.join(own, "row.json")
        command = [sys.executable, peer.script, "--child", json.dumps(case), "--json", out]
        caches = {key: os.path.join(folder, value) for key, value in peer.caches.items()}
        seconds = min(case["timeout"], deadline - time.monotonic())
        if not run(command, seconds, {**os.environ, **caches}) or not os.path.exists(out):
            return None
        with open(out) as file:
            return json.load(file)


def eager_starts(peer, case, starts, deadline=float("inf")):
    """Fields of a row that eager's own processes give; the first process fills the file cache and does not count.
    None when one failed."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(starts + 1):
            child = in_child(peer, {**case, "kind": "eager", "mode": "eager"}, folder, deadline)
            if child is None:
                return None
            rows.append(child["row"])
    colds = [row["eager_cold_s"] for row in rows[1:]]
    return {**rows[1], "eager_cold_s": statistics.median(colds), "starts": {"eager_cold_s": colds}}


def measure_peer(peer, case, eager, starts, deadline=float("inf"), prepared=None):
    """One row and its environment; None when a process failed. `eager`: what eager_starts gave. `prepared`: a folder of
    caches that another process has filled; then the first call is a warm start, and a cold one is not measured."""
    with tempfile.TemporaryDirectory() as empty:
        folder = prepared or empty
        child = in_child(peer, {**case, "kind": "compiled"}, folder, deadline)
        if child is None:
            return None
        row = child["row"]
        colds, warms = [row["cold_s"]], []
        if prepared:
            colds, warms = [], colds
        for _ in range(len(warms), starts):
            warm = in_child(peer, {**case, "kind": "start"}, folder, deadline)
            if warm:
                warms.append(warm["row"]["cold_s"])
        losses = in_child(peer, {**case, "kind": "losses"}, folder, deadline) if case["losses"] else None
        if losses:
            row |= losses["row"]
    row["cold_s"] = colds[0] if colds else None
    row["warm_s"] = statistics.median(warms) if warms else None
    row |= eager
    row["starts"] = eager["starts"] | {"cold_s": colds, "warm_s": warms}
    row |= {"peer": peer.name, "mode": f"{peer.name} {case['mode']}"}
    return {"row": row, "environment": child["environment"]}


def write(path, document):
    """Writes a result file whole or not at all."""
    text = json.dumps(document, indent=1, sort_keys=True)
    if path == "-":
        print(text)
        return
    with open(path + ".partial", "w") as file:
        file.write(text + "\n")
    os.replace(path + ".partial", path)


def line(row):
    cold = "     -" if row["cold_s"] is None else f"{row['cold_s']:6.2f}"
    return (
        f"{row['model']:<12} {row['shape']:<32} {row['mode']:<30} {row['eager_ms']:8.4g} ms eager "
        f"{row['steady_ms']:8.4g} ms  {row['speedup']:5.2f}x  cold {cold} s"
    )


def add_case_options(parser):
    """What a command line says of cases."""
    parser.add_argument("models", nargs="*", metavar="MODEL or MODEL:INPUT", help="resnet50 or resnet50:f16[8,3,224,224]")
    parser.add_argument("--input", action="append", default=[], help="an input of every named model; once for each")
    parser.add_argument("--set", action="append", default=[], help="a setting of the model, as of `sinter bench --set`")
    parser.add_argument("--dtype", default="", help="converts the model and its float inputs")
    parser.add_argument("--batch", type=int, default=0, help="replaces dim 0 of every input")
    parser.add_argument("--device", default="", choices=["", "cpu", "cuda"], help="a GPU if there is one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--freeze", action="store_true", help="weights are constants, as they are in files")
    parser.add_argument("--train", action="store_true", help="whole training steps")
    parser.add_argument("--amp", default="", choices=["", "f16", "bf16"], help="with --train: autocast of the forward pass")
    parser.add_argument("--optimizer", default="sgd", choices=["sgd", "adamw", "radam"], help="with --train")
    parser.add_argument("--losses", type=int, default=0, help="with --train: losses of so many steps, beside eager's")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds of timing per measure")
    parser.add_argument("--starts", type=int, default=3, help="fresh processes for a first call of eager and a warm one")
    parser.add_argument("--timeout", type=float, default=600, help="seconds that one process may take")
    parser.add_argument("--kernels", action="store_true", help="also the kernels of one call")


def cases_of(options, device):
    """The cases of a command line, without kind and mode."""
    import strangers

    if options.losses and not options.train:
        sys.exit("--losses compares training steps with eager's; add --train")
    for text in options.models:
        model, _, spec = text.partition(":")
        dtype = spec.partition("[")[0]
        yield {
            "model": model,
            "inputs": [spec] if spec else options.input,
            "dtype": options.dtype or (dtype if dtype in ("f32", "f16", "bf16", "f64") else ""),
            "batch": options.batch,
            "device": device,
            "seed": options.seed,
            "set": options.set,
            "freeze": options.freeze or strangers.is_stranger(model),  # files own their weights
            "train": options.optimizer if options.train else "",
            "amp": options.amp,
            "losses": options.losses,
            "budget": options.budget,
            "timeout": options.timeout,
            "kernels": options.kernels,
        }


def device_of(options):
    import torch

    return options.device or ("cuda" if torch.cuda.is_available() else "cpu")


def child_main(options, compile_module):
    """The process that is measured. `compile_module(case)` gives the function that measure_case takes."""
    import measure

    case = json.loads(options.child)
    row = measure.measure_case(case, compile_module(case))
    write(options.json, {"row": row, "environment": measure.environment(case["device"])})


def main(peer, description, compile_module):
    """A peer's program."""
    parser = argparse.ArgumentParser(description=description)
    add_case_options(parser)
    parser.add_argument("--mode", action="append", default=[], choices=peer.modes, help="once for each")
    parser.add_argument("--json", default="-", help="write rows to this file")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child_main(options, compile_module)
    from models import MODELS

    unknown = [text for text in options.models if text.partition(":")[0] not in MODELS]
    if unknown:
        sys.exit(f"model '{unknown[0]}' is unknown. Known: {', '.join(MODELS)}")
    document = {"peer": peer.name, "environment": {}, "rows": []}
    failed = 0
    for case in cases_of(options, device_of(options)):
        eager = eager_starts(peer, case, options.starts)
        for mode in options.mode or peer.default_modes:
            found = eager and measure_peer(peer, {**case, "mode": mode}, eager, options.starts)
            if not found:
                failed += 1
                print(f"{peer.name}: {case['model']} {mode}: the measuring process failed", file=sys.stderr)
                continue
            print(line(found["row"]), file=sys.stderr, flush=True)
            document["environment"] = found["environment"]
            document["rows"].append(found["row"])
            if options.json != "-":  # after every row: a run that is cut off keeps what it has
                write(options.json, document)
    if options.json == "-" or not document["rows"]:
        write(options.json, document)
    sys.exit(1 if failed else 0)
