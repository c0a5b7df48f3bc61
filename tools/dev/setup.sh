# Packages and LibTorch. Safe to interrupt: each step leaves either nothing or its finished result.

packages=(cmake ninja-build ccache g++ llvm-19-dev libzstd-dev zlib1g-dev libfmt-dev nlohmann-json3-dev
  libcli11-dev libgtest-dev libgmock-dev libbenchmark-dev clang-format-19 clang-tidy-19 python3-venv unzip)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/sinter"
libtorch_cache="$cache/libtorch-2.11.0-cu130"

missing_packages() {
  local installed package
  installed=" $(dpkg-query -W -f '${db:Status-Abbrev}${Package} ' "${packages[@]}" 2>/dev/null || true)"
  for package in "${packages[@]}"; do
    case "$installed" in *"ii $package "*) ;; *) echo "$package" ;; esac
  done
}

install_packages() {
  local missing as_root=()
  missing=$(missing_packages | tr '\n' ' ')
  [ -z "$missing" ] && return
  if [ "$(id -u)" != 0 ]; then
    if ! sudo -n true 2>/dev/null; then
      echo "dev: packages are missing; install them with:  sudo apt-get update && sudo apt-get install -y $missing" >&2
      exit 2
    fi
    as_root=(sudo)
  fi
  echo "dev: installing $missing"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

# The browser that tests the benchmark's page. Tried once; without it that test is skipped and says so.
install_browser() {
  local tried="$cache/browser.tried"
  [ -e "$tried" ] || command -v chromium >/dev/null || [ "$(id -u)" != 0 ] && return
  mkdir -p "$cache"
  touch "$tried"
  apt-get update -qq || true
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1 ||
    echo "dev: chromium cannot be installed here; the browser test of the benchmark's page will be skipped" >&2
}

# Downloads the pinned wheels, checks their hashes and unpacks them beside the final folder, then renames it.
install_libtorch() {
  local lock=tools/libtorch.lock stamp
  stamp=$(sha256sum <"$lock")
  [ "$(cat "$libtorch_cache/.complete" 2>/dev/null)" = "$stamp" ] && return
  mkdir -p "$cache"
  exec 9>"$cache/setup.lock"
  flock 9
  if [ "$(cat "$libtorch_cache/.complete" 2>/dev/null)" != "$stamp" ]; then
    echo "dev: downloading LibTorch 2.11.0 and the CUDA 13.0 libraries it loads (about 2 GB, once)"
    local work="$cache/setup.partial" wheel
    rm -rf "$work" "$libtorch_cache"
    mkdir -p "$work/tree"
    python3 -m venv "$work/venv"
    "$work/venv/bin/python" -m pip download --quiet --disable-pip-version-check --require-hashes --no-deps \
      --only-binary=:all: --python-version 3.12 --implementation cp --abi cp312 --abi none \
      $(printf -- '--platform manylinux%s_x86_64 ' 2014 2010 1 _2_28 _2_27 _2_25 _2_18 _2_17 _2_12 _2_5) \
      --dest "$work/wheels" --requirement "$lock"
    for wheel in "$work"/wheels/*.whl; do
      unzip -q -o "$wheel" -d "$work/tree"
      rm "$wheel"
    done
    echo "$stamp" >"$work/tree/.complete"
    mv "$work/tree" "$libtorch_cache"
    rm -rf "$work"
  fi
  flock -u 9
}

dev_setup() {
  install_packages
  install_browser
  if [ -n "${SINTER_LIBTORCH:-}" ]; then
    [ -e "$SINTER_LIBTORCH/torch/lib/libtorch.so" ] || [ -e "$SINTER_LIBTORCH/lib/libtorch.so" ] || {
      echo "dev: SINTER_LIBTORCH: no libtorch.so under '$SINTER_LIBTORCH/torch/lib' or '$SINTER_LIBTORCH/lib'" >&2
      exit 2
    }
    return
  fi
  install_libtorch
  export SINTER_LIBTORCH="$libtorch_cache"
}
