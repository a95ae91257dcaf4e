#ifndef KEVIN_CONFIG_HPP
#define KEVIN_CONFIG_HPP

/// Every macro of the library lives here. CMake reads the version from this file.
#define KEVIN_VERSION_MAJOR 0
#define KEVIN_VERSION_MINOR 1
#define KEVIN_VERSION_PATCH 0

/// Checks a programming error (a broken precondition), never a candidate's or the machine's failure.
/// Define it before the first include of kevin to route it elsewhere.
#ifndef KEVIN_ASSERT
#include <cassert>
#define KEVIN_ASSERT(condition) assert(condition)
#endif

#endif  // KEVIN_CONFIG_HPP
