// expect: Turn
#include "kevin/kevin.hpp"

struct NoReward {
  int observation;
  int action;
  bool terminated;
  bool truncated;
};
int main() {
  kevin::BasicTrajectory<NoReward> trajectory;
  return static_cast<int>(trajectory.turns.size());
}
