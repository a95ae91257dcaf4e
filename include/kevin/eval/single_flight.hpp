#ifndef KEVIN_EVAL_SINGLE_FLIGHT_HPP
#define KEVIN_EVAL_SINGLE_FLIGHT_HPP

#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace kevin::eval {

/// Does the same work once for all threads that ask for it at the same time. Thread safe.
template <class Result>
class SingleFlight {
 public:
  /// What `make()` returns, or what another thread's make() returned that was already at work for `key`; then `shared`
  /// is set. What make() throws is thrown to all.
  template <class Make>
  [[nodiscard]] Result run(const std::string& key, Make make, bool& shared) {
    std::shared_ptr<Flight> flight;
    {
      std::unique_lock lock(mutex_);
      auto& slot = flights_[key];
      shared = slot != nullptr;
      if (!shared) slot = std::make_shared<Flight>();
      flight = slot;
      if (shared) {
        flight->done.wait(lock, [&] { return flight->result || flight->error; });
        if (flight->error) std::rethrow_exception(flight->error);
        return *flight->result;
      }
    }
    std::optional<Result> result;
    std::exception_ptr error;
    try {
      result = make();
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    flights_.erase(key);
    flight->result = result;
    flight->error = error;
    flight->done.notify_all();
    if (error) std::rethrow_exception(error);
    return std::move(*result);
  }

 private:
  struct Flight {
    std::condition_variable done;
    std::optional<Result> result;
    std::exception_ptr error;
  };

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Flight>, std::less<>> flights_;
};

}  // namespace kevin::eval

#endif  // KEVIN_EVAL_SINGLE_FLIGHT_HPP
