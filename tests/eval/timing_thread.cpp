#include "kevin/eval/timing_thread.hpp"

#include <doctest/doctest.h>

#include <sched.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace kevin;

TEST_CASE("TimingThread: sections run on one thread, one at a time, and are waited for") {
  eval::TimingThread timing;
  std::thread::id first;
  timing.run([&] { first = std::this_thread::get_id(); });
  CHECK(first != std::this_thread::get_id());
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  int done = 0;  // not atomic: sections must not overlap
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] {
      for (int k = 0; k < 50; ++k) {
        timing.run([&] {
          if (++inside > most) most = inside.load();
          ++done;
          --inside;
        });
      }
    });
  }
  for (auto& c : callers) c.join();
  CHECK(done == 400);
  CHECK(most == 1);
}

TEST_CASE("TimingThread: sections of two of them do not overlap either") {
  eval::TimingThread a;
  eval::TimingThread b;
  int done = 0;
  std::thread other([&] {
    for (int k = 0; k < 200; ++k) b.run([&] { ++done; });
  });
  for (int k = 0; k < 200; ++k) a.run([&] { ++done; });
  other.join();
  CHECK(done == 400);
}

TEST_CASE("TimingThread: what a section throws reaches the caller, and the thread goes on") {
  eval::TimingThread timing;
  CHECK_THROWS_AS(timing.run([] { throw std::runtime_error("inside"); }), std::runtime_error);
  int ran = 0;
  timing.run([&] { ran = 1; });
  CHECK(ran == 1);
}

TEST_CASE("PinnedThread: restricts the thread and gives back what it could use before") {
  cpu_set_t before;
  CPU_ZERO(&before);
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  {
    const cpu_set_t one = eval::nearby_processors(1);
    CHECK(CPU_COUNT(&one) == 1);
    const eval::PinnedThread pinned(one);
    cpu_set_t now;
    CPU_ZERO(&now);
    REQUIRE(::sched_getaffinity(0, sizeof now, &now) == 0);
    CHECK(CPU_EQUAL(&now, &one) != 0);
    CHECK(CPU_EQUAL(&pinned.before(), &before) != 0);
  }
  cpu_set_t after;
  CPU_ZERO(&after);
  REQUIRE(::sched_getaffinity(0, sizeof after, &after) == 0);
  CHECK(CPU_EQUAL(&after, &before) != 0);
}

TEST_CASE("nearby_processors: as many as wanted, or an Error") {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  REQUIRE(::sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  const int all = CPU_COUNT(&allowed);
  const cpu_set_t every = eval::nearby_processors(all);
  CHECK(CPU_EQUAL(&every, &allowed) != 0);
  CHECK_THROWS_AS(static_cast<void>(eval::nearby_processors(all + 1)), Error);
}
