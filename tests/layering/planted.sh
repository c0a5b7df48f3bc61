#!/usr/bin/env bash
# Plants one violation after the other in a copy of the sources; tools/check-layers.sh must find each of them.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
for part in compiler runtime frontend bench tests tools; do cp -r "$root/$part" "$copy/"; done

failed=0
check() { "$copy/tools/check-layers.sh" "$copy" 2>&1; }

plant() { # FILE TEXT EXPECTED
  local file=$1 text=$2 expected=$3 found
  cp "$copy/$file" "$copy/kept"
  printf '%b' "$text" >>"$copy/$file"
  if found=$(check); then
    echo "not found in $file: $expected"
    failed=1
  elif [[ $(wc -l <<<"$found") -ne 1 || $found != *"$expected"* ]]; then
    echo "in $file: expected one line with '$expected', found: $found"
    failed=1
  fi
  mv "$copy/kept" "$copy/$file"
}

check
plant compiler/ir/type.h '#include "compiler/kernel/kernel.h"\n' 'compiler/ir/type.h includes "compiler/kernel/kernel.h"'
plant compiler/support/errors.cpp '#include "compiler/ir/type.h"\n' 'compiler/support/errors.cpp includes "compiler/ir/type.h"'
plant compiler/passes/cse.cpp '#include "compiler/codegen/cuda.h"\n' 'compiler/passes may include'
plant compiler/passes/cse.cpp '#include "compiler/passes/dce.h"\n' 'a pass includes another'
plant compiler/codegen/cuda.h '#include "compiler/passes/pass.h"\n' 'compiler/codegen may include'
plant runtime/host.h '#include "compiler/ir/graph.h"\n' 'runtime/host.h includes "compiler/ir/graph.h"'
plant runtime/cuda/driver.cpp '#include "frontend/torch/convert.h"\n' 'runtime may include'
plant frontend/command/main.cpp '#include "tests/api/api_test.h"\n' 'frontend may include'
plant compiler/ir/type.cpp '#include <ATen/core/Tensor.h>\n' 'must not see LibTorch'
plant compiler/kernel/kernel.cpp '#include <llvm/IR/Module.h>\n' 'must not see LibTorch'
plant compiler/kernel/kernel.cpp '#include <cuda_runtime_api.h>\n' 'must not see LibTorch'
plant compiler/ir/type.cpp "$(printf '\\n%.0s' {1..800})" 'at most 800'
exit $failed
