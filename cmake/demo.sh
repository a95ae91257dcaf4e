#!/usr/bin/env bash
# From a clone to an agent that learns to write faster kernels. See --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. cmake/setup.sh

if [ "${1:-}" = --help ] || [ "${1:-}" = -h ]; then
  cat <<'HELP'
usage: cmake/demo.sh [OPTIONS OF grpo_kernels]

Sets up what is missing (on Debian 12 through apt; elsewhere it says what is missing and how to get it), configures and
builds into build/release, and runs the example agent grpo_kernels on the cpu backend. Needs no GPU. Can be run again and
again; works offline once everything is installed; writes only under build/.

  cmake/demo.sh                       train on the default tasks
  cmake/demo.sh --seed 7 --updates 30 other options (build/release/examples/grpo_kernels --help lists them)
  cmake/demo.sh --resume              go on with the last run after Ctrl-C (with the options that it had)

Each run has a folder of its own under build/demo: all trajectories, the checkpoint, the best kernels.
HELP
  exit 0
fi

kevin_setup no
kevin_configure release
kevin_say "building (minutes the first time; build/release/build.log)"
cmake --build build/release --target grpo_kernels --parallel "$(nproc)" >build/release/build.log 2>&1 || {
  cat build/release/build.log >&2
  exit 1
}
export KEVIN_CACHE_DIR="${KEVIN_CACHE_DIR:-$PWD/build/cache}"
folder=build/demo/$(date +%Y-%m-%d-%H%M%S)
case " $* " in
  *" --resume "*) folder=$(ls -d build/demo/*/ 2>/dev/null | tail -n 1) ;;
esac
exec build/release/examples/grpo_kernels ${folder:+--log "$folder"} "$@"
