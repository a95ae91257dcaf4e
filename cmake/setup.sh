# Sourced by demo.sh and test.sh: finds what the build needs, installs what is missing where that can be done.
# kevin_setup WANT_TESTS   (yes|no)

kevin_say() { printf '%s\n' "$*" >&2; }

# Boost with Boost.Process v2 as headers
kevin_has_boost() {
  local dir
  for dir in "${BOOST_ROOT:+$BOOST_ROOT/include}" "${BOOST_ROOT:-}" /usr/include /usr/local/include; do
    [ -n "$dir" ] && [ -e "$dir/boost/process/v2/process.hpp" ] && return 0
  done
  return 1
}
kevin_has_header() { printf '#include <%s>\n' "$1" | "${CXX:-c++}" -std=c++20 -x c++ -fsyntax-only - 2>/dev/null; }
kevin_has_torch() {
  [ -n "$(find /usr/lib /usr/local/lib -maxdepth 6 -name TorchConfig.cmake -print -quit 2>/dev/null)" ] && return 0
  local dir prefixes=${CMAKE_PREFIX_PATH:-}
  for dir in ${prefixes//[:;]/ }; do
    [ -e "$dir/share/cmake/Torch/TorchConfig.cmake" ] && return 0
    [ -e "$dir/Torch/TorchConfig.cmake" ] && return 0
  done
  command -v python3 >/dev/null && python3 -c 'import importlib.util,sys; sys.exit(importlib.util.find_spec("torch") is None)' 2>/dev/null
}
# Debian's LibTorch multiplies matrices through libblas: without OpenBLAS ten times slower.
kevin_needs_openblas() {
  [ -e /usr/lib/x86_64-linux-gnu/cmake/Torch/TorchConfig.cmake ] || [ -e /usr/lib/aarch64-linux-gnu/cmake/Torch/TorchConfig.cmake ] || return 1
  ! ls /usr/lib/*/openblas-*/libblas.so.3 >/dev/null 2>&1
}
kevin_has_compiler() { printf '#include <concepts>\nstatic_assert(std::integral<int>);\n' | "${CXX:-c++}" -std=c++20 -x c++ -fsyntax-only - 2>/dev/null; }
kevin_has_cmake() { command -v cmake >/dev/null && printf '%s\n' 3.25 "$(cmake --version | sed -n '1s/[^0-9]*//p')" | sort -VC; }
kevin_has_library() { ldconfig -p 2>/dev/null | grep -q "$1" || /sbin/ldconfig -p 2>/dev/null | grep -q "$1"; }

kevin_missing() {  # prints "package<TAB>what it is" for each missing thing
  kevin_has_compiler || printf 'g++\ta C++20 compiler (g++ 12 or later)\n'
  kevin_has_cmake || printf 'cmake\tCMake 3.25 or later\n'
  command -v ninja >/dev/null || command -v make >/dev/null || printf 'ninja-build\tninja or make\n'
  kevin_has_boost || printf 'libboost1.81-dev\tBoost 1.80 or later (headers, for Boost.Process v2); elsewhere set BOOST_ROOT\n'
  { kevin_has_compiler && kevin_has_header nlohmann/json.hpp; } || printf 'nlohmann-json3-dev\tnlohmann-json (header)\n'
  { kevin_has_compiler && kevin_has_header CLI/CLI.hpp; } || printf 'libcli11-dev\tCLI11 (header)\n'
  kevin_has_library libseccomp.so.2 || printf 'libseccomp2\tlibseccomp (run time)\n'
  if ! kevin_has_torch; then
    printf 'libtorch-dev\tLibTorch; elsewhere: pip install torch, or a libtorch archive and CMAKE_PREFIX_PATH\n'
    printf 'libopenblas0-pthread\tOpenBLAS for LibTorch\n'
  elif kevin_needs_openblas; then
    printf 'libopenblas0-pthread\tOpenBLAS for LibTorch\n'
  fi
  if [ "$1" = yes ]; then
    { kevin_has_compiler && kevin_has_header doctest/doctest.h; } || printf 'doctest-dev\tdoctest (header)\n'
  fi
}

kevin_setup() {
  local missing packages
  missing=$(kevin_missing "$1")
  [ -z "$missing" ] && return 0
  packages=$(printf '%s\n' "$missing" | cut -f1 | tr '\n' ' ')
  if [ -r /etc/os-release ] && ( . /etc/os-release; [ "${ID:-}" = debian ] && [ "${VERSION_ID:-0}" = 12 ] ); then
    local sudo=
    if [ "$(id -u)" != 0 ]; then
      if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then sudo=sudo
      elif command -v sudo >/dev/null && [ -t 0 ]; then sudo=sudo
      else
        kevin_say "Missing packages, and neither root nor sudo is at hand. Install them and run this again:"
        kevin_say "  apt-get install --no-install-recommends $packages"
        return 1
      fi
    fi
    kevin_say "Installing: $packages"
    mkdir -p build
    # shellcheck disable=SC2086
    { $sudo apt-get update -qq && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages; } \
      >build/setup.log 2>&1 || { cat build/setup.log >&2; return 1; }
    missing=$(kevin_missing "$1")
    [ -z "$missing" ] && return 0
  fi
  kevin_say "Missing on this system (Debian 12's package name, then what it is):"
  printf '%s\n' "$missing" | sed 's/^/  /' >&2
  kevin_say "Install these (or set CXX, BOOST_ROOT, CMAKE_PREFIX_PATH to where they are) and run this again."
  return 1
}

# kevin_configure PRESET: configure once; later runs only when CMake itself finds it necessary
kevin_configure() {
  local generator=()
  if [ ! -e "build/$1/CMakeCache.txt" ] && command -v ninja >/dev/null; then generator=(-G Ninja); fi
  mkdir -p "build/$1"
  if ! cmake --preset "$1" "${generator[@]}" >"build/$1/configure.log" 2>&1; then
    cat "build/$1/configure.log" >&2
    return 1
  fi
}
