#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "plenum/comm/local/local_world.h"
#include "plenum/schedule/generate/data_parallel.h"
#include "plenum/train/mesh.h"
#include "plenum/train/prepared_data.h"
#include "plenum/train/replicas.h"
#include "plenum/train/run_plan.h"
#include "plenum/train/whole_model.h"

#include "tests/support/expect_user_error.h"
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

TEST(Mesh, CountsPlacesOfAPipelineBehindSlices) {
  const Mesh mesh(12, 2, 3);
  EXPECT_EQ(mesh.num_replicas(), 2U);
  EXPECT_EQ(mesh.num_places(), 6U);
  const base::Rank rank = base::Rank::at(9);
  EXPECT_EQ(mesh.replica_of(rank), base::Rank::at(1));
  EXPECT_EQ(mesh.place_of(rank), base::Rank::at(4));
  EXPECT_EQ(mesh.index_in_replica(rank), 3U);
  EXPECT_EQ(mesh.slice_of(rank), (describe::TensorParallel{1, 2}));
  EXPECT_EQ(
      test::user_error_of([] { Mesh(8, 2, 3); }),
      "--ranks must be a multiple of --tp times --pp, since so many ranks hold a model together: --ranks "
      "8 --tp 2 --pp 3");
  EXPECT_EQ(
      test::user_error_of([] { Mesh(6, 1, 4); }),
      "--ranks must be a multiple of --pp, since so many ranks hold a model together: --ranks 6 --pp 4");
}

/// Four ranks of processes have a slice or a shard each, or a shard of a slice.
void expect_put_together(std::size_t num_slices, std::size_t num_shards) {
  describe::ModelConfig config = describe::preset("bert-tiny");
  config.vocabulary = 301;
  const Mesh mesh(num_slices * num_shards, num_slices);
  const schedule::Schedule schedule = schedule::generate_data_parallel(
      {.num_replicas = num_shards, .stage_layers = {static_cast<std::uint16_t>(config.num_layers)}});
  const ModelParts parts(config, mesh, schedule);
  WholeModel model(parts);
  const std::vector<describe::ParameterShard::LayerRange> layers = {{{0}, {1}}, {{1}, {2}}};
  std::vector<describe::ParameterShard> shards;
  std::vector<WholeModel::Holding> holdings;
  for (std::size_t i = 0; i < mesh.num_ranks(); ++i) {
    const base::Rank rank = base::Rank::at(i);
    shards.emplace_back(parts.part(rank), layers, i / num_slices, num_shards);
    holdings.push_back(num_shards == 1 ? WholeModel::Holding::of_part(parts, rank)
                                       : WholeModel::Holding::of_shard(rank, shards.back()));
  }
  float* const weights = model.weights_N().data<float>();
  for (std::int64_t i = 0; i < model.weights_N().num_elements(); ++i)
    weights[i] = static_cast<float>(i % 9973);
  comm::local::LocalWorld world(holdings.size());
  std::vector<std::unique_ptr<WholeModel>> gathered;
  for (std::size_t i = 0; i < holdings.size(); ++i) gathered.push_back(std::make_unique<WholeModel>(parts));
  {
    std::vector<std::jthread> processes;
    for (std::size_t i = 0; i < holdings.size(); ++i) {
      processes.emplace_back([&, i] {
        const describe::ParameterShard& shard = shards[i];
        std::vector<float> own(static_cast<std::size_t>(shard.num_elements()));
        for (const describe::ParameterShard::Bucket& bucket : shard.buckets()) {
          model.scatter(
              base::Rank::at(i),
              {bucket.own.begin, std::span(own).subspan(static_cast<std::size_t>(bucket.begin),
                                                        static_cast<std::size_t>(bucket.num_own()))});
        }
        gathered[i]->gather(own, holdings, *world.communicator(base::Rank::at(i)));
      });
    }
  }
  for (const std::unique_ptr<WholeModel>& one : gathered) {
    for (const describe::Parameter& parameter : parts.whole().parameters()) {
      EXPECT_TRUE(std::equal(weights + parameter.begin, weights + parameter.end(),
                             one->weights_N().data<float>() + parameter.begin))
          << parameter.name << ", " << num_slices << " slices, " << num_shards << " shards";
    }
  }
}

TEST(WholeModel, IsPutTogetherFromSlicesAndShardsOfOtherProcesses) {
  expect_put_together(2, 1);
  expect_put_together(1, 3);
  expect_put_together(2, 2);
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
  const PreparedData dataset(one.data.directory);
  for (const auto& [ranks, tp] : {std::pair(2, 2), std::pair(4, 4), std::pair(4, 2)}) {
    const RunOptions other = options_of("copy", ranks, tp, 5);
    const RunPlan plan(other, dataset, found.model);
    Replicas replicas(plan.mesh(), plan.schedule(), plan.program());
    replicas.load(found);
    replicas.begin(found.state.step, found.state.num_updates);
    CheckpointStore(other.run.directory, 1).save(found.state, found.model, replicas.tensors());
    for (const auto& [file, bytes] : newest_checkpoint(other))
      EXPECT_TRUE(bytes == expected.at(file)) << file << " of " << ranks << " ranks, tp " << tp;
  }
}

TEST_F(TensorParallelRun, LambScalesWholeTensors) {
  const auto options_with = [&](std::string_view name, std::int64_t ranks, std::int64_t tp) {
    RunOptions given = options_of(name, ranks, tp, 20);
    given.optimizer.optimizer.kind = optim::OptimizerKind::Lamb;
    given.optimizer.optimizer.clip_norm = 0;
    given.run.bucket_bytes = 1;
    return given;
  };
  run(options_with("one", 1, 1));
  const std::vector<StepReport> expected = observer_.steps;
  RunOptions sharded = options_with("sharded", 4, 2);
  sharded.run.shard = schedule::Sharding::Optimizer;
  RunOptions parameters = options_with("parameters", 4, 2);
  parameters.run.shard = schedule::Sharding::Parameters;
  for (const RunOptions& given : {options_with("two", 2, 2), options_with("four", 4, 4),
                                  options_with("both", 4, 2), sharded, parameters}) {
    run(given);
    ASSERT_EQ(observer_.steps.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double loss = expected[i].outcome.loss();
      EXPECT_NEAR(observer_.steps[i].outcome.loss(), loss, 1e-4 * loss)
          << given.run.directory << ", step " << i + 1;
    }
  }
}

TEST_F(TensorParallelRun, ShardsToTheSameBytes) {
  const auto files_of = [&](std::int64_t layers, schedule::Sharding shard) {
    const int number = static_cast<int>(shard);
    RunOptions given = options_of(std::to_string(layers) + " layers, " + std::to_string(number), 4, 2);
    given.model.layers = layers;
    given.run.shard = shard;
    given.run.bucket_bytes = 1;
    given.optimizer.optimizer.clip_norm = 0;  // norms are summed in another order
    given.data.micro_batch_tokens = 2000;     // and so are the gradients of several micro-batches
    run_and_stop(given, 3);
    run(given);
    return newest_checkpoint(given);
  };
  for (const std::int64_t layers : {1, 2}) {
    const auto expected = files_of(layers, schedule::Sharding::None);
    for (const schedule::Sharding shard : {schedule::Sharding::Optimizer, schedule::Sharding::Parameters}) {
      // With several layers the word table's gradient is summed in halves, unless gradients are sharded.
      if (layers > 1 && shard == schedule::Sharding::Parameters) continue;
      const auto files = files_of(layers, shard);
      for (const auto& [file, bytes] : expected) {
        if (file.ends_with(".safetensors")) EXPECT_TRUE(bytes == files.at(file)) << file;
      }
    }
  }
}

TEST_F(TensorParallelRun, RefusesWhatCannotBeDividedInOneLine) {
  EXPECT_THAT(refusal_of(options_of("run", 3, 2)), HasSubstr("--ranks 3 --tp 2"));
  EXPECT_EQ(refusal_of(options_of("run", 3, 3)),
            "--tp must divide the number of attention heads, and 3 does not divide 4");
  RunOptions on_gpu = options_of("run", 2, 2);
  on_gpu.run.device = tensor::Device::Cuda;
  EXPECT_THAT(refusal_of(on_gpu), HasSubstr("--gpus starts a process for each GPU"));
}

}  // namespace
}  // namespace plenum::train
