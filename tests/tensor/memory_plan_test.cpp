#include "plenum/tensor/memory_plan.h"

#include <gtest/gtest.h>

namespace plenum::tensor {
namespace {

TEST(MemoryPlan, GivesViewsWhereItPlannedThem) {
  const auto plan_all = [](MemoryPlan& plan) {
    std::vector<TensorView> views{plan.add("a", Role::Master, {3, 5})};
    const std::size_t mark = plan.mark();
    views.push_back(plan.add("b", DType::Int32, {7}));
    plan.rewind(mark);
    views.push_back(plan.add("c", DType::Float32, {100}));
    return views;
  };
  MemoryPlan sizes;
  for (const TensorView& view : plan_all(sizes)) EXPECT_FALSE(view) << "there is no memory yet";
  const Arena arena(sizes.layout());
  MemoryPlan plan(arena);
  const std::vector<TensorView> views = plan_all(plan);
  EXPECT_EQ(plan.layout().num_bytes(), arena.num_bytes());
  EXPECT_EQ(views[0].shape(), (Shape{3, 5}));
  EXPECT_EQ(views[1].dtype(), DType::Int32);
  EXPECT_EQ(views[1].raw(), views[2].raw());
  EXPECT_EQ(static_cast<std::byte*>(views[1].raw()) - static_cast<std::byte*>(views[0].raw()), 256);
  EXPECT_EQ(static_cast<std::byte*>(views[2].raw()) + 400 + 112,
            static_cast<std::byte*>(views[0].raw()) + arena.num_bytes());
}

}  // namespace
}  // namespace plenum::tensor
