"""torch.compile beside Sinter, in the benchmark's own rows.

    python bench/peers/torch_compile.py resnet50 vit_b16:f16[1,3,224,224] --json torch_compile.json
    sinter bench --peer torch_compile.json ...

Modes: default and reduce-overhead; --mode max-autotune takes minutes a model. With --train each compiles the whole step;
default-of-model compiles the model alone, and the optimizer runs as it is. Every row starts in a fresh process with
empty caches, so that cold_s is what a first call costs; warm_s is a first call in a process that finds them filled.
"""

import os

from processes import OF_MODEL, Peer, main

PEER = Peer(
    name="torch.compile",
    modes=["default", "reduce-overhead", "max-autotune", "default" + OF_MODEL],
    default_modes=["default", "reduce-overhead"],
    caches={"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"},
    script=os.path.abspath(__file__),
)


def compile_in(case):
    import torch

    def compile_module(function, inputs):
        if case["freeze"]:
            from torch._inductor import config

            config.freezing = True
        mode = case["mode"].removesuffix(OF_MODEL)
        compiled = torch.compile(function, mode=None if mode == "default" else mode)
        if mode == "default":
            return compiled

        def call(*inputs):
            torch.compiler.cudagraph_mark_step_begin()
            return compiled(*inputs)

        return call

    return compile_module


if __name__ == "__main__":
    main(PEER, "torch.compile beside Sinter, in the benchmark's own rows", compile_in)
