// Runs whose ranks divide the layers of the model.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "plenum/train/prepared_data.h"
#include "plenum/train/replicas.h"
#include "plenum/train/run_plan.h"
#include "plenum/train/starting_model.h"

#include "tests/support/expect_user_error.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

using testing::Contains;
using testing::HasSubstr;

struct MeshOfRun {
  std::int64_t ranks = 1;
  std::int64_t pp = 1;
  std::int64_t tp = 1;
  const char* schedule = "";
};

class PipelineRun : public TrainingTest {
 protected:
  RunOptions options_of(std::string_view name, const MeshOfRun& mesh, double steps = 12) const {
    RunOptions given = options(name, steps);
    given.model.layers = 4;
    given.model.heads = 4;
    given.optimizer.learning_rate.peak = 1e-3;
    given.run.ranks = mesh.ranks;
    given.run.threads = mesh.ranks;
    given.run.pp = mesh.pp;
    given.run.tp = mesh.tp;
    given.run.schedule = mesh.schedule;
    return given;
  }

  /// Reads a checkpoint as a run would, and writes it again.
  static void expect_copied(const RunOptions& other, const PreparedData& dataset,
                            const FoundCheckpoint& found,
                            const std::map<std::string, std::string>& expected) {
    const RunPlan plan(other, dataset, found.model);
    Replicas replicas(plan.mesh(), plan.schedule(), plan.program());
    replicas.load(found);
    replicas.begin(found.state.step, found.state.num_updates);
    CheckpointStore(other.run.directory, 1).save(found.state, found.model, replicas.tensors());
    for (const auto& [file, bytes] : newest_checkpoint(other))
      EXPECT_TRUE(bytes == expected.at(file))
          << file << ", " << other.run.schedule << " on " << other.run.ranks;
  }

  void expect_losses(const std::vector<StepReport>& expected) const {
    for (const StepReport& report : observer_.steps) {
      const double loss = expected[report.step - 1].outcome.loss();
      EXPECT_NEAR(report.outcome.loss(), loss, 1e-4 * loss) << "step " << report.step;
    }
  }
};

constexpr MeshOfRun kMeshes[] = {{4, 4, 1, "1f1b"},        {4, 4, 1, "gpipe"},   {2, 2, 1, "interleaved"},
                                 {4, 4, 1, "chimera"},     {4, 2, 1, "chimera"}, {4, 4, 1, "zb-h1"},
                                 {4, 2, 2, "interleaved"}, {8, 2, 2, "1f1b"}};

TEST_F(PipelineRun, GivesTheSameBytesTwice) {
  for (std::size_t i = 0; i < std::size(kMeshes); ++i) {
    SCOPED_TRACE(kMeshes[i].schedule);
    const RunOptions one = options_of("one" + std::to_string(i), kMeshes[i], 6);
    const RunOptions two = options_of("two" + std::to_string(i), kMeshes[i], 6);
    run(one);
    run(two);
    expect_same_checkpoint(two, one);
  }
}

TEST_F(PipelineRun, GoesOnToTheBytesOfAnUndisturbedRun) {
  const MeshOfRun mesh{4, 2, 1, "zb-h1"};
  run(options_of("undisturbed", mesh));
  const RunOptions disturbed = options_of("disturbed", mesh);
  run_and_stop(disturbed, 3);
  run_and_stop(disturbed, 7);
  run(disturbed);
  expect_same_checkpoint(disturbed, options_of("undisturbed", mesh));
}

TEST_F(PipelineRun, GoesOnWithAnyOtherMesh) {
  constexpr MeshOfRun kWay[] = {
      {4, 4, 1, "1f1b"}, {1}, {4, 2, 1, "1f1b"}, {2, 1, 2}, {4, 2, 2, "chimera"}, {2, 2, 1, "interleaved"},
      {4, 4, 1, "zb-h1"}};
  const double steps = 3.0 * std::size(kWay);
  run(options_of("alone", {1}, steps));
  const std::vector<StepReport> expected = observer_.steps;
  std::uint64_t stop = 0;
  for (const MeshOfRun& mesh : kWay) {
    SCOPED_TRACE(stop);
    stop += 3;
    const RunOptions given = options_of("changing", mesh, steps);
    if (stop < expected.size()) {
      run_and_stop(given, stop);
    } else {
      run(given);
    }
    ASSERT_FALSE(observer_.steps.empty());
    expect_losses(expected);
  }
}

TEST_F(PipelineRun, AnyMeshWritesTheBytesThatItRead) {
  const RunOptions one = options_of("run", {1}, 5);
  run(one);
  const auto expected = newest_checkpoint(one);
  const FoundCheckpoint found = verify_checkpoint(CheckpointStore(one.run.directory, 1).list().back());
  const PreparedData dataset(one.data.directory);
  for (const MeshOfRun& mesh : kMeshes) expect_copied(options_of("copy", mesh, 5), dataset, found, expected);
}

TEST_F(PipelineRun, AnyMeshWritesTheBytesThatItReadOfSoap) {
  const auto with_soap = [&](std::string_view name, const MeshOfRun& mesh) {
    RunOptions given = options_of(name, mesh, 5);
    given.optimizer.optimizer.kind = optim::OptimizerKind::Soap;
    given.optimizer.optimizer.soap = {.every = 3, .limit = 16};
    return given;
  };
  const RunOptions one = with_soap("run", {1});
  run(one);
  const auto expected = newest_checkpoint(one);
  const FoundCheckpoint found = verify_checkpoint(CheckpointStore(one.run.directory, 1).list().back());
  const PreparedData dataset(one.data.directory);
  for (const MeshOfRun& mesh : kMeshes) {
    if (mesh.tp > 1) continue;  // is refused
    expect_copied(with_soap("copy", mesh), dataset, found, expected);
  }
}

TEST_F(PipelineRun, EvaluatesTheWholeModel) {
  run(options_of("alone", {1}));
  const auto expected = observer_.evaluations;
  for (std::size_t i = 0; i < std::size(kMeshes); ++i) {
    run(options_of("run" + std::to_string(i), kMeshes[i]));
    ASSERT_EQ(observer_.evaluations.size(), expected.size());
    for (std::size_t j = 0; j < expected.size(); ++j) {
      EXPECT_NEAR(observer_.evaluations[j].second.loss(), expected[j].second.loss(),
                  1e-4 * expected[j].second.loss())
          << kMeshes[i].schedule;
    }
  }
}

TEST_F(PipelineRun, RecomputesToTheSameLosses) {
  run(options_of("alone", {1}));
  const std::vector<StepReport> expected = observer_.steps;
  for (std::size_t i = 0; i < std::size(kMeshes); ++i) {
    SCOPED_TRACE(kMeshes[i].schedule);
    RunOptions given = options_of("run" + std::to_string(i), kMeshes[i]);
    if (given.run.schedule == "zb-h1") continue;  // is refused
    given.run.recompute = i % 2 == 0 ? schedule::Recomputation::Full : schedule::Recomputation::Mlp;
    run(given);
    expect_losses(expected);
  }
}

TEST_F(PipelineRun, LambScalesTensorsThatLieOnSeveralRanks) {
  const auto with_lamb = [&](std::string_view name, const MeshOfRun& mesh) {
    RunOptions given = options_of(name, mesh, 20);
    given.optimizer.optimizer.kind = optim::OptimizerKind::Lamb;
    return given;
  };
  run(with_lamb("alone", {1}));
  const std::vector<StepReport> expected = observer_.steps;
  for (std::size_t i = 0; i < std::size(kMeshes); ++i) {
    SCOPED_TRACE(kMeshes[i].schedule);
    run(with_lamb("run" + std::to_string(i), kMeshes[i]));
    expect_losses(expected);
  }
}

TEST_F(PipelineRun, TrainsWithStagesOfAnyLayersAndAnyMicroBatches) {
  run(options_of("alone", {1}));
  const std::vector<StepReport> expected = observer_.steps;
  RunOptions given = options_of("uneven", {2, 2});
  given.run.stage_layers = {1, 3};
  run(given);
  expect_losses(expected);
  EXPECT_EQ(observer_.summary.pipeline, "1f1b, stages of 1 and 3 layers");
  given = options_of("few", {2, 2});
  given.data.micro_batch_tokens.reset();
  given.data.micro_batches = 3;
  run(given);
  expect_losses(expected);
  EXPECT_EQ(observer_.summary.micro_batches_per_rank, 3U);
  // More than there are sequences: the first are empty.
  given = options_of("many", {4, 4, 1, "zb-h1"});
  given.data.micro_batches = 20;
  run(given);
  expect_losses(expected);
}

TEST_F(PipelineRun, SaysWhichRankNeedsTheMostMemory) {
  run(options_of("run", {4, 4, 1, "1f1b"}, 2));
  const MemoryReport& memory = observer_.summary.memory;
  ASSERT_TRUE(memory.largest_rank);
  EXPECT_LT(memory.largest_rank->bytes, memory.planned_bytes / 2);
  EXPECT_THAT(memory_text(memory, 0), HasSubstr(", rank "));
  EXPECT_EQ(observer_.summary.ranks_per_model, 4U);
}

TEST_F(PipelineRun, SaysHowManyMicroBatchesWouldFit) {
  RunOptions given = options_of("run", {2, 2});
  given.data.micro_batch_tokens.reset();
  given.data.micro_batches = 1;
  const PreparedData dataset(given.data.directory);
  const auto plan_of = [&](std::int64_t count) {
    given.data.micro_batches = count;
    return std::make_unique<RunPlan>(given, dataset, starting_model(given.model, dataset));
  };
  const std::size_t of_four = plan_of(4)->memory().planned_bytes;
  const std::unique_ptr<RunPlan> of_one = plan_of(1);
  ASSERT_GT(of_one->memory().planned_bytes, of_four);
  EXPECT_THAT(test::user_error_of([&] { of_one->require_memory(of_four); }), HasSubstr("--micro-batches"));
}

TEST_F(PipelineRun, LaysEveryStageOverItsPrediction) {
  RunOptions given = options_of("run", {4, 4, 1, "1f1b"}, 10);
  given.run.process.overlay = directory_ / "overlay.svg";
  given.run.process.trace = directory_ / "step.svg";
  given.run.process.trace_step = 5;
  run(given);
  EXPECT_THAT(observer_.notes, Contains(HasSubstr("the time of 5 steps was predicted")));
  const std::string drawing = io::read_file(given.run.process.overlay);
  for (const char* rank : {"rank 0", "rank 1", "rank 2", "rank 3"}) EXPECT_THAT(drawing, HasSubstr(rank));
}

}  // namespace
}  // namespace plenum::train
