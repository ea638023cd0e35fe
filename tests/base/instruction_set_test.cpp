#include "plenum/base/instruction_set.h"

#include <gtest/gtest.h>

#include "plenum/base/check.h"

namespace plenum::base {
namespace {

TEST(InstructionSet, LevelsContainEachOther) {
  EXPECT_TRUE(!has_instruction_set("x86-64-v4") || has_instruction_set("x86-64-v3"));
  EXPECT_TRUE(!has_instruction_set("x86-64-v3") || has_instruction_set("x86-64-v2"));
  EXPECT_THROW(has_instruction_set("x86-64-v9"), InternalError);
}

TEST(InstructionSet, OfTheKernelsIsThatOfTheMachineThatBuiltThem) {
  EXPECT_TRUE(has_instruction_set(kernel_instruction_set())) << kernel_instruction_set();
  EXPECT_NO_THROW(require_kernel_instruction_set());
}

}  // namespace
}  // namespace plenum::base
