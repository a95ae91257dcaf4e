#!/bin/sh
# Nsight Compute's own duration of the kernels that cuda_hand_timing launches, to be set beside the evaluator's medians.
#   benchmarks/cuda_profile.sh build/release/benchmarks/cuda_hand_timing
set -eu
program=${1:?the path of cuda_hand_timing}
ncu --clock-control none --cache-control all --csv --metrics gpu__time_duration.sum \
    --kernel-name 'regex:^(relu|add|product)$' "$program" 20 2>/dev/null |
  python3 -c '
import csv, statistics, sys
rows = csv.DictReader(line for line in sys.stdin if line.startswith("\""))
scale = {"ns": 1e-6, "nsecond": 1e-6, "us": 1e-3, "usecond": 1e-3, "ms": 1, "msecond": 1}
times = {}
for r in rows:
    key = (r["Kernel Name"].split("(")[0], r["Grid Size"])
    times.setdefault(key, []).append(float(r["Metric Value"].replace(",", "")) * scale[r["Metric Unit"]])
for (name, grid), t in times.items():
    print(f"{name:8} grid {grid:20} {statistics.median(t):.5f} ms (median of {len(t)})")
'
