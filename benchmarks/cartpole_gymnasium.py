"""Steps a second of CartPole-v1 with random actions in Gymnasium and EnvPool; prints "name million-steps-a-second" a line.

usage: cartpole_gymnasium.py [SECONDS]    for each way (default 2)

A step is one step of one environment. Actions are drawn beforehand, so that drawing them costs nothing here.
"""

import sys
import time


def report(name, steps, seconds):
    print(f"{name:<24} {steps / seconds / 1e6:8.3f}", flush=True)


def gymnasium_single(seconds):
    import gymnasium
    import numpy

    env = gymnasium.make("CartPole-v1")
    actions = numpy.random.default_rng(0).integers(0, 2, 1 << 16).tolist()
    env.reset(seed=0)
    steps, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        for action in actions[:2048]:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        steps += 2048
    report("gymnasium_make", steps, elapsed)


def vector(name, env, count, seconds):
    """`env` steps `count` environments at once and resets those that have ended."""
    import numpy

    actions = numpy.random.default_rng(0).integers(0, 2, (256, count))
    env.reset()
    steps, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        for action in actions:
            env.step(action)
        steps += actions.size
    report(name, steps, elapsed)


def gymnasium_vector(seconds, count=64):
    import gymnasium

    # "vectorize_custom" is CartPole's own NumPy form, the fastest that Gymnasium has; "sync" steps one after the other.
    vector("gymnasium_sync", gymnasium.make_vec("CartPole-v1", num_envs=count, vectorization_mode="sync"), count, seconds)
    custom = gymnasium.make_vec("CartPole-v1", num_envs=1024, vectorization_mode="vector_entry_point")
    vector("gymnasium_numpy_1024", custom, 1024, seconds)


def envpool(seconds):
    import envpool as pool

    for count in (1, 64, 1024):
        env = pool.make_gymnasium("CartPole-v1", num_envs=count, num_threads=1)
        vector(f"envpool_{count}", env, count, seconds)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    for measure in (gymnasium_single, gymnasium_vector, envpool):
        try:
            measure(seconds)
        except ImportError as error:
            print(f"# {measure.__name__}: not measured, {error}", flush=True)


if __name__ == "__main__":
    main()
