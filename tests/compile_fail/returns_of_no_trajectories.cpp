// expect: Trajectory
#include "kevin/kevin.hpp"

int main() {
  const std::vector<int> group{1, 2};
  return static_cast<int>(kevin::rl::returns(group).size());
}
