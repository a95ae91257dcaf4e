#!/usr/bin/env bash
# Builds every libFuzzer target of this folder with clang++ and runs each for SECONDS_EACH seconds (default 60).
# usage: tests/fuzz/run.sh [SECONDS_EACH] [TARGET...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seconds=${1:-60}
shift || true
compiler=${CLANGXX:-$(command -v clang++ || command -v clang++-19 || command -v clang++-14)} || {
  echo "clang++ with libFuzzer is needed (Debian 12: clang-14 and libclang-rt-14-dev); or set CLANGXX" >&2
  exit 1
}
out=build/fuzz
mkdir -p "$out"
torch_flags=(-I/usr/include/torch/csrc/api/include)
status=0
for source in tests/fuzz/*.cpp; do
  name=$(basename "$source" .cpp)
  if [ $# -gt 0 ] && [[ ! " $* " == *" $name "* ]]; then continue; fi
  flags=()
  # A first line `// needs: torch` asks for LibTorch.
  if head -n 1 "$source" | grep -q '^// needs: torch'; then flags=("${torch_flags[@]}" -ltorch -ltorch_cpu -lc10); fi
  echo "== $name: building"
  "$compiler" -std=c++20 -O1 -g1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -Iinclude "$source" -o "$out/$name" "${flags[@]}" -pthread -ldl
  corpus=$out/$name.corpus
  mkdir -p "$corpus"
  seeds=()
  if [ -d "tests/fuzz/corpus/$name" ]; then seeds=("tests/fuzz/corpus/$name"); fi
  echo "== $name: $seconds s"
  if ! "$out/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 -artifact_prefix="$out/$name." "$corpus" "${seeds[@]}" \
      >"$out/$name.log" 2>&1; then
    status=1
    tail -n 40 "$out/$name.log"
    echo "== $name: FAILED (log $out/$name.log)"
  else
    grep -E 'stat::number_of_executed_units' "$out/$name.log" || true
    echo "== $name: clean"
  fi
done
exit $status
