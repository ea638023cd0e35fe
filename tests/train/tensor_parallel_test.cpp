#include <gmock/gmock.h>

#include "plenum/train/mesh.h"
#include "plenum/train/replicas.h"
#include "plenum/train/run_plan.h"

#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

using testing::HasSubstr;

class TensorParallelRun : public TrainingTest {
 protected:
  RunOptions options_of(std::string_view name, std::int64_t ranks, std::int64_t tp, double steps = 12) const {
    RunOptions given = options(name, steps);
    given.model.heads = 4;
    given.run.ranks = ranks;
    given.run.threads = ranks;
    given.run.tp = tp;
    return given;
  }
  std::string refusal_of(const RunOptions& options) {
    try {
      run(options);
    } catch (const base::UserError& error) {
      return error.what();
    }
    return "";
  }
};

TEST(Mesh, CountsSlicesFirst) {
  const Mesh mesh(6, 2);
  EXPECT_EQ(mesh.num_replicas(), 3U);
  EXPECT_EQ(mesh.replica_of(base::Rank::at(5)), base::Rank::at(2));
  EXPECT_EQ(mesh.slice_of(base::Rank::at(5)), (describe::TensorParallel{1, 2}));
  EXPECT_THROW(Mesh(6, 4), base::UserError);
}

TEST_F(TensorParallelRun, GivesTheSameBytesTwice) {
  run(options_of("one", 4, 2));
  run(options_of("two", 4, 2));
  expect_same_checkpoint(options_of("two", 4, 2), options_of("one", 4, 2));
}

TEST_F(TensorParallelRun, BeginsWithTheWeightsOfOneRankToTheByte) {
  run(options_of("one", 1, 1, 1));
  const double loss = observer_.steps.front().outcome.loss();
  run(options_of("two", 2, 2, 1));
  EXPECT_NEAR(observer_.steps.front().outcome.loss(), loss, 1e-6 * loss);
  EXPECT_EQ(observer_.summary.num_ranks, 2U);
  EXPECT_EQ(observer_.summary.ranks_per_model, 2U);
}

TEST_F(TensorParallelRun, EvaluatesTheWholeModel) {
  run(options_of("one", 1, 1));
  const auto expected = observer_.evaluations;
  run(options_of("four", 4, 2));
  ASSERT_EQ(observer_.evaluations.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(observer_.evaluations[i].second.loss(), expected[i].second.loss(),
                1e-3 * expected[i].second.loss());
  }
}

TEST_F(TensorParallelRun, GoesOnToTheBytesOfAnUndisturbedRun) {
  run(options_of("undisturbed", 4, 2));
  const RunOptions disturbed = options_of("disturbed", 4, 2);
  run_and_stop(disturbed, 3);
  run_and_stop(disturbed, 7);
  run(disturbed);
  expect_same_checkpoint(disturbed, options_of("undisturbed", 4, 2));
}

TEST_F(TensorParallelRun, GoesOnWithAnyOtherMesh) {
  run(options_of("one", 1, 1, 16));
  std::vector<double> expected;
  for (const StepReport& report : observer_.steps) expected.push_back(report.outcome.loss());
  RunOptions given = options_of("changing", 1, 1, 16);
  std::size_t num_done = 0;
  for (const auto& [ranks, tp] : {std::pair(1, 1), std::pair(2, 2), std::pair(4, 2), std::pair(4, 4)}) {
    given.run.ranks = given.run.threads.emplace(ranks);
    given.run.tp = tp;
    num_done += 4;
    if (num_done < 16) {
      run_and_stop(given, num_done);
    } else {
      run(given);
    }
    for (const StepReport& report : observer_.steps) {
      const double loss = expected[report.step - 1];
      EXPECT_NEAR(report.outcome.loss(), loss, 1e-3 * loss) << "step " << report.step << ", tp " << tp;
    }
  }
}

TEST_F(TensorParallelRun, AnyMeshWritesTheBytesThatItRead) {
  const RunOptions one = options_of("run", 1, 1, 5);
  run(one);
  const auto expected = newest_checkpoint(one);
  const FoundCheckpoint found = verify_checkpoint(CheckpointStore(one.run.directory, 1).list().back());
  const data::Dataset dataset(one.data.directory);
  for (const auto& [ranks, tp] : {std::pair(2, 2), std::pair(4, 4), std::pair(4, 2)}) {
    const RunOptions other = options_of("copy", ranks, tp, 5);
    const RunPlan plan(other, dataset, found.model);
    Replicas replicas(plan.schedule(), plan.program());
    load(found, replicas.tensors());
    replicas.begin(found.state.step, found.state.num_updates);
    CheckpointStore(other.run.directory, 1).save(found.state, found.model, replicas.tensors());
    for (const auto& [file, bytes] : newest_checkpoint(other))
      EXPECT_TRUE(bytes == expected.at(file)) << file << " of " << ranks << " ranks, tp " << tp;
  }
}

TEST_F(TensorParallelRun, RefusesWhatCannotBeDividedInOneLine) {
  EXPECT_THAT(refusal_of(options_of("run", 3, 2)), HasSubstr("--ranks 3 --tp 2"));
  EXPECT_EQ(refusal_of(options_of("run", 3, 3)),
            "--tp must divide the number of attention heads, and 3 does not divide 4");
  RunOptions on_gpu = options_of("run", 2, 2);
  on_gpu.run.device = tensor::Device::Cuda;
  EXPECT_THAT(refusal_of(on_gpu), HasSubstr("needs several processes"));
}

}  // namespace
}  // namespace plenum::train
