// Collectives whose work cannot be done. Memory runs out here at the word of a test.

#include <cstdlib>
#include <new>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/comm/local/local_world.h"

namespace {

/// Of this thread: allocations fail.
thread_local bool is_out_of_memory = false;

}  // namespace

// Not inlined: a compiler that sees through them takes malloc and delete for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t num_bytes) {
  void* const memory = is_out_of_memory ? nullptr : std::malloc(num_bytes == 0 ? 1 : num_bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}

[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace plenum::comm {
namespace {

using testing::HasSubstr;

TEST(LocalCollective, TellsAllMembersThatOneCouldNotDoItsWork) {
  local::LocalWorld world(2);
  const std::unique_ptr<Communicator> first = world.communicator({0});
  const std::unique_ptr<Communicator> second = world.communicator({1});
  std::vector<double> one(4, 1.0);
  std::vector<double> other(4, 2.0);
  Completion done_first = first->start_all_reduce(elements_of(std::span(one)), 0);
  Completion done_second = second->start_all_reduce(elements_of(std::span(other)), 0);
  bool has_failed = false;
  is_out_of_memory = true;
  try {
    done_first.wait();
  } catch (const std::bad_alloc&) {  // nor is there memory for the message
    has_failed = true;
  }
  is_out_of_memory = false;
  EXPECT_TRUE(has_failed);
  try {
    done_second.wait();
    FAIL() << "there is no sum";
  } catch (const base::InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("out of memory"));
  }
}

}  // namespace
}  // namespace plenum::comm
