#include "kevin/agent/checkpoint.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <fstream>
#include <iterator>

#include "agent/toy_policy.hpp"
#include "kevin/agent/grpo_trainer.hpp"
#include "kevin/core/rollout_group.hpp"

namespace fs = std::filesystem;
using Trainer = kevin::agent::GrpoTrainer<toy::Secret, toy::NetPolicy>;

namespace {
struct Folder {
  fs::path path = fs::temp_directory_path() / ("kevin-test-" + std::to_string(::getpid()) + "-checkpoint");
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};
void learn(toy::NetPolicy& policy, Trainer& trainer, std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t u = from; u < to; ++u) {
    trainer.update(kevin::rollout_groups([](std::size_t task, std::size_t) { return toy::Secret{.task = task}; }, 2,
                                         policy, {.trajectories = 8, .turns = 3, .seed = u, .threads = 2}));
  }
}
std::string contents(const fs::path& p) {
  std::ifstream in(p, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void put(const fs::path& p, const std::string& text) { std::ofstream(p, std::ios::binary) << text; }
}  // namespace

TEST_CASE(
    "ten updates and five, a checkpoint and five more give the same parameters and optimizer state, bit for bit") {
  const Folder folder;
  toy::NetPolicy a(1);
  Trainer whole(a);
  learn(a, whole, 0, 10);

  toy::NetPolicy b(1);
  Trainer first_half(b);
  learn(b, first_half, 0, 5);
  kevin::agent::save_checkpoint(folder.path / "half", first_half, {{"note", "half way"}});

  toy::NetPolicy c(99);  // other parameters, overwritten by the checkpoint
  Trainer second_half(c);
  const auto facts = kevin::agent::load_checkpoint(folder.path / "half", second_half);
  CHECK(facts.at("note") == "half way");
  CHECK(second_half.updates() == 5);
  learn(c, second_half, 5, 10);

  kevin::agent::save_checkpoint(folder.path / "a", whole, nlohmann::json::object());
  kevin::agent::save_checkpoint(folder.path / "c", second_half, nlohmann::json::object());
  CHECK(contents(folder.path / "a") == contents(folder.path / "c"));
  const auto pa = a.module().parameters();
  const auto pc = c.module().parameters();
  for (std::size_t i = 0; i < pa.size(); ++i) CHECK(torch::equal(pa[i], pc[i]));
}

TEST_CASE("a checkpoint that is missing, foreign, cut short or changed is refused, and the text says what to do") {
  const Folder folder;
  toy::NetPolicy policy(1);
  Trainer trainer(policy);
  const fs::path file = folder.path / "checkpoint";
  const auto refused = [&](const char* text) {
    CHECK_THROWS_WITH_AS(kevin::agent::load_checkpoint(file, trainer), doctest::Contains(text), kevin::Error);
  };
  refused("cannot read");
  kevin::agent::save_checkpoint(file, trainer, nlohmann::json::object());
  const std::string good = contents(file);
  for (const std::string& bad :
       {std::string(), std::string("{}\n"), std::string("{\"schema\":5}\n"), std::string("\x80PK\x03"),
        std::string("[1,2]\nabc"), std::string(R"({"schema":"kevin.checkpoint/1"})") + "\n"}) {
    put(file, bad);
    CHECK_THROWS_AS(kevin::agent::load_checkpoint(file, trainer), kevin::Error);
  }
  put(file, good.substr(0, good.size() - 1));
  refused("truncated or damaged; move it and its log away");
  std::string changed = good;
  changed[changed.size() / 2] ^= 1;
  put(file, changed);
  refused("truncated or damaged");
  put(file, good);
  CHECK_NOTHROW(kevin::agent::load_checkpoint(file, trainer));
}

TEST_CASE("a checkpoint of another network is refused and the text says so") {
  struct Other {
    torch::nn::Linear net{3, 3};
    void save(torch::serialize::OutputArchive& archive) const { net->save(archive); }
  };
  const Folder folder;
  kevin::agent::save_checkpoint(folder.path / "other", Other{}, nlohmann::json::object());
  toy::NetPolicy policy(1);
  Trainer trainer(policy);
  CHECK_THROWS_WITH_AS(kevin::agent::load_checkpoint(folder.path / "other", trainer),
                       doctest::Contains("does not fit this policy"), kevin::Error);
}

TEST_CASE("the file is replaced whole and no temporary file stays") {
  const Folder folder;
  toy::NetPolicy policy(1);
  Trainer trainer(policy);
  for (int i = 0; i < 3; ++i)
    kevin::agent::save_checkpoint(folder.path / "deep" / "checkpoint", trainer, nlohmann::json::object());
  std::size_t files = 0;
  for (const auto& e : fs::directory_iterator(folder.path / "deep")) files += e.is_regular_file() ? 1 : 0;
  CHECK(files == 1);
  CHECK_THROWS_AS(kevin::agent::save_checkpoint("/proc/no/such/place", trainer, nlohmann::json::object()),
                  kevin::Error);
}
