#!/usr/bin/env bash
# Compile time of `#include <kevin/kevin.hpp>` beside a file that includes <string>, <vector>, <functional>, in turn, N times.
# Counted in CPU seconds (user and system). Prints the least of each, which other load on the machine disturbs least, and
# the medians.
# usage: benchmarks/compile_time.sh [N] [COMPILER]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
runs=${1:-9}
compiler=${2:-${CXX:-c++}}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '#include <kevin/kevin.hpp>\nint main() {}\n' >"$folder/kevin.cpp"
printf '#include <string>\n#include <vector>\n#include <functional>\nint main() {}\n' >"$folder/std.cpp"
compile() { "$compiler" -std=c++20 -O0 -Iinclude -c "$folder/$1.cpp" -o "$folder/out.o"; }
cpu_seconds() {
  local TIMEFORMAT='%U %S'
  { time compile "$1"; } 2>&1 | awk '{ print $1 + $2 }'
}
compile kevin # a faulty header shows here, and the files are in memory afterwards
for ((i = 0; i < runs; ++i)); do
  cpu_seconds kevin >>"$folder/kevin"
  cpu_seconds std >>"$folder/std"
done
at() { sort -n "$folder/$1" | sed -n "$2p"; }
report() {
  awk -v a="$(at kevin "$2")" -v b="$(at std "$2")" -v c="$compiler" -v what="$1" 'BEGIN {
    printf "%s, %s: kevin/kevin.hpp %.3f s, <string> <vector> <functional> %.3f s, ratio %.2f\n", c, what, a, b, a / b }'
}
report least 1
report median $(((runs + 1) / 2))
