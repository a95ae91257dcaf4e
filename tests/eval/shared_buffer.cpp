#include "kevin/eval/shared_buffer.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

using namespace kevin::eval;

TEST_CASE("SharedBuffer: the tensor is aligned and ends within 64 bytes of the last page's end") {
  for (const std::size_t bytes : {0UL, 1UL, 4UL, 63UL, 64UL, 65UL, 4095UL, 4096UL, 4097UL, 100'000UL}) {
    SharedBuffer b(bytes, Access::read_write);
    CHECK(b.bytes() == bytes);
    CHECK(b.mapped_bytes() % 4096 == 0);
    CHECK(b.offset() % SharedBuffer::alignment == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(b.data()) % SharedBuffer::alignment == 0);
    CHECK(b.offset() + bytes <= b.mapped_bytes());
    CHECK(b.mapped_bytes() - b.offset() - bytes < SharedBuffer::alignment);
    CHECK(b.intact());
  }
}

TEST_CASE("SharedBuffer: a write to the bytes before or after the tensor is noticed") {
  SharedBuffer b(100, Access::read_write);
  std::memset(b.data(), 0xff, 100);
  CHECK(b.intact());
  b.data()[100] ^= std::byte{1};
  CHECK_FALSE(b.intact());
  b.data()[100] ^= std::byte{1};
  CHECK(b.intact());
  *(b.data() - 1) ^= std::byte{1};
  CHECK_FALSE(b.intact());
}

TEST_CASE("SharedBuffer: canaries differ from buffer to buffer") {
  SharedBuffer a(4, Access::read_write);
  SharedBuffer b(4, Access::read_write);
  CHECK(std::memcmp(a.data() + 4, b.data() + 4, 60) != 0);
}

TEST_CASE("SharedBuffer: read-only memory cannot be written by any other way than the judge's mapping") {
  SharedBuffer b(5000, Access::read_only);
  std::memset(b.data(), 1, 5000);
  CHECK(::write(b.descriptor(), "x", 1) < 0);
  CHECK(::mmap(nullptr, b.mapped_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, b.descriptor(), 0) == MAP_FAILED);
  const std::string path = "/proc/self/fd/" + std::to_string(b.descriptor());
  const Descriptor again(::open(path.c_str(), O_RDWR));
  if (again) {
    CHECK(::write(again.get(), "x", 1) < 0);
    CHECK(::mmap(nullptr, b.mapped_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, again.get(), 0) == MAP_FAILED);
  }
  void* view = ::mmap(nullptr, b.mapped_bytes(), PROT_READ, MAP_SHARED, b.descriptor(), 0);
  REQUIRE(view != MAP_FAILED);
  CHECK(::mprotect(view, b.mapped_bytes(), PROT_READ | PROT_WRITE) != 0);
  CHECK(errno == EACCES);
  CHECK(::madvise(view, b.mapped_bytes(), MADV_REMOVE) != 0);
  // what the judge writes is seen
  std::memset(b.data(), 7, 5000);
  CHECK(static_cast<unsigned char*>(view)[b.offset() + 4999] == 7);
  ::munmap(view, b.mapped_bytes());
  CHECK(::ftruncate(b.descriptor(), 0) != 0);
  CHECK(::fcntl(b.descriptor(), F_ADD_SEALS, F_SEAL_WRITE) != 0);
}

TEST_CASE("SharedBuffer: outputs can be written through another mapping but not resized") {
  SharedBuffer b(64, Access::read_write);
  void* view = ::mmap(nullptr, b.mapped_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, b.descriptor(), 0);
  REQUIRE(view != MAP_FAILED);
  static_cast<unsigned char*>(view)[b.offset()] = 42;
  CHECK(b.data()[0] == std::byte{42});
  ::munmap(view, b.mapped_bytes());
  CHECK(::ftruncate(b.descriptor(), 0) != 0);
  CHECK(::ftruncate(b.descriptor(), 1 << 20) != 0);
}

TEST_CASE("SharedBuffer: moving keeps the memory where it is") {
  SharedBuffer a(64, Access::read_write);
  const std::byte* where = a.data();
  SharedBuffer b(std::move(a));
  CHECK(b.data() == where);
  CHECK(b.intact());
}

TEST_CASE("sealed_memory_file: holds its content and refuses every change") {
  const std::string text = "the content";
  const Descriptor file = sealed_memory_file("test", std::as_bytes(std::span(text)), true);
  char back[32] = {};
  CHECK(::pread(file.get(), back, sizeof back, 0) == static_cast<ssize_t>(text.size()));
  CHECK(back == text);
  CHECK(::pwrite(file.get(), "x", 1, 0) < 0);
  CHECK(::ftruncate(file.get(), 3) != 0);
}
