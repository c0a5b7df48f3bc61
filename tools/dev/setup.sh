# Packages and LibTorch. Safe to interrupt: each step leaves either nothing or its finished result.

packages_build=(cmake ninja-build ccache g++ llvm-19-dev libzstd-dev zlib1g-dev libfmt-dev libboost-dev nlohmann-json3-dev libcli11-dev
  python3-venv unzip)
packages_test=(libgtest-dev libgmock-dev)
packages_lint=(clang-format-19)
packages_tidy=(clang-tidy-19)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/sinter"
libtorch_cache="$cache/libtorch-2.11.0-cu130"

missing_packages() { # PACKAGES
  local installed package
  installed=" $(dpkg-query -W -f '${db:Status-Abbrev}${Package} ' "$@" 2>/dev/null || true)"
  for package in "$@"; do
    case "$installed" in *"ii $package "*) ;; *) echo "$package" ;; esac
  done
}

install_packages() { # PACKAGES
  local missing as_root=()
  missing=$(missing_packages "$@" | tr '\n' ' ')
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

# Another LibTorch to test with: a version that has a lock file, or "without-cuda", the default one's CPU part.
setup_other_libtorch() { # VERSION
  install_packages "${packages_build[@]}" "${packages_test[@]}"
  if [ "$1" = without-cuda ]; then
    unset SINTER_LIBTORCH
    dev_setup
    tools/libtorch-without-cuda.sh "$SINTER_LIBTORCH/torch" "$cache/libtorch-without-cuda"
    export SINTER_LIBTORCH="$cache/libtorch-without-cuda"
  elif [ -f "tools/libtorch-$1.lock" ]; then
    install_libtorch "tools/libtorch-$1.lock" "$cache/libtorch-$1"
    export SINTER_LIBTORCH="$cache/libtorch-$1"
  else
    echo "dev: no LibTorch '$1' to test with; known: without-cuda $(ls tools/libtorch-*.lock | sed 's/.*libtorch-\(.*\)[.]lock/\1/' | tr '\n' ' ')" >&2
    exit 2
  fi
}
