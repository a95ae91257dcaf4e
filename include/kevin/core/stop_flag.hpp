#ifndef KEVIN_CORE_STOP_FLAG_HPP
#define KEVIN_CORE_STOP_FLAG_HPP

#include <atomic>

namespace kevin {

/// A request to stop, set by whoever wants an end: another thread, or a signal handler (it is lock-free). What is under
/// way looks at it between turns. Options hold a pointer to one; null means that nobody will ask.
using StopFlag = std::atomic<bool>;
static_assert(StopFlag::is_always_lock_free);

[[nodiscard]] inline bool stop_requested(const StopFlag* flag) noexcept {
  return flag != nullptr && flag->load(std::memory_order_relaxed);
}

}  // namespace kevin

#endif  // KEVIN_CORE_STOP_FLAG_HPP
