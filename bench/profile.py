"""Profiles one call of a model compiled by Sinter with Nsight Compute and prints what its kernels moved and computed.

    python3 bench/profile.py --out vgg16.csv -- sinter run vgg16 --dtype f16 --device cuda
    python3 bench/profile.py --read vgg16.csv

What stands behind -- is run under `ncu` with SINTER_NVTX=1; kernels outside of the compiled function's range (eager's
first call, checks) are left out, so that exactly the replayed calls are measured. Clocks are left as they are.
"""

import argparse
import csv
import os
import subprocess
import sys
from collections import defaultdict

METRICS = {
    "gpu__time_duration.sum": "ns",
    "dram__bytes_read.sum": "read",
    "dram__bytes_write.sum": "written",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "dram",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "sm",
}


def profile(command, model, out, ncu):
    """Runs `command` under ncu and writes one CSV row for each kernel to `out`."""
    arguments = [ncu, "--target-processes", "all", "--nvtx", "--nvtx-include", f"sinter@{model}/"]
    arguments += ["--clock-control", "none", "--metrics", ",".join(METRICS)]
    arguments += ["--print-units", "base", "--page", "raw", "--csv", "--log-file", out]
    environment = dict(os.environ, SINTER_NVTX="1")
    return subprocess.run(arguments + command, env=environment, check=False).returncode


def number(text):
    return float(text.replace(",", "")) if text else 0.0


def read(path):
    """The kernels of a CSV file that `profile` wrote: dicts with `name` and one entry for each metric."""
    with open(path, newline="", encoding="utf-8", errors="replace") as file:
        lines = [line for line in file if line.startswith('"')]
    kernels = []
    for row in csv.DictReader(lines):
        if not row["ID"]:  # the row of units
            continue
        kernels.append({"name": row["Kernel Name"], **{short: number(row[name]) for name, short in METRICS.items()}})
    return kernels


def short_name(name, width=56):
    plain = name.removeprefix("void ").replace("(anonymous namespace)::", "").split("(")[0]
    return plain if len(plain) <= width else plain[: width - 3] + "..."


def table(kernels):
    """Kernels of equal names summed up, those that take most time first; percentages weighted by time."""
    groups = defaultdict(list)
    for kernel in kernels:
        groups[kernel["name"]].append(kernel)
    total = {"count": 0, "ns": 0.0, "bytes": 0.0}
    rows = []
    for name, runs in groups.items():
        ns = sum(run["ns"] for run in runs)
        moved = sum(run["read"] + run["written"] for run in runs)
        weighted = {key: sum(run[key] * run["ns"] for run in runs) / ns if ns else 0.0 for key in ("dram", "sm")}
        rows.append((ns, len(runs), moved, weighted, name))
        total["count"] += len(runs)
        total["ns"] += ns
        total["bytes"] += moved
    text = f"{'us':>8} {'count':>5} {'MB':>8} {'GB/s':>6} {'DRAM %':>6} {'SM %':>5}  kernel\n"
    for ns, count, moved, weighted, name in sorted(rows, key=lambda row: -row[0]):
        rate = moved / ns if ns else 0.0
        text += (f"{ns / 1e3:8.1f} {count:5} {moved / 1e6:8.1f} {rate:6.0f} {weighted['dram']:6.1f} "
                 f"{weighted['sm']:5.1f}  {short_name(name)}\n")
    text += f"{total['ns'] / 1e3:8.1f} {total['count']:5} {total['bytes'] / 1e6:8.1f}   in all\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="profile.csv", help="the CSV file to write")
    parser.add_argument("--read", help="print the table of this CSV file; run nothing")
    parser.add_argument("--function", help="name of the compiled function; the model's unless given")
    parser.add_argument("--ncu", default="ncu")
    parser.add_argument("command", nargs="*", help="program and arguments: sinter run MODEL ...")
    options = parser.parse_args()
    path = options.read or options.out
    if not options.read:
        if "run" not in options.command:
            parser.error("the command is: sinter run MODEL ...")
        model = options.command[options.command.index("run") + 1]
        code = profile(options.command, options.function or model, path, options.ncu)
        if code != 0:
            return code
    kernels = read(path)
    if not kernels:
        print(f"{path}: no kernels were profiled", file=sys.stderr)
        return 1
    print(table(kernels), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
