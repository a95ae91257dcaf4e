// expect: Env
#include "kevin/kevin.hpp"

int main() {
  kevin::TimeLimit<int> limited(1, 2);
  return 0;
}
