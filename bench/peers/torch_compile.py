"""torch.compile beside Sinter, in the benchmark's own rows.

    python bench/peers/torch_compile.py resnet50 vit_b16:f16[1,3,224,224] --json torch_compile.json
    sinter bench --peer torch_compile.json ...

Modes: default and reduce-overhead; --mode max-autotune takes minutes a model. Every row starts in a fresh process with
empty caches, so that cold_s is what a first call costs.
"""

import torch

from measure import main


def compile_in(mode):
    def compile_module(module, inputs):
        compiled = torch.compile(module, mode=None if mode == "default" else mode)
        if mode == "default":
            return compiled

        def call(*inputs):
            torch.compiler.cudagraph_mark_step_begin()
            return compiled(*inputs)

        return call

    return compile_module


if __name__ == "__main__":
    main(
        peer="torch.compile",
        description="torch.compile beside Sinter, in the benchmark's own rows",
        modes=["default", "reduce-overhead", "max-autotune"],
        default_modes=["default", "reduce-overhead"],
        compile_module=compile_in,
        caches={"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"},
    )
