"""Writes what tests/models/reference_test.cpp compares with: weights, input and output of each model, from Python.

    python bench/peers/export_reference.py FOLDER [NAME ...]

Each NAME.pt is a dict of tensors: the state dict (random, seeded, no download), "input" and "output" (float32, CPU).
"""

import pathlib
import sys

import torch

from measure import draw, parse_input
from models import MODELS, build


@torch.no_grad()
def main(folder, names):
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    for name in names or [name for name in MODELS if name != "gelu"]:
        torch.manual_seed(7)
        module = build(name)
        for key, buffer in module.named_buffers():  # running statistics that are not the identity
            if key.endswith(("running_mean", "running_var")):
                buffer.uniform_(0.8, 1.2)
        inputs = [draw(parse_input(text), "cpu") for text in MODELS[name][1]]
        state = {key: value.contiguous() for key, value in module.state_dict().items()}
        torch.save({**state, "input": inputs[0], "output": module(*inputs)}, f"{folder}/{name}.pt")
        print(name)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
