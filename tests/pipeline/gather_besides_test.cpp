// What is gathered of another type once a gather is done.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/schedule/generate/data_parallel.h"

#include "tests/pipeline/toy_run.h"

namespace plenum::pipeline {
namespace {

using schedule::ActionType;

/// Gathers with each first gather of some layers' parameters a whole number of every rank, too.
class GatheringToy final : public ToyProgram {
 public:
  GatheringToy(const schedule::Schedule& schedule, const schedule::Dataflow& dataflow, schedule::Rank rank)
      : ToyProgram(schedule, dataflow, rank),
        own_(rank.index()),
        numbers_(schedule.ranks.size(), -1),
        counts_(schedule.ranks.size(), 1) {}

  PartitionedElements to_gather_besides(const ActionRun& run) override {
    if (run.action.type != ActionType::GatherParameters) return {};
    std::fill(numbers_.begin(), numbers_.end(), -1);
    numbers_[own_] = number(run, own_);
    return {comm::elements_of(std::span(numbers_)), counts_};
  }
  void communicated(const ActionRun& run) override {
    ToyProgram::communicated(run);
    if (run.action.type != ActionType::GatherParameters) return;
    ++num_gathers;
    for (std::size_t rank = 0; rank < numbers_.size(); ++rank)
      num_wrong += numbers_[rank] != number(run, rank);
  }

  std::size_t num_gathers = 0;
  std::size_t num_wrong = 0;

 private:
  static std::int64_t number(const ActionRun& run, std::size_t rank) {
    return static_cast<std::int64_t>(1000 * run.step + 10 * rank + run.action.first_layer.index());
  }

  std::size_t own_;
  std::vector<std::int64_t> numbers_;
  std::vector<std::size_t> counts_;
};

TEST(Executor, GathersWhatIsOfAnotherTypeBehindParametersAndBeforeItSaysSo) {
  constexpr std::size_t kRanks = 3;
  constexpr std::uint64_t kSteps = 4;
  const schedule::Schedule schedule =
      schedule::generate_data_parallel({.num_micro_batches = 2,
                                        .num_replicas = kRanks,
                                        .stage_layers = {4},
                                        .num_buckets = 2,
                                        .sharding = schedule::Sharding::Optimizer});
  ToyRun run(schedule, {}, [](const auto& given, const schedule::Dataflow& dataflow, schedule::Rank rank) {
    return std::make_unique<GatheringToy>(given, dataflow, rank);
  });
  run.executor().run(kSteps);
  for (const std::unique_ptr<ToyProgram>& program : run.programs()) {
    const auto& toy = dynamic_cast<const GatheringToy&>(*program);
    EXPECT_EQ(toy.num_gathers, 2 * kSteps);
    EXPECT_EQ(toy.num_wrong, 0U);
  }
}

}  // namespace
}  // namespace plenum::pipeline
