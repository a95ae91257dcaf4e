// expect: RewardValue
#include "kevin/kevin.hpp"

#include <string>
int main() {
  kevin::Step<int, std::string> step;
  return step.observation;
}
