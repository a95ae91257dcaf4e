#include "kevin/core/threads.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

using kevin::detail::Condition;
using kevin::detail::Lock;
using kevin::detail::Mutex;
using kevin::detail::Thread;

TEST_CASE("a thread is joined by its destructor") {
  bool ran = false;  // not atomic: joining is what makes it visible
  {
    const Thread thread([&] { ran = true; });
  }
  CHECK(ran);
}

TEST_CASE("a moved thread is joined once, by its new owner") {
  int runs = 0;
  {
    Thread first([&] { ++runs; });
    const Thread second(std::move(first));
  }
  CHECK(runs == 1);
}

TEST_CASE("threads in a vector are all joined when it is cleared") {
  std::atomic<int> runs{0};
  std::vector<Thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { ++runs; });
  threads.clear();
  CHECK(runs == 8);
}

TEST_CASE("a mutex lets one thread in at a time") {
  Mutex mutex;
  std::size_t count = 0;
  bool inside = false;
  bool shared = false;
  {
    std::vector<Thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 20000; ++i) {
          const Lock lock(mutex);
          shared = shared || inside;
          inside = true;
          ++count;
          inside = false;
        }
      });
    }
  }
  CHECK(count == 80000);
  CHECK_FALSE(shared);
}

TEST_CASE("a condition hands the lock over while it waits and holds it afterwards") {
  Mutex mutex;
  Condition changed;
  int turn = 0;  // 0 and 1 alternate
  std::vector<int> order;
  const auto play = [&](int me) {
    for (int i = 0; i < 50; ++i) {
      Lock lock(mutex);
      changed.wait(lock, [&] { return turn == me; });
      order.push_back(me);
      turn = 1 - me;
      changed.notify_one();
    }
  };
  {
    const Thread other([&] { play(1); });
    play(0);
  }
  REQUIRE(order.size() == 100);
  for (std::size_t i = 0; i < order.size(); ++i) CHECK(order[i] == static_cast<int>(i % 2));
}

TEST_CASE("notify_all wakes every waiter") {
  Mutex mutex;
  Condition changed;
  std::size_t waiting = 0;
  std::size_t woken = 0;
  bool go = false;
  {
    std::vector<Thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        Lock lock(mutex);
        ++waiting;
        changed.notify_all();
        changed.wait(lock, [&] { return go; });
        ++woken;
      });
    }
    Lock lock(mutex);
    changed.wait(lock, [&] { return waiting == 4; });
    go = true;
    changed.notify_all();
  }
  CHECK(woken == 4);
}

TEST_CASE("a condition that already holds is not waited for") {
  Mutex mutex;
  Condition never_notified;
  Lock lock(mutex);
  int asked = 0;
  never_notified.wait(lock, [&] { return ++asked == 1; });
  CHECK(asked == 1);
}

TEST_CASE("a machine runs at least one thread at once") { CHECK(kevin::detail::machine_threads() >= 1); }
