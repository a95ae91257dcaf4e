// How many steps a second one thread takes through an environment that costs next to nothing: Gymnasium's CartPole-v1
// with a random policy. What is left is the price of rollout itself.
//
//   cartpole [SECONDS]     for each way of playing (default 2); prints "name million-steps-a-second" a line
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numbers>

#include <kevin/kevin.hpp>

namespace {

/// Gymnasium's CartPoleEnv: a pole on a cart, pushed to the left (0) or to the right (1), Euler steps of 20 ms.
class CartPole {
 public:
  using Observation = std::array<float, 4>;  // position, velocity, angle, angular velocity
  using Action = int;

  Observation reset(std::uint64_t seed) {
    kevin::Rng rng(seed, "cartpole");
    for (double* v : {&x_, &x_dot_, &theta_, &theta_dot_}) *v = rng.uniform(-0.05, 0.05);
    return observe();
  }

  kevin::Step<Observation> step(int action) {
    const double force = action == 1 ? 10.0 : -10.0;
    const double cosine = std::cos(theta_);
    const double sine = std::sin(theta_);
    const double temp = (force + pole_mass_length * theta_dot_ * theta_dot_ * sine) / total_mass;
    const double theta_acceleration =
        (gravity * sine - cosine * temp) / (length * (4.0 / 3.0 - pole_mass * cosine * cosine / total_mass));
    const double acceleration = temp - pole_mass_length * theta_acceleration * cosine / total_mass;
    x_ += tau * x_dot_;
    x_dot_ += tau * acceleration;
    theta_ += tau * theta_dot_;
    theta_dot_ += tau * theta_acceleration;
    const bool over = std::abs(x_) > 2.4 || std::abs(theta_) > 12 * 2 * std::numbers::pi / 360;
    return {.observation = observe(), .reward = 1.0, .terminated = over};
  }

 private:
  static constexpr double gravity = 9.8;
  static constexpr double pole_mass = 0.1;
  static constexpr double total_mass = 1.1;
  static constexpr double length = 0.5;  // half of the pole's
  static constexpr double pole_mass_length = 0.05;
  static constexpr double tau = 0.02;

  [[nodiscard]] Observation observe() const {
    return {static_cast<float>(x_), static_cast<float>(x_dot_), static_cast<float>(theta_),
            static_cast<float>(theta_dot_)};
  }

  double x_ = 0;
  double x_dot_ = 0;
  double theta_ = 0;
  double theta_dot_ = 0;
};

struct RandomPush {
  int act(const CartPole::Observation&, kevin::Rng& rng) const { return static_cast<int>(rng() >> 63U); }
};

/// Plays episodes for so many seconds; `play(seed)` plays one and returns its number of steps.
template <class Play>
void measure(const char* name, double seconds, Play play) {
  using Clock = std::chrono::steady_clock;
  std::uint64_t episodes = 0;
  std::size_t steps = 0;
  const Clock::time_point start = Clock::now();
  double elapsed = 0;
  while (elapsed < seconds) {
    for (int i = 0; i < 256; ++i) steps += play(episodes++);
    elapsed = std::chrono::duration<double>(Clock::now() - start).count();
  }
  std::printf("%-24s %8.3f\n", name, static_cast<double>(steps) / elapsed / 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 2.0;
  kevin::TimeLimit env{CartPole{}, 500};
  const RandomPush policy;
  measure("kevin_bare_loop", seconds, [&](std::uint64_t seed) {  // no rollout: reset, act and step by hand
    kevin::Rng rng(seed, "policy");
    auto observation = env.reset(seed);
    for (std::size_t steps = 1;; ++steps) {
      const auto step = env.step(policy.act(observation, rng));
      if (step.done()) return steps;
      observation = step.observation;
    }
  });
  measure("kevin_rollout", seconds,
          [&](std::uint64_t seed) { return kevin::rollout(env, policy, {.turns = 500, .seed = seed}).turns.size(); });
  measure("kevin_rollout_summary", seconds,
          [&](std::uint64_t seed) { return kevin::rollout_summary(env, policy, {.turns = 500, .seed = seed}).turns; });
}
