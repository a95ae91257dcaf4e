#!/bin/sh
# The evaluator's times beside those taken by hand in one process (raw) and those of Nsight Compute, in one table.
#   benchmarks/cuda_profile.sh build/release/benchmarks
set -eu
programs=${1:?the folder with cuda_verdicts and cuda_hand_timing}
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
"$programs/cuda_verdicts" spread >"$results/evaluator"
"$programs/cuda_hand_timing" 100 >"$results/hand"
# application-only: processes that the program starts have walls around them, which the profiler cannot live within
ncu --target-processes application-only --clock-control none --cache-control all --csv \
    --metrics gpu__time_duration.sum --kernel-name 'regex:^(relu|add|product)$' \
    "$programs/cuda_hand_timing" 20 >"$results/ncu" || { cat "$results/ncu" >&2; exit 1; }
python3 - "$results" <<'END'
import csv, statistics, sys

folder = sys.argv[1]

def table(name):
    rows = [line.split("|") for line in open(f"{folder}/{name}") if "|" in line][1:]
    return {cells[0].strip(): [c.strip() for c in cells[1:]] for cells in rows}

evaluator, hand = table("evaluator"), table("hand")
scale = {"ns": 1e-6, "nsecond": 1e-6, "us": 1e-3, "usecond": 1e-3, "ms": 1, "msecond": 1}
profiled = {}  # in the order in which the kernels ran, which is that of the tables
for r in csv.DictReader(line for line in open(f"{folder}/ncu") if line.startswith('"')):
    time = float(r["Metric Value"].replace(",", "")) * scale[r["Metric Unit"]]
    profiled.setdefault((r["Kernel Name"], r["Grid Size"]), []).append(time)
assert len(evaluator) == len(hand) == len(profiled), (len(evaluator), len(hand), len(profiled))
print(f"{'kernel':20} | evaluator ms | spread | by hand ms | Nsight Compute ms | evaluator / Nsight Compute")
for (kernel, cells), times in zip(evaluator.items(), profiled.values()):
    ours, ncu = float(cells[0]), statistics.median(times)
    print(f"{kernel:20} | {ours:12.5f} | {cells[1]} | {float(hand[kernel][0]):10.5f} | {ncu:17.5f} | {ours / ncu:.3f}")
END
