#include "plenum/base/machine.h"

#include <vector>

#include <gtest/gtest.h>

namespace plenum::base {
namespace {

TEST(Machine, KnowsItsCoresAndMemory) {
  const Machine machine = inspect_machine();
  EXPECT_GE(machine.usable_cores, 1);
  EXPECT_GT(machine.memory_bytes, 0u);
  EXPECT_LE(machine.available_memory_bytes, machine.memory_bytes);
}

TEST(Machine, PeakMemoryGrowsWithWhatIsUsed) {
  const std::uint64_t before = peak_memory_bytes();
  const std::vector<char> used(std::size_t{64} << 20, 'x');
  EXPECT_GE(peak_memory_bytes(), before + used.size() / 2);
}

}  // namespace
}  // namespace plenum::base
