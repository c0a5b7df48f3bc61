# LibTorch: the pinned wheels, downloaded and unpacked.

# Disk space in MiB: what stays, and what is needed while wheels lie beside what was unpacked from them.
libtorch_mib=3900 libtorch_setup_mib=6100

libtorch_is_here() { # LOCK FOLDER
  [ "$(cat "$2/.complete" 2>/dev/null)" = "$(sha256sum <"$1")" ]
}

require_disk() { # FOLDER
  local free
  free=$(df -Pm "$1" | awk 'NR == 2 { print $4 }')
  [ "$free" -ge $libtorch_setup_mib ] && return
  echo "dev: LibTorch needs $libtorch_setup_mib MiB under $1 while it is unpacked ($libtorch_mib MiB afterwards); $free are free." >&2
  echo "dev: XDG_CACHE_HOME names another place, SINTER_LIBTORCH a LibTorch that you have" >&2
  return 2
}

# One wheel: downloaded, checked against its hash, unpacked, removed. Downloads run side by side, unpacking one at a time.
fetch_wheel() { # WORK REQUIREMENT
  local work=$1 folder
  folder=$(mktemp -d "$work/wheel.XXXXXX")
  echo "$2" >"$folder/requirement"
  "$work/venv/bin/python" -m pip download --quiet --disable-pip-version-check --require-hashes --no-deps \
    --only-binary=:all: --python-version 3.12 --implementation cp --abi cp312 --abi none \
    $(printf -- '--platform manylinux%s_x86_64 ' 2014 2010 1 _2_28 _2_27 _2_25 _2_18 _2_17 _2_12 _2_5) \
    --dest "$folder" --requirement "$folder/requirement" || return 255 # ends xargs
  flock "$work/unpack.lock" unzip -q -o "$folder"/*.whl -d "$work/tree" || return 255
  rm -r "$folder"
}
export -f fetch_wheel

# Unpacks beside the final folder, then renames.
install_libtorch() { # LOCK FOLDER
  local lock=$1 folder=$2 work="$cache/setup.partial"
  libtorch_is_here "$lock" "$folder" && return
  mkdir -p "$cache"
  exec 9>"$cache/setup.lock"
  flock 9
  if ! libtorch_is_here "$lock" "$folder"; then
    require_disk "$cache" || return
    echo "dev: downloading $(sed -n 's/^torch==\([0-9.]*\).*/LibTorch \1/p' "$lock") and the CUDA libraries it loads: 2 GB once, 3.8 GB unpacked in $cache"
    rm -rf "$work" "$folder"
    mkdir -p "$work/tree"
    python3 -m venv "$work/venv"
    grep -v '^#' "$lock" | xargs -d '\n' -P 4 -n 1 bash -c 'fetch_wheel "$@"' fetch "$work" || return
    sha256sum <"$lock" >"$work/tree/.complete"
    mv "$work/tree" "$folder"
    rm -rf "$work"
  fi
  flock -u 9
}

# LibTorch of the user, or ours: SINTER_LIBTORCH afterwards.
setup_libtorch() {
  if [ -n "${SINTER_LIBTORCH:-}" ]; then
    [ -e "$SINTER_LIBTORCH/torch/lib/libtorch.so" ] || [ -e "$SINTER_LIBTORCH/lib/libtorch.so" ] || {
      echo "dev: SINTER_LIBTORCH: no libtorch.so under '$SINTER_LIBTORCH/torch/lib' or '$SINTER_LIBTORCH/lib'" >&2
      exit 2
    }
    return
  fi
  install_libtorch tools/libtorch.lock "$libtorch_cache"
  export SINTER_LIBTORCH="$libtorch_cache"
}

# Everything that building and testing need.
dev_setup() {
  install_packages "${packages_build[@]}" "${packages_test[@]}"
  setup_libtorch
}
