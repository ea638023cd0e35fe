#include "plenum/base/machine.h"

#include <gtest/gtest.h>

namespace plenum::base {
namespace {

TEST(Machine, KnowsItsCoresAndMemory) {
  const Machine machine = inspect_machine();
  EXPECT_GE(machine.usable_cores, 1);
  EXPECT_GT(machine.memory_bytes, 0u);
  EXPECT_LE(machine.available_memory_bytes, machine.memory_bytes);
}

}  // namespace
}  // namespace plenum::base
