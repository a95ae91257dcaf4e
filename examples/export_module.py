#!/usr/bin/env python3
"""Makes a task of a PyTorch module: NAME.pt (TorchScript) and NAME.json, which every program of kevin takes as --task.

usage: export_module.py FILE.py NAME [--train] [--redraw] [--seed N]

FILE.py is written as KernelBench's files are: a class Model, get_inputs() and, if Model takes arguments,
get_init_inputs(). Needs torch 1.13 or later. docs/guides/bring_a_module.md goes through it.
"""
import argparse
import json
import os
import runpy

import torch


def dtype_name(tensor):
    return str(tensor.dtype).replace("torch.", "")


def drawn_like(tensor, parameter=False):
    """A distribution with about the values that `tensor` has."""
    if not tensor.is_floating_point():
        return {"kind": "integer", "low": int(tensor.min()), "high": int(tensor.max()) + 1}
    low, high, mean = (float(f(tensor.double())) for f in (torch.min, torch.max, torch.mean))
    std = float(tensor.double().std(unbiased=False))
    if low == high:  # a parameter such as a norm's ones gets a spread, so that no kernel may leave it out
        return {"kind": "normal", "mean": low, "std": 0.1} if parameter else {"kind": "constant", "value": low}
    if not parameter and low >= 0 and high <= 1 and abs(std - 0.289) < 0.03:
        return {"kind": "uniform", "low": 0, "high": 1}  # torch.rand
    if not parameter and abs(mean) < 0.1 and abs(std - 1) < 0.1:
        return {"kind": "normal", "mean": 0, "std": 1}  # torch.randn
    return {"kind": "normal", "mean": float(f"{mean:.3g}"), "std": float(f"{std:.3g}")}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", help="Python file with Model, get_inputs and get_init_inputs")
    parser.add_argument("name", help="where to write: NAME.pt and NAME.json")
    parser.add_argument("--train", action="store_true", help="leave the module in training mode")
    parser.add_argument("--redraw", action="store_true",
                        help="draw the parameters anew in each run instead of keeping the module's values")
    parser.add_argument("--seed", type=int, default=0, help="for the module's own initialisation")
    args = parser.parse_args()

    source = runpy.run_path(args.file, run_name="exported")  # part of the names in the archive
    torch.manual_seed(args.seed)
    model = source["Model"](*source.get("get_init_inputs", list)()).train(args.train)
    inputs = source["get_inputs"]()
    if not all(isinstance(x, torch.Tensor) for x in inputs):
        parser.error("get_inputs() must give tensors only: put other values into get_init_inputs()")
    try:
        module = torch.jit.script(model)
    except Exception as reason:  # Python that TorchScript does not know: record what runs for these inputs instead
        print(f"torch.jit.script does not take it ({str(reason).strip().splitlines()[0]}); tracing it")
        with torch.no_grad():
            module = torch.jit.trace(model, tuple(inputs))
    torch.jit.save(module, args.name + ".pt")

    names = [a.name for a in module.forward.schema.arguments[1:]]
    base = os.path.basename(args.name)
    task = {
        "schema": "kevin.task/1",
        "id": base,
        "name": base,
        "inputs": [{"name": n, "shape": list(x.shape), "dtype": dtype_name(x), "distribution": drawn_like(x)}
                   for n, x in zip(names, inputs)],
        "module": base + ".pt",
        "training": args.train,
    }
    if args.redraw:
        task["parameters"] = [{"name": n, "init": drawn_like(p, True)} for n, p in module.named_parameters()]
    with open(args.name + ".json", "w") as file:
        file.write("{" + ",\n ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in task.items()) + "}\n")
    print(f"wrote {args.name}.pt and {args.name}.json")


if __name__ == "__main__":
    main()
