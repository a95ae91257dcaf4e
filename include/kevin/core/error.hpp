#ifndef KEVIN_CORE_ERROR_HPP
#define KEVIN_CORE_ERROR_HPP

#include <stdexcept>
#include <string>
#include <string_view>

namespace kevin {

/// What kind of infrastructure failed. A candidate's failure is a Verdict, never an Error.
enum class ErrorCode {
  bad_input,    ///< a file, option or argument from outside is malformed; the text says where
  not_found,    ///< a task, file or program does not exist
  unsupported,  ///< this machine lacks something that is needed (kernel feature, compiler, driver)
  resource,     ///< out of memory, disk, descriptors or processes
  worker_lost,  ///< a trusted helper process died or stopped answering
  order,        ///< reset, step or close called in the wrong order
  internal,     ///< a fault of this library
};

[[nodiscard]] constexpr std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::bad_input:
      return "bad_input";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::resource:
      return "resource";
    case ErrorCode::worker_lost:
      return "worker_lost";
    case ErrorCode::order:
      return "order";
    case ErrorCode::internal:
      return "internal";
  }
  return "internal";
}

/// The one exception type of the library: an infrastructure failure, with a code and a text that says what
/// happened, where, and what to do. It never becomes a reward of 0 and never ends a group of trajectories.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& what)
      : std::runtime_error(std::string(to_string(code)) + ": " + what), code_(code) {}

  [[nodiscard]] ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace kevin

#endif  // KEVIN_CORE_ERROR_HPP
