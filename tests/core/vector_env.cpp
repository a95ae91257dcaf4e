#include "kevin/core/vector_env.hpp"

#include <doctest/doctest.h>

#include <thread>

#include <latch>
#include <memory>
#include <set>
#include <thread>

#include "core/toy_envs.hpp"

namespace {
/// Steps only when told to.
struct Gated : toy::Echo {
  std::shared_ptr<std::latch> gate;
  kevin::Step<int> step(int action) {
    if (gate) gate->wait();
    return Echo::step(action);
  }
};
kevin::ErrorCode code_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const kevin::Error& e) {
    return e.code();
  }
  return kevin::ErrorCode::internal;
}
}  // namespace

TEST_CASE("results come back in the order in which they are finished") {
  auto gate = std::make_shared<std::latch>(1);
  std::vector<Gated> envs(2);
  envs[0].gate = gate;
  kevin::VectorEnv<Gated> vector(std::move(envs), 2);
  vector.reset_all(1);
  CHECK(vector.receive(2).size() == 2);
  vector.send(0, 1);
  vector.send(1, 1);
  CHECK(vector.receive().env == 1);
  CHECK(vector.in_flight() == 1);
  gate->count_down();
  CHECK(vector.receive().env == 0);
}

TEST_CASE("each environment gives the same episode as when it is stepped alone") {
  kevin::VectorEnv<toy::Echo> vector(std::vector<toy::Echo>(6), 3);
  vector.reset_all(10);
  std::vector<int> shown(6);
  for (const auto& r : vector.receive(6)) {
    CHECK(r.was_reset);
    shown[r.env] = r.step.observation;
  }
  for (std::size_t i = 0; i < 6; ++i) {
    toy::Echo alone;
    CHECK(shown[i] == alone.reset(kevin::derive_seed(10, "env", i)));
  }
  std::size_t ended = 0;
  for (std::size_t i = 0; i < 6; ++i) vector.send(i, shown[i]);
  while (vector.in_flight() > 0) {
    const auto r = vector.receive();
    CHECK(r.step.reward == 1.0);
    if (r.step.terminated) {
      ++ended;
    } else {
      vector.send(r.env, r.step.observation);
    }
  }
  CHECK(ended == 6);
}

TEST_CASE("the last step's observation is the terminal one: nothing resets by itself") {
  kevin::VectorEnv<toy::Echo> vector({toy::Echo{.length = 1}});
  vector.reset(0, 5);
  const int first = vector.receive().step.observation;
  vector.send(0, first);
  const auto last = vector.receive();
  CHECK(last.step.terminated);
  toy::Echo alone{.length = 1};
  CHECK(alone.step(alone.reset(5)).observation == last.step.observation);
}

TEST_CASE("an environment that fails is a value in its own result and can be reset") {
  std::vector<toy::Failing> envs(3);
  envs[1].when = toy::Failing::When::step;
  envs[1].at_step = 0;
  kevin::VectorEnv<toy::Failing> vector(std::move(envs), 2);
  vector.reset_all(1);
  CHECK(vector.receive(3).size() == 3);
  for (std::size_t i = 0; i < 3; ++i) vector.send(i, 0);
  for (const auto& r : vector.receive(3)) {
    CHECK(r.ok() == (r.env != 1));
    if (!r.ok()) CHECK(r.error == "lost the worker");
  }
  vector.reset(1, 2);
  CHECK(vector.receive().ok());
}

TEST_CASE("misuse throws instead of hanging") {
  CHECK(code_of([] { kevin::VectorEnv<toy::Echo> none(std::vector<toy::Echo>{}); }) == kevin::ErrorCode::bad_input);
  auto gate = std::make_shared<std::latch>(1);
  std::vector<Gated> envs(1);
  envs[0].gate = gate;
  kevin::VectorEnv<Gated> vector(std::move(envs));
  CHECK(code_of([&] { static_cast<void>(vector.receive()); }) == kevin::ErrorCode::order);
  CHECK(code_of([&] { vector.send(7, 0); }) == kevin::ErrorCode::bad_input);
  vector.reset(0, 1);
  CHECK(vector.receive().ok());
  vector.send(0, 0);
  CHECK(code_of([&] { vector.send(0, 0); }) == kevin::ErrorCode::order);
  gate->count_down();
  CHECK(vector.receive().ok());
}

TEST_CASE("more environments than threads all make progress, from several sending threads") {
  kevin::VectorEnv<toy::Echo> vector(std::vector<toy::Echo>(64), 2);
  {
    std::jthread a([&] {
      for (std::size_t i = 0; i < 32; ++i) vector.reset(i, i);
    });
    std::jthread b([&] {
      for (std::size_t i = 32; i < 64; ++i) vector.reset(i, i);
    });
  }
  std::set<std::size_t> seen;
  for (const auto& r : vector.receive(64)) seen.insert(r.env);
  CHECK(seen.size() == 64);
}

TEST_CASE("destruction drops what has not begun and waits for what has") {
  kevin::VectorEnv<toy::Echo> vector(std::vector<toy::Echo>(16), 1);
  vector.reset_all(1);
}
