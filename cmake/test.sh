#!/usr/bin/env bash
# Set up, build and run all tests. See --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. cmake/setup.sh

preset=dev
if [ "${1:-}" = --help ] || [ "${1:-}" = -h ]; then
  cat <<'HELP'
usage: cmake/test.sh [--preset NAME] [CTEST OPTIONS]

Sets up what is missing (as demo.sh), builds into build/NAME and runs all tests with ctest. Presets: dev (default),
asan-ubsan, tsan. Tests that need a GPU carry the label cuda and are skipped, with one line, where there is none.

  cmake/test.sh -R refine             only the tests whose name matches
  cmake/test.sh --preset asan-ubsan   under AddressSanitizer and UndefinedBehaviorSanitizer
HELP
  exit 0
fi
if [ "${1:-}" = --preset ]; then
  preset=$2
  shift 2
fi

kevin_setup yes
kevin_configure "$preset"
cmake --build "build/$preset" --parallel "$(nproc)"
if [ "$preset" = dev ]; then
  cmake --build "build/$preset" --target all_verify_interface_header_sets --parallel "$(nproc)"
fi
export KEVIN_CACHE_DIR="${KEVIN_CACHE_DIR:-$PWD/build/cache}"
exec ctest --test-dir "build/$preset" --output-on-failure --no-tests=error "$@"
