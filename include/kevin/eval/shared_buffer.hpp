#ifndef KEVIN_EVAL_SHARED_BUFFER_HPP
#define KEVIN_EVAL_SHARED_BUFFER_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kevin/eval/descriptor.hpp"
#include "kevin/eval/memory_file.hpp"

namespace kevin::eval {

/// What the runner may do with a shared buffer.
enum class Access : std::uint8_t { read_only, read_write };

/// Memory of one tensor, shared by judge and runner.
///
/// The judge holds a writable mapping in both cases. With Access::read_only the file is sealed after that mapping was
/// made (F_SEAL_FUTURE_WRITE): no descriptor of it, in no process, can ever be written to or mapped writable again, and
/// mprotect on the runner's mapping fails. So inputs need no integrity check: they cannot change.
///
/// Layout of the file, whole pages: [slack][tensor][slack]. The tensor starts at a multiple of 64 bytes and ends as
/// near to the end of the last page as that allows, because what follows in the runner is a guard page: an access past
/// the end faults at once, or lands in fewer than 64 bytes of slack. Both slacks hold random canary bytes: intact()
/// tells whether somebody wrote to them. (A canary alone would miss reads; a guard page alone would miss the last few
/// bytes.)
class SharedBuffer {
 public:
  static constexpr std::size_t alignment = 64;

  /// `bytes` of zeros between canaries. Throws Error(resource | unsupported).
  SharedBuffer(std::size_t bytes, Access access) : bytes_(bytes), access_(access) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t padded = (bytes + alignment - 1) / alignment * alignment;
    mapped_ = (padded + page - 1) / page * page;
    if (mapped_ == 0) mapped_ = page;
    offset_ = mapped_ - padded;
    file_ = detail::create_memory_file("kevin-buffer", false);
    if (::ftruncate(file_.get(), static_cast<off_t>(mapped_)) != 0) detail::throw_errno("sizing a shared buffer");
    // populated at once: page faults must not fall into a timed call
    void* memory = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file_.get(), 0);
    if (memory == MAP_FAILED) detail::throw_errno("mapping a shared buffer of " + std::to_string(mapped_) + " bytes");
    memory_ = static_cast<std::byte*>(memory);
    try {
      detail::seal(file_, F_SEAL_SHRINK | F_SEAL_GROW | (access == Access::read_only ? detail::seal_future_write : 0));
      canary_.resize(mapped_ - bytes_);
      secret_bytes(canary_);
    } catch (...) {
      ::munmap(memory_, mapped_);
      throw;
    }
    if (offset_ > 0) std::memcpy(memory_, canary_.data(), offset_);
    if (after() > 0) std::memcpy(data() + bytes_, canary_.data() + offset_, after());
  }

  SharedBuffer(SharedBuffer&& other) noexcept
      : bytes_(other.bytes_),
        mapped_(other.mapped_),
        offset_(other.offset_),
        access_(other.access_),
        file_(std::move(other.file_)),
        memory_(std::exchange(other.memory_, nullptr)),
        canary_(std::move(other.canary_)) {}
  SharedBuffer& operator=(SharedBuffer&&) = delete;
  SharedBuffer(const SharedBuffer&) = delete;
  SharedBuffer& operator=(const SharedBuffer&) = delete;
  ~SharedBuffer() {
    if (memory_ != nullptr) ::munmap(memory_, mapped_);
  }

  /// The tensor, in the judge's own writable mapping.
  [[nodiscard]] std::byte* data() noexcept { return memory_ + offset_; }
  [[nodiscard]] const std::byte* data() const noexcept { return memory_ + offset_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  [[nodiscard]] Access access() const noexcept { return access_; }
  [[nodiscard]] int descriptor() const noexcept { return file_.get(); }
  /// Size of the file and of every mapping of it: whole pages.
  [[nodiscard]] std::size_t mapped_bytes() const noexcept { return mapped_; }
  /// Where the tensor starts in the file.
  [[nodiscard]] std::size_t offset() const noexcept { return offset_; }

  /// Whether the bytes around the tensor are as they were made.
  [[nodiscard]] bool intact() const noexcept {
    return (offset_ == 0 || std::memcmp(memory_, canary_.data(), offset_) == 0) &&
           (after() == 0 || std::memcmp(data() + bytes_, canary_.data() + offset_, after()) == 0);
  }

 private:
  [[nodiscard]] std::size_t after() const noexcept { return mapped_ - offset_ - bytes_; }

  std::size_t bytes_;
  std::size_t mapped_ = 0;
  std::size_t offset_ = 0;
  Access access_;
  Descriptor file_;
  std::byte* memory_ = nullptr;
  std::vector<std::byte> canary_;  // slack before, then slack after
};

}  // namespace kevin::eval

#endif  // KEVIN_EVAL_SHARED_BUFFER_HPP
