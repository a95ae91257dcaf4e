// A second translation unit in every test binary: a function or variable that is not inline breaks the link.
#ifdef KEVIN_TEST_TORCH
#include <kevin/cpu.hpp>
#include <kevin/torch.hpp>
#endif
#include <kevin/kevin.hpp>
