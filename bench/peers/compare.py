"""Sinter and its peers side by side, measured in one run, model by model, each row in fresh processes.

    ./dev compare resnet50 vit_b16 --dtype f16 --json results.json
    ./run compare resnet50 --dtype f16 --kernels --json results.json --html results.html      # from a packed folder
    ./run compare resnet50 --train --amp f16 --batch 64 --json training.json --seconds 540

The result file is written after every row and is whole at any time. Called again with the same file, rows that it holds
are not measured again: a run may be cut into several, with --seconds as each one's limit. The file says commit, command
lines, versions, flags and devices; `sinter bench --from FILE` shows it again.
"""

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import aot_inductor
import processes
import strangers
import torch_compile
import torchscript
from processes import write

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = {peer.name: peer for peer in (torch_compile.PEER, torchscript.PEER, aot_inductor.PEER)}
DEFAULT = ["sinter:default", "sinter:reduce-overhead", "torch.compile:default", "torch.compile:reduce-overhead"]
LEAST = 20  # seconds that a row needs at least: with fewer left, none is begun


def find_sinter():
    """The program: of the packed folder that this file lies in, or of this checkout's build."""
    packed = os.path.join(HERE, "..", "run")
    return [packed, "sinter"] if os.path.exists(packed) else [os.path.join(HERE, "../../build/release/bin/sinter")]


def find_commit():
    """What was measured: of a packed folder the commit that it was packed at."""
    try:
        with open(os.path.join(HERE, "..", "commit")) as file:
            return file.read().strip()
    except OSError:
        pass
    git = ["git", "-C", HERE, "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    done = subprocess.run(git, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    processes.add_case_options(parser)
    parser.add_argument("--with", dest="contenders", action="append", default=[], metavar="WHO:MODE",
                        help="once for each, e.g. sinter:default, torch.compile:max-autotune, torchscript:frozen; "
                        "without: " + " ".join(DEFAULT))
    parser.add_argument("--json", required=True, help="the result file; rows that it holds are kept")
    parser.add_argument("--text", help="write the table to this file too")
    parser.add_argument("--html", help="write a page with plots to this file")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no row that this time has no room for")
    parser.add_argument("--prepare", type=int, default=0, metavar="N",
                        help="first fill the peers' caches, N processes at once: quicker, without their cold starts")
    parser.add_argument("--caches", metavar="FOLDER", help="where --prepare fills the peers' caches: later runs find them "
                        "there; without: a folder of this run")
    parser.add_argument("--turn", metavar="FILE", help="measure while no other run with this file does, one model at a time: "
                        "several runs prepare at once and take turns on a device")
    parser.add_argument("--sinter", help="the program; without: of the packed folder, or of this checkout's build")
    return parser.parse_args()


def checked(options):
    """The contenders as (who, mode). Ends the program where a name is unknown."""
    known = {"sinter": ["default", "reduce-overhead", "max-autotune"]} | {p.name: p.modes for p in PEERS.values()}
    pairs = [tuple(text.partition(":")[::2]) for text in options.contenders or DEFAULT]
    for who, mode in pairs:
        if mode not in known.get(who, []):
            names = [f"{name}:{one}" for name, modes in known.items() for one in modes]
            sys.exit(f"compare: '{who}:{mode}' is unknown. Known: {', '.join(names)}")
    if not options.models:
        sys.exit("compare: name at least one model (sinter models)")
    return pairs


class Run:
    """One result file and the time there is for it."""

    def __init__(self, options, contenders):
        self.options, self.contenders = options, contenders
        self.deadline = time.monotonic() + options.seconds
        self.sinter = [options.sinter] if options.sinter else find_sinter()
        self.failed, self.left = [], []
        self.document = {"sinter": "0.1.0", "commit": find_commit(), "commands": [], "environment": {}, "peers": []}
        self.document["rows"] = []
        if os.path.exists(options.json):
            self.resume()
        self.document["commands"].append(" ".join(sys.argv[1:]))
        self.own = tempfile.TemporaryDirectory()
        self.caches = options.caches or self.own.name

    def resume(self):
        with open(self.options.json) as file:
            found = json.load(file)
        if found.get("commit") != self.document["commit"]:
            sys.exit(f"compare: {self.options.json} holds rows of another commit ({found.get('commit')}); name another file")
        self.document = found

    def has(self, case, who, mode):
        return any(row["asked"] == asked(case, who, mode) for row in self.document["rows"])

    def add(self, row, case, who, mode):
        row["asked"] = asked(case, who, mode)
        self.document["rows"].append(row)
        write(self.options.json, self.document)
        if who != "sinter":
            print(processes.line(row), file=sys.stderr, flush=True)

    def fail(self, case, who, mode):
        late = self.deadline - time.monotonic() < LEAST
        (self.left if late else self.failed).append(f"{case['model']} {who} {mode}")

    def add_environment(self, peer, environment):
        if all(listed["peer"] != peer.name for listed in self.document["peers"]):
            entry = {"peer": peer.name, "file": os.path.basename(self.options.json), "environment": environment}
            self.document["peers"].append(entry)

    @contextlib.contextmanager
    def turn(self):
        """The time in which this run alone uses the device."""
        if not self.options.turn:
            yield
            return
        with open(self.options.turn, "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def measure(self, case):
        """All contenders of one model, one after the other."""
        wanted = [pair for pair in self.contenders if not self.has(case, *pair)]
        modes = [mode for who, mode in wanted if who == "sinter"]
        if modes:
            self.measure_sinter(case, modes)
        for peer in PEERS.values():
            modes = [mode for who, mode in wanted if who == peer.name]
            if modes:
                self.measure_peer(peer, case, modes)

    def measure_sinter(self, case, modes):
        if self.deadline - time.monotonic() < LEAST:
            self.left += [f"{case['model']} sinter {mode}" for mode in modes]
            return
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.json")
            model, left = case["model"], self.deadline - time.monotonic()
            if strangers.is_stranger(model):
                model = os.path.join(folder, "model.pt2")
                script = os.path.join(HERE, "export_stranger.py")
                processes.run([sys.executable, script, json.dumps(case), model], min(case["timeout"], left))
            command = self.sinter + sinter_arguments(case, model, modes, self.options.starts) + ["--json", path]
            processes.run(command, min(case["timeout"], self.deadline - time.monotonic()))
            document = {"rows": []}
            if os.path.exists(path):  # rows that are done, also of a run that was cut off
                with open(path) as file:
                    document = json.load(file)
        self.document["environment"] = document.get("environment", self.document["environment"])
        for row in document["rows"]:
            row["model"] = case["model"]
            self.add(row, case, "sinter", row["mode"])
        for mode in modes:
            if not self.has(case, "sinter", mode):
                self.fail(case, "sinter", mode)

    def measure_peer(self, peer, case, modes):
        eager = None
        if self.deadline - time.monotonic() >= LEAST:
            eager = processes.eager_starts(peer, case, self.options.starts, self.deadline)
        for mode in modes:
            found = None
            if eager and self.deadline - time.monotonic() >= LEAST:
                prepared = self.folder(peer, case, mode) if self.options.prepare else None
                of_mode = {**case, "mode": mode}
                found = processes.measure_peer(peer, of_mode, eager, self.options.starts, self.deadline, prepared)
            if found is None:
                self.fail(case, peer.name, mode)
                continue
            self.add_environment(peer, found["environment"])
            self.add(found["row"], case, peer.name, mode)

    def folder(self, peer, case, mode):
        name = hashlib.sha256(json.dumps(case, sort_keys=True).encode()).hexdigest()[:16]
        path = os.path.join(self.caches, f"{peer.name}-{mode}-{name}")
        os.makedirs(path, exist_ok=True)
        return path

    def prepare(self, cases):
        """Fills the caches of peers that keep some, several processes at once, before anything is timed."""
        todo = [
            (PEERS[who], case, mode)
            for case in cases
            for who, mode in self.contenders
            if who in PEERS and PEERS[who].caches and not self.has(case, who, mode)
        ]
        with ThreadPoolExecutor(self.options.prepare) as pool:
            for peer, case, mode in todo:
                child, folder = {**case, "mode": mode, "kind": "start"}, self.folder(peer, case, mode)
                if not os.listdir(folder):
                    pool.submit(processes.in_child, peer, child, folder, self.deadline)

    def show(self):
        """The table, and the page where it was asked for, by the program that joins result files."""
        if not any("peer" not in row for row in self.document["rows"]):
            return
        command = self.sinter + ["bench", "--from", self.options.json]
        for flag, path in (("--report", self.options.text), ("--html", self.options.html)):
            command += [flag, path] if path else []
        subprocess.run(command)


def asked(case, who, mode):
    """What tells a row from every other one of a file."""
    fields = ["model", "inputs", "dtype", "batch", "device", "set", "freeze", "train", "amp"]
    return {name: case[name] for name in fields} | {"who": who, "mode": mode}


def sinter_arguments(case, model, modes, starts):
    command = ["bench", model, "--device", case["device"], "--seed", str(case["seed"])]
    command += ["--budget", str(case["budget"]), "--starts", str(starts)]
    for flag, values in (("--mode", modes), ("--input", case["inputs"]), ("--set", case["set"])):
        for value in values:
            command += [flag, value]
    command += ["--dtype", case["dtype"]] if case["dtype"] else []
    command += ["--batch", str(case["batch"])] if case["batch"] else []
    command += ["--freeze"] if case["freeze"] else []
    command += ["--train", "--optimizer", case["train"]] if case["train"] else []
    command += ["--amp", case["amp"]] if case["amp"] else []
    command += ["--losses", str(case["losses"])] if case["losses"] else []
    command += ["--kernels"] if case["kernels"] else []
    return command


def main():
    options = arguments()
    run = Run(options, checked(options))
    cases = list(processes.cases_of(options, processes.device_of(options)))
    if options.prepare:
        run.prepare(cases)
    for case in cases:
        with run.turn():
            run.measure(case)
    write(options.json, run.document)
    run.show()
    for text in run.left:
        print(f"compare: no time was left for {text}; call again to measure it", file=sys.stderr)
    for text in run.failed:
        print(f"compare: {text}: the measuring process failed", file=sys.stderr)
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
