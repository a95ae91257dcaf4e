#!/usr/bin/env python3
"""Losses of the literature, written down a second time, straight from the papers' formulas and without looking at
kevin's: prints the golden values that tests/rl/objective.cpp compares with.

    python3 tests/rl/golden/objectives.py >tests/rl/golden/objectives.inc

Gradients are central differences of the value; where a paper stops the gradient (cispo's ratio), the value is taken
with that factor frozen. Standard library alone.
"""
import math
import random


def clip(x, low, high):
    return max(low, min(high, x))


def token_ratios(sample, new):
    return [math.exp(n - o) for n, o in zip(new, sample["old"])]


def sequence_ratio(sample, new):
    live = [i for i, m in enumerate(sample["mask"]) if m]
    return math.exp(sum(new[i] - sample["old"][i] for i in live) / len(live))


def ppo_token(ratio, a, low, high, dual=None):
    value = min(ratio * a, clip(ratio, 1 - low, 1 + high) * a)
    if dual is not None and a < 0:
        value = max(value, dual * a)
    return value


def penalty(sample, new, i):
    ref = sample["ref"][i] if sample["ref"] else sample["old"][i]
    return math.exp(ref - new[i]) - (ref - new[i]) - 1


def per_sample_terms(sample, new, frozen, loss):
    """The terms of the live tokens, before any averaging."""
    terms = []
    ratios = token_ratios(sample, new)
    for i, live in enumerate(sample["mask"]):
        if not live:
            continue
        a = sample["a"]
        if loss["kind"] == "cispo":
            weight = clip(math.exp(frozen[i] - sample["old"][i]), 1 - loss["low"], 1 + loss["high"])
            term = weight * a * new[i]
        elif loss["kind"] == "gspo":
            term = ppo_token(sequence_ratio(sample, new), a, loss["low"], loss["high"])
        else:
            term = ppo_token(ratios[i], a, loss["low"], loss["high"], loss.get("dual"))
        terms.append(term - loss["beta"] * penalty(sample, new, i))
    return terms


def value(batch, new, frozen, loss):
    parts = [per_sample_terms(s, n, f, loss) for s, n, f in zip(batch, new, frozen)]
    parts = [p for p in parts if p]  # fully masked samples are no samples
    if not parts:
        return 0.0
    if loss["norm"] == "sequence":
        return sum(sum(p) / len(p) for p in parts) / len(parts)
    if loss["norm"] == "constant":
        return sum(sum(p) / loss["constant"] for p in parts) / len(parts)
    return sum(sum(p) for p in parts) / sum(len(p) for p in parts)


def gradient(batch, loss):
    new = [list(s["new"]) for s in batch]
    frozen = [list(s["new"]) for s in batch]
    h = 1e-5
    grads = []
    for j, s in enumerate(batch):
        row = []
        for i in range(len(s["new"])):
            at = new[j][i]
            # Richardson: the error of the central difference falls from h^2 to h^4
            d = []
            for step in (h, 2 * h):
                new[j][i] = at + step
                up = value(batch, new, frozen, loss)
                new[j][i] = at - step
                down = value(batch, new, frozen, loss)
                d.append((up - down) / (2 * step))
            new[j][i] = at
            row.append((4 * d[0] - d[1]) / 3)
        grads.append(row)
    return grads


LOSSES = [
    {"name": "grpo", "kind": "ppo", "norm": "sequence", "low": 0.2, "high": 0.2, "beta": 0.0},
    {"name": "grpo", "kind": "ppo", "norm": "sequence", "low": 0.2, "high": 0.2, "beta": 0.04},
    {"name": "dr_grpo", "kind": "ppo", "norm": "constant", "constant": 16.0, "low": 0.2, "high": 0.2, "beta": 0.0},
    {"name": "kevin", "kind": "ppo", "norm": "constant", "constant": 16.0, "low": 0.2, "high": 0.28, "beta": 0.0},
    {"name": "dapo", "kind": "ppo", "norm": "token", "low": 0.2, "high": 0.28, "beta": 0.0},
    {"name": "bnpo", "kind": "ppo", "norm": "token", "low": 0.2, "high": 0.2, "beta": 0.0},
    {"name": "cispo", "kind": "cispo", "norm": "token", "low": 0.3, "high": 0.3, "beta": 0.0},
    {"name": "gspo", "kind": "gspo", "norm": "sequence", "low": 3e-4, "high": 4e-4, "beta": 0.0},
    {"name": "gspo", "kind": "gspo", "norm": "sequence", "low": 0.5, "high": 0.5, "beta": 0.01},
    {"name": "kevin", "kind": "ppo", "norm": "constant", "constant": 16.0, "low": 0.2, "high": 0.28, "beta": 0.0,
     "dual": 3.0},
]


def batch_of(rng, drift):
    batch = []
    for j in range(8):
        n = rng.randint(1, 5)
        new = [rng.uniform(-3, -0.1) for _ in range(n)]
        old = [x + rng.uniform(-drift, drift) for x in new]
        ref = [x + rng.uniform(-0.5, 0.5) for x in new] if rng.random() < 0.5 else []
        mask = [rng.random() < 0.75 for _ in range(n)] if j != 2 else [False] * n
        batch.append({"new": new, "old": old, "ref": ref, "mask": mask, "a": rng.uniform(-2, 2)})
    return batch


def row(values):
    return "{" + ", ".join(repr(v) for v in values) + "}"


def main():
    print("// Made by objectives.py. Do not edit.")
    print("// name, clip_low, clip_high, constant, beta, dual clip (0: none), samples, value, gradient")
    rng = random.Random(32)
    for loss in LOSSES:
        batch = batch_of(rng, 2.5 if "dual" in loss else 0.8)
        new = [s["new"] for s in batch]
        samples = ", ".join(
            "{%s, %s, %r, {%s}, %s}" % (row(s["new"]), row(s["old"]), s["a"],
                                        ", ".join("true" if m else "false" for m in s["mask"]), row(s["ref"]))
            for s in batch)
        print('{"%s", %r, %r, %r, %r, %r, {%s}, %r, {%s}},' % (
            loss["name"], loss["low"], loss["high"], loss.get("constant", 1.0), loss["beta"], loss.get("dual", 0.0),
            samples, value(batch, new, new, loss), ", ".join(row(g) for g in gradient(batch, loss))))


main()
