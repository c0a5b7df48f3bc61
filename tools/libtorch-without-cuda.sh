#!/usr/bin/env bash
# Makes a LibTorch without CUDA, in the layout of the official zip (include/, lib/), from one with CUDA: its headers but
# for those of CUDA, and its library for the CPU. Links where it can, so that it takes no space.
#   tools/libtorch-without-cuda.sh LIBTORCH FOLDER    LIBTORCH: a folder with include/ and lib/
set -euo pipefail
from=$(cd "$1" && pwd) to=$2
stamp=$(sha256sum "$from/lib/libtorch.so" "${BASH_SOURCE[0]}")
[ "$(cat "$to/.complete" 2>/dev/null)" = "$stamp" ] && exit

rm -rf "$to"
mkdir -p "$to/lib"
cp -rs "$from/include" "$to/include"
find "$to/include" -depth \( -type d \( -name cuda -o -name cudnn -o -name nccl \) -o -iname '*cuda*.cuh' \) -exec rm -rf {} +
for library in libtorch_cpu.so libc10.so libgomp.so.1 libgfortran.so.5; do
  # A copy of its own: a link would let the loader find the libraries beside the original.
  [ -e "$from/lib/$library" ] && cp --reflink=auto "$from/lib/$library" "$to/lib/"
done
# A libtorch_cpu.so that was built beside CUDA loads the profiler's libraries; those of the official zip do not.
for library in libcupti.so.13 libcudart.so.13; do
  [ -e "$from/../nvidia/cu13/lib/$library" ] && cp --reflink=auto "$from/../nvidia/cu13/lib/$library" "$to/lib/"
done
# libtorch.so holds nothing: it names what is to be loaded.
echo | g++ -shared -x c++ - -o "$to/lib/libtorch.so" -Wl,-soname,libtorch.so -Wl,--no-as-needed -L"$to/lib" \
  -l:libtorch_cpu.so -l:libc10.so -Wl,--allow-shlib-undefined -Wl,-rpath,'$ORIGIN'
echo "$stamp" >"$to/.complete"
