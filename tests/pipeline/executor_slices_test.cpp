// Ranks of a schedule that are several ranks of a world each: tensor parallelism.

#include <array>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "plenum/comm/local/local_world.h"
#include "plenum/pipeline/bert_program.h"
#include "plenum/pipeline/executor.h"
#include "plenum/schedule/generate/generator.h"

#include "tests/pipeline/bert_run.h"

namespace plenum::pipeline {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::StartsWith;

/// Sums a number of its own over its slices in forward, and another over all ranks where they agree.
class SlicedProgram final : public StageProgram {
 public:
  explicit SlicedProgram(double number) : reduced_{number}, agreed_{number}, summed_{number} {}

  std::function<void(const ActionRun&)> on_forward = [](const ActionRun&) {};

  void forward(const ActionRun& run) override {
    on_forward(run);
    run.slices->start_all_reduce(comm::elements_of(std::span<double>(summed_)), 7).wait();
  }
  void backward(const ActionRun&) override {}
  void square_gradient(const ActionRun&) override {}
  void update(const ActionRun&) override {}
  comm::Elements to_reduce(const ActionRun& run) override {
    return comm::elements_of(
        std::span<double>(run.action.type == schedule::ActionType::Agree ? agreed_ : reduced_));
  }
  void communicated(const ActionRun&) override {}

  double reduced() const { return reduced_[0]; }
  double agreed() const { return agreed_[0]; }
  double summed() const { return summed_[0]; }

 private:
  std::array<double, 1> reduced_, agreed_, summed_;
};

/// Two ranks of two slices each, with the numbers 1, 10, 100 and 1000.
class Slices : public testing::Test {
 protected:
  Slices() {
    for (const double number : {1.0, 10.0, 100.0, 1000.0}) {
      programs_.push_back(std::make_unique<SlicedProgram>(number));
      borrowed_.push_back(programs_.back().get());
    }
  }

  const schedule::Schedule schedule_ =
      schedule::generator_named("data-parallel")
          .generate({.num_micro_batches = 1, .num_replicas = 2, .stage_layers = {1}});
  std::vector<std::unique_ptr<SlicedProgram>> programs_;
  std::vector<StageProgram*> borrowed_;
};

TEST_F(Slices, ReduceWithTheSameSliceAndAgreeWithEveryone) {
  Executor executor(schedule_, local_ranks(borrowed_, 2));
  executor.run(1);
  std::vector<double> reduced;
  std::vector<double> agreed;
  std::vector<double> summed;
  for (const auto& program : programs_) {
    reduced.push_back(program->reduced());
    agreed.push_back(program->agreed());
    summed.push_back(program->summed());
  }
  EXPECT_THAT(reduced, ElementsAre(101, 1010, 101, 1010));
  EXPECT_THAT(agreed, ElementsAre(1111, 1111, 1111, 1111));
  EXPECT_THAT(summed, ElementsAre(11, 11, 1100, 1100));
  EXPECT_EQ(executor.measured().times.size(), 2U);
}

TEST_F(Slices, MayEachRunInAProcessOfTheirOwn) {
  comm::local::LocalWorld world(4);
  {
    std::vector<std::jthread> processes;
    for (std::size_t i = 0; i < 4; ++i) {
      processes.emplace_back([&, i] {
        std::vector<LocalRank> ranks;
        ranks.push_back(rank_of_world(*borrowed_[i], world.communicator(schedule::Rank::at(i)), 2));
        Executor(schedule_, std::move(ranks)).run(1);
      });
    }
  }
  EXPECT_EQ(programs_[3]->reduced(), 1010);
  EXPECT_EQ(programs_[3]->agreed(), 1111);
  EXPECT_EQ(programs_[3]->summed(), 1100);
}

TEST_F(Slices, AreNotNamedForAHangOfTheirPeer) {
  programs_[2]->on_forward = [](const ActionRun& run) {
    while (!run.stop.stop_requested()) std::this_thread::sleep_for(1ms);
  };
  Executor executor(schedule_, local_ranks(borrowed_, 2), {.hang_limit = 200ms});
  try {
    executor.run(1);
    FAIL() << "a hang was not noticed";
  } catch (const ExecutionError& error) {
    EXPECT_EQ(error.failure().rank, schedule::Rank::at(2));
    EXPECT_TRUE(error.failure().is_hang);
    EXPECT_THAT(error.what(), testing::HasSubstr("rank 3, compute, step 0, F0.1 waits for the other ranks"));
  }
}

TEST_F(Slices, AreNamedByTheirRankInTheWorldWhenTheyThrow) {
  programs_[3]->on_forward = [](const ActionRun&) { throw std::runtime_error("no luck"); };
  Executor executor(schedule_, local_ranks(borrowed_, 2));
  try {
    executor.run(1);
    FAIL() << "nothing was thrown";
  } catch (const ExecutionError& error) {
    EXPECT_THAT(error.what(), StartsWith("rank 3, "));
  }
}

std::size_t bytes_for(const tensor::MemoryLayout& layout, std::string_view purpose) {
  for (const tensor::MemoryLayout::Line& line : layout.lines()) {
    if (line.purpose == purpose) return line.bytes;
  }
  return 0;
}

TEST(SlicedBertProgram, TakesThePlannedMemoryAndLessThanTheWhole) {
  const describe::ModelConfig model = small_model(0.1);
  const schedule::Schedule schedule = bert_schedule(model, 2, 2);
  BertProgramOptions options{.model = model,
                             .capacity = {.rows = 60, .sequences = 6, .labels = {12, 6}, .max_length = 24},
                             .optimizer = {.kind = optim::OptimizerKind::Lamb}};
  const tensor::MemoryLayout whole = BertProgram::plan_memory(schedule, schedule::Rank::at(0), options);
  for (std::size_t index = 0; index < 4; ++index) {
    options.tensor_parallel = {.index = index, .size = 4};
    const BertProgram program(schedule, schedule::Rank::at(1), options);
    const tensor::MemoryLayout planned = BertProgram::plan_memory(schedule, schedule::Rank::at(1), options);
    EXPECT_EQ(program.memory().num_bytes(), planned.num_bytes());
    for (const std::string_view purpose : {"parameters", "gradients", "optimizer state", "activations"}) {
      EXPECT_LT(bytes_for(planned, purpose), 0.6 * static_cast<double>(bytes_for(whole, purpose))) << purpose;
      EXPECT_GT(bytes_for(planned, purpose), 0U) << purpose;
    }
  }
}

}  // namespace
}  // namespace plenum::pipeline
