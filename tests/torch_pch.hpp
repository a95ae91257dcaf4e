// Precompiled for the test binaries that need LibTorch.
#include "kevin/tasks/torch.hpp"
// LibTorch defines logging macros whose names doctest uses too; doctest's win in tests.
#undef CHECK
#undef CHECK_EQ
#undef CHECK_NE
#undef CHECK_LT
#undef CHECK_LE
#undef CHECK_GT
#undef CHECK_GE
#include <doctest/doctest.h>
