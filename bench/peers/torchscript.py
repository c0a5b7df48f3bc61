"""TorchScript beside Sinter, in the benchmark's own rows: traced, frozen and optimised for inference.

    python bench/peers/torchscript.py resnet50 --json torchscript.json
    sinter bench --peer torchscript.json ...
"""

import os
import warnings

from processes import Peer, main

PEER = Peer(name="torchscript", modes=["frozen"], default_modes=["frozen"], script=os.path.abspath(__file__))


def compile_in(case):
    import torch

    def compile_module(module, inputs):
        warnings.simplefilter("ignore")  # the tracer's warnings and TorchScript's deprecation
        traced = torch.jit.trace(module, tuple(inputs), check_trace=False)
        return torch.jit.optimize_for_inference(torch.jit.freeze(traced))

    return compile_module


if __name__ == "__main__":
    main(PEER, "TorchScript (traced, frozen, optimised for inference) in the benchmark's own rows", compile_in)
