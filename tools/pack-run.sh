#!/usr/bin/env bash
# Runs a packed Sinter with this machine's LibTorch.
#   ./run sinter ARGS      the program
#   ./run tests [FOLDER]   every test program, one after another; results as XML into FOLDER
#   ./run compare ARGS     the program beside torch.compile and TorchScript of this machine's python3
#   ./run planted DEVICE PROGRAMS [BUG...]   in a folder of `./dev pack-planted`: what finds each planted bug
#   ./run PROGRAM ARGS     any other packed program
# LibTorch, of the version that the program was built with, is SINTER_LIBTORCH (a folder with torch/ and nvidia/, or a LibTorch folder), or that of
# this machine's python3.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

site=${SINTER_LIBTORCH:-$(python3 -c 'import importlib.util, os; print(os.path.dirname(os.path.dirname(importlib.util.find_spec("torch").origin)))' 2>/dev/null)}
if [ -e "$site/torch/lib/libtorch.so" ]; then
  version=$(cat "$site/torch/version.py" 2>/dev/null | sed -n "s/^__version__ = '\(.*\)'/\1/p")
  paths="$site/torch/lib"
elif [ -e "$site/lib/libtorch.so" ]; then
  version=$(cat "$site/build-version" 2>/dev/null)
  paths="$site/lib"
else
  echo "run: no LibTorch found; set SINTER_LIBTORCH to a folder that holds torch/ and nvidia/" >&2
  exit 2
fi
built_with=$(cat "$here/libtorch-version")
case "$version" in
  "$built_with"*) ;;
  *) echo "run: LibTorch is '$version', this build needs $built_with" >&2; exit 2 ;;
esac
for folder in "$site"/nvidia/*/lib; do paths="$paths:$folder"; done
inherited=${LD_LIBRARY_PATH:-}
export LD_LIBRARY_PATH="$here/lib:$paths${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export SINTER_LIBTORCH=$site
export SINTER_TEST_DATA=$here/data

program=${1:-sinter}
[ $# -gt 0 ] && shift
if [ "$program" = compare ]; then LD_LIBRARY_PATH=$inherited exec python3 "$here/peers/compare.py" "$@"; fi
if [ "$program" = planted ]; then exec "$here/planted-run" "$here/bin" "$@"; fi
if [ "$program" != tests ]; then exec "$here/bin/$program" "$@"; fi

export SINTER_CACHE=off # no test finds kernels of an earlier run
out=${1:-}
failed=0
ran=0
for test in "$here"/bin/*_tests; do
  name=$(basename "$test")
  ran=$((ran + 1))
  GTEST_BRIEF=1 "$test" ${out:+--gtest_output=xml:$out/$name.xml} || { failed=$((failed + 1)); echo "FAILED: $name"; }
done
echo "$((ran - failed)) passed, $failed failed"
[ "$failed" = 0 ]
