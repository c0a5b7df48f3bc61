"""AOTInductor beside Sinter, in the benchmark's own rows: exported, compiled to a library, loaded from it.

    python bench/peers/aot_inductor.py resnet50 --json aot_inductor.json
    sinter bench --peer aot_inductor.json ...
"""

import os
import tempfile

from processes import Peer, main

PEER = Peer(
    name="aot-inductor",
    modes=["default"],
    default_modes=["default"],
    caches={"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"},
    script=os.path.abspath(__file__),
)


def compile_in(case):
    import torch

    def compile_module(module, inputs):
        if not isinstance(module, torch.nn.Module):
            raise SystemExit("aot-inductor: only modules can be exported, not training steps")
        exported = torch.export.export(module, tuple(inputs))
        folder = tempfile.mkdtemp()
        package = torch._inductor.aoti_compile_and_package(
            exported,
            package_path=os.path.join(folder, "model.pt2"),
            inductor_configs={"freezing": case["freeze"]},
        )
        return torch._inductor.aoti_load_package(package)

    return compile_module


if __name__ == "__main__":
    main(PEER, "AOTInductor (exported, compiled ahead) in the benchmark's own rows", compile_in)
