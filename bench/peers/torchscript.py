"""TorchScript beside Sinter, in the benchmark's own rows: traced, frozen and optimised for inference.

    python bench/peers/torchscript.py resnet50 --json torchscript.json
    sinter bench --peer torchscript.json ...

Rows carry `torchscript_ms`, the same number as their `steady_ms`.
"""

import warnings

import torch

from measure import main


def compile_in(mode):
    def compile_module(module, inputs):
        warnings.simplefilter("ignore")  # the tracer's warnings and TorchScript's deprecation
        traced = torch.jit.trace(module, tuple(inputs), check_trace=False)
        return torch.jit.optimize_for_inference(torch.jit.freeze(traced))

    return compile_module


if __name__ == "__main__":
    main(
        peer="torchscript",
        description="TorchScript (traced, frozen, optimised for inference) in the benchmark's own rows",
        modes=["frozen"],
        default_modes=["frozen"],
        compile_module=compile_in,
        caches={},
        extra_fields=lambda row: {"torchscript_ms": row["steady_ms"]},
    )
