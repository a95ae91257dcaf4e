#!/usr/bin/env bash
# Compile time of `#include <kevin/kevin.hpp>` beside a file that includes <string>, <vector>, <functional>, in turn, N times.
# usage: benchmarks/compile_time.sh [N] [COMPILER]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
runs=${1:-9}
compiler=${2:-${CXX:-c++}}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '#include <kevin/kevin.hpp>\nint main() {}\n' >"$folder/kevin.cpp"
printf '#include <string>\n#include <vector>\n#include <functional>\nint main() {}\n' >"$folder/std.cpp"
seconds() {
  local start end
  start=$(date +%s%N)
  "$compiler" -std=c++20 -O0 -Iinclude -c "$1" -o "$folder/out.o"
  end=$(date +%s%N)
  echo $((end - start))
}
seconds "$folder/kevin.cpp" >/dev/null
for ((i = 0; i < runs; ++i)); do echo "$(seconds "$folder/kevin.cpp") $(seconds "$folder/std.cpp")"; done >"$folder/times"
median() { cut -d' ' -f"$1" "$folder/times" | sort -n | sed -n "$(((runs + 1) / 2))p"; }
awk -v a="$(median 1)" -v b="$(median 2)" -v c="$compiler" 'BEGIN {
  printf "%s: kevin/kevin.hpp %.3f s, <string> <vector> <functional> %.3f s, ratio %.2f\n", c, a / 1e9, b / 1e9, a / b }'
