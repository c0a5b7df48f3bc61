"""Writes the benchmark's models as files, for `sinter run NAME.pt2 --inputs NAME.inputs.pt --check NAME.result.pt`.

    python bench/peers/export_models.py FOLDER [NAME ...] [--dtype f16] [--device cuda]

NAME.pt2 is torch.export's, NAME.pt a TorchScript trace; results are Python's own, in that dtype on that device.
"""

import argparse
import pathlib
import warnings

import torch

from measure import DTYPES, draw, parse_input
from models import MODELS, build, inputs_of

warnings.simplefilter("ignore")


@torch.no_grad()
def main(options):
    folder = pathlib.Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    dtype = DTYPES[options.dtype]
    for name in options.models or [name for name in MODELS if name != "gelu"]:
        torch.manual_seed(7)
        module = build(name).to(options.device, dtype)
        inputs = [draw(parse_input(text), options.device) for text in inputs_of(name)]
        inputs = tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)
        torch.save(tuple(x.cpu() for x in inputs), folder / f"{name}.inputs.pt")
        torch.save(module(*inputs).cpu(), folder / f"{name}.result.pt")
        torch.jit.trace(module, inputs, check_trace=False).save(folder / f"{name}.pt")
        torch.export.save(torch.export.export(module, inputs), folder / f"{name}.pt2")
        print(name, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--dtype", default="f32", choices=list(DTYPES))
    parser.add_argument("--device", default="cpu")
    main(parser.parse_args())
