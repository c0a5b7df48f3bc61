"""Checks that the figures of a Markdown page stand in the result files named beside them, or writes them.

    python3 tools/figures.py README.md                                   # checks; lists what differs
    python3 tools/figures.py README.md --write                           # writes the figures of the files anew
    python3 tools/figures.py README.md --write --file bench/results/NEW.json    # takes them from another file from now on
    python3 tools/figures.py README.md --print --file bench/results/NEW.json    # prints the tables only

A table's figures are described by a comment above it, a sentence's by one before and one behind them:

    <!-- figures {"files": ["bench/results/F.json"],
      "rows": [{"model": "resnet50", "shape": "f16[1,3,224,224]"}],
      "columns": [["model", "{model} {shape}"], ["eager, ms", "{default.eager_ms:.3g}"],
                  ["cold, s", "{default.cold_s - default.eager_cold_s:.2f}"]], "best": [1, 2]} -->
    | model | ...

    It takes <!-- figure {"files": [...], "row": {...}, "cell": "{default.steady_ms:.3g}"} -->0.42<!-- /figure --> ms.

A cell is text with figures in braces: MODE.FIELD of the row of the file (docs/benchmarking.md) that has this mode and
everything that `rows` says of it, or the difference of two (" - "), or one divided by a number, MiB or GiB (" / "). A
field that is a list of numbers stands for their sum, a list of kernels for that of their microseconds. MODE.FIELD.PART
is a part of a field.
Training steps have a table of their own, with eager above the modes of each contender (LibTorch's above Sinter's, which
speed-ups are against), and a dash for what a row does not have:

    <!-- figures {"training": ["reduce-overhead", "torch.compile default"], "files": ["bench/results/F.json"],
      "rows": [{"label": "Swin-B, f16", "model": "swin_b", "train": "radam", "amp": "f16"}]} -->

A name without a dot is what `rows` says; what "row" says, it says of all of them; "label" is for cells alone. Files are
looked through in order; a row may name "files" of its own. Of the columns counted in "best" the smallest figure of a row
is set in bold. Files that state a commit must state the same one throughout a page; those of a table with "apart": true
throughout a row.
"""

import argparse
import json
import os
import re
import sys

TABLE = re.compile(r"<!-- figures (\{.*?\}) -->\n\n?((?:\|[^\n]*\n)*)", re.S)
INLINE = re.compile(r"<!-- figure (\{.*?\}) -->(.*?)<!-- /figure -->", re.S)
UNITS = {"MiB": 1 << 20, "GiB": 1 << 30}
# Columns of a table of training steps: head, a contender's field and eager's, what they are divided by, their form.
TRAINING = [
    ("device, ms", "kernel_table", "eager_kernel_table", 1e3, "#.3g"),
    ("host, ms", "unsynchronised_ms_wrong", None, 1, "#.3g"),
    ("allocated, MiB", "allocated_bytes", "eager_allocated_bytes", UNITS["MiB"], ".0f"),
    ("first call, s", "cold_s", "eager_cold_s", 1, ".1f"),
    ("losses differ by", "losses.largest_difference", None, 1, ".1e"),
]
UNSAID = {"freeze": False, "train": "", "amp": "", "numerics": "fast", "settings": []}


class Missing(Exception):
    """What a comment asks for is in none of its files."""


class Files:
    def __init__(self, root, instead):
        self.root, self.instead, self.read = root, instead, {}

    def rows(self, names):
        for name in [self.instead] if self.instead else names:
            yield name, self.document(name)["rows"]

    def document(self, name):
        if name not in self.read:
            try:
                with open(os.path.join(self.root, name)) as file:
                    self.read[name] = json.load(file)
            except (OSError, ValueError) as error:
                raise Missing(f"{name}: {error}") from error
        return self.read[name]

    def check_commits(self, names):
        documents = [self.document(name) for name in names]
        commits = sorted({document["commit"] for document in documents if "commit" in document})
        if len(commits) > 1:
            raise Missing(f"figures of several commits: {', '.join(commits)}")


def fits(row, mode, wanted):
    fields = {**UNSAID, **{key: value for key, value in wanted.items() if key not in ("files", "label")}}
    return row["mode"] == mode and all((row.get(key) or UNSAID.get(key)) == value for key, value in fields.items())


def number_in(row, field):
    """The number that a field of a row stands for; None where it has none."""
    found = row
    for part in field.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    if isinstance(found, list):
        return sum(one["us"] if isinstance(one, dict) else one for one in found)
    return found if isinstance(found, (int, float)) else None


def figure(term, wanted, files):
    """The number that MODE.FIELD stands for."""
    mode, _, field = term.rpartition(".")
    looked = []
    for name, rows in files.rows(wanted["files"]):
        looked.append(name)
        for row in rows:
            if not term.startswith(row["mode"] + ".") or not fits(row, row["mode"], wanted):
                continue
            found = number_in(row, term.removeprefix(row["mode"] + "."))
            if found is not None:
                return found
    said = {key: value for key, value in wanted.items() if key != "files"}
    raise Missing(f"no '{field}' of mode '{mode}' for {json.dumps(said)} in {', '.join(looked)}")


def value(expression, wanted, files):
    if "." not in expression:
        return wanted[expression]
    if " / " in expression:
        term, unit = expression.split(" / ")
        return value(term, wanted, files) / (UNITS.get(unit) or float(unit))
    first, *others = expression.split(" - ")
    return figure(first, wanted, files) - sum(figure(term, wanted, files) for term in others)


def cell(template, wanted, files):
    """The text of a cell, and its first figure."""
    numbers = []

    def shown(match):
        expression, _, form = match[1].partition(":")
        found = value(expression, wanted, files)
        if isinstance(found, (int, float)):
            numbers.append(found)
            return format(found, form or ".3g").removesuffix(".")
        return str(found)

    return re.sub(r"\{([^{}]*)\}", shown, template), numbers[0] if numbers else None


def table(spec, files):
    columns = spec["columns"]
    lines = ["| " + " | ".join(head for head, _ in columns) + " |", "|---" * len(columns) + "|"]
    for row in spec["rows"]:
        wanted = {"files": spec.get("files"), **spec.get("row", {}), **row}
        if spec.get("apart"):
            files.check_commits(wanted["files"])
        cells = [cell(template, wanted, files) for _, template in columns]
        best = min((cells[i][1] for i in spec.get("best", []) if cells[i][1] is not None), default=None)
        texts = [
            f"**{text}**" if i in spec.get("best", []) and number == best else text
            for i, (text, number) in enumerate(cells)
        ]
        lines.append("| " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


def step_cells(mode, eager, first, wanted, files):
    """Cells of one line of a table of training steps: of a mode, or of the eager beside it."""
    step = figure(f"{mode}.{'eager_ms' if eager else 'steady_ms'}", wanted, files)
    cells = [format(step, "#.3g").removesuffix("."), f"{figure(first + '.eager_ms', wanted, files) / step:.2f}"]
    for _, contenders, eagers, unit, form in TRAINING:
        field = eagers if eager else contenders
        try:
            found = figure(f"{mode}.{field}", wanted, files) / unit if field else None
        except Missing:
            found = None
        cells.append("–" if found is None else format(found, form).removesuffix("."))
    return cells


def training_table(spec, files):
    modes = spec["training"]
    heads = ["model", "", "step, ms", "speed-up"] + [column[0] for column in TRAINING]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for row in spec["rows"]:
        wanted, shown = {"files": spec["files"], **row}, set()
        label = row.get("label", row["model"])
        for mode in modes:
            peer = mode.rpartition(" ")[0]  # empty: Sinter
            if peer not in shown:
                cells = step_cells(mode, True, modes[0], wanted, files)
                lines.append("| " + " | ".join([label, f"eager beside {peer}" if peer else "eager", *cells]) + " |")
            shown.add(peer)
            cells = step_cells(mode, False, modes[0], wanted, files)
            lines.append("| " + " | ".join([label, mode, *cells]) + " |")
    return "\n".join(lines) + "\n"


class Page:
    def __init__(self, path, instead):
        with open(path) as file:
            self.text = file.read()
        self.path, self.instead = path, instead
        self.files = Files(os.path.dirname(os.path.abspath(path)), instead)
        self.problems, self.tables = [], []
        self.of_one_commit = set()  # names of files

    def rewritten(self):
        text = TABLE.sub(lambda match: self.replace(match, self.table), self.text)
        return INLINE.sub(lambda match: self.replace(match, self.inline), text)

    def replace(self, match, make):
        line = self.text.count("\n", 0, max(0, self.text.find(match[0]))) + 1
        try:
            spec = json.loads(match[1])
            if self.instead:
                spec["files"] = [self.instead]
            made = make(match, spec)
            if not spec.get("apart"):
                self.of_one_commit.update(name for one in [spec, *spec.get("rows", [])] for name in one.get("files", []))
        except (Missing, ValueError, KeyError) as error:
            self.problems.append(f"{self.path}:{line}: {error}")
            return match[0]
        old, new = match[0].splitlines(), made.splitlines()
        for i in range(max(len(old), len(new))):
            was, should = (lines[i] if i < len(lines) else "" for lines in (old, new))
            if was != should:
                self.problems.append(f"{self.path}:{line + i}: '{was}' should be '{should}'")
        return made

    def check_commits(self):
        try:
            self.files.check_commits(self.of_one_commit)
        except Missing as error:
            self.problems.append(f"{self.path}: {error}")

    def comment(self, match, kind):
        if not self.instead:
            return match[0][: match[0].index(" -->") + 4]
        text = re.sub(r'"files": \[[^\]]*\]', f'"files": ["{self.instead}"]', match[1])
        return f"<!-- {kind} {text} -->"

    def table(self, match, spec):
        made = training_table(spec, self.files) if "training" in spec else table(spec, self.files)
        self.tables.append(made)
        behind = "" if match[2] else "\n"  # a first table is kept apart from the text that follows
        return self.comment(match, "figures") + "\n\n" + made + behind

    def inline(self, match, spec):
        wanted = {"files": spec["files"], **spec["row"]}
        return self.comment(match, "figure") + cell(spec["cell"], wanted, self.files)[0] + "<!-- /figure -->"


def unmarked(text):
    """Lines of tables with figures that no comment describes."""
    covered = TABLE.sub(lambda match: "\n" * match[0].count("\n"), text)
    lines = covered.splitlines()
    return [i + 1 for i, line in enumerate(lines) if re.match(r"\|.*\|\s*(\*\*)?\d+\.\d", line)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page")
    parser.add_argument("--write", action="store_true", help="write the figures instead of checking them")
    parser.add_argument("--print", action="store_true", help="print the tables")
    parser.add_argument("--file", help="take all figures from this file; relative to the page")
    options = parser.parse_args()
    page = Page(options.page, options.file)
    text = page.rewritten()
    if options.print:
        print("\n".join(page.tables))
        return 0
    if options.write:
        with open(options.page, "w") as file:
            file.write(text)
        page = Page(options.page, None)
        page.rewritten()
    page.check_commits()
    problems = page.problems + [f"{options.page}:{line}: figures without a file" for line in unmarked(page.text)]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
