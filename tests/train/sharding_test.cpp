// Runs whose ranks divide the optimizer's state, their checkpoints, and how they resume.

#include <gmock/gmock.h>

#include "plenum/describe/bert.h"
#include "plenum/plan/gradient_buckets.h"
#include "plenum/train/prepared_data.h"
#include "plenum/train/run_plan.h"

#include "tests/support/bytes_for.h"
#include "tests/support/expect_user_error.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

using optim::OptimizerKind;
using schedule::Sharding;
using testing::HasSubstr;

TEST(GradientBuckets, AreWholeLayersOfAtMostTheBytesAskedFor) {
  const auto buckets = [](const char* preset, std::int64_t bytes) {
    return plan::num_gradient_buckets(
        describe::ParameterTable(describe::describe_bert(describe::preset(preset))), bytes);
  };
  // A layer of BERT-base has 7.1 million parameters: 28 MB.
  EXPECT_EQ(buckets("bert-base", plan::kBucketBytes), 12U);
  EXPECT_EQ(buckets("bert-base", 60'000'000), 6U);
  EXPECT_EQ(buckets("bert-base", 1), 12U);
  EXPECT_EQ(buckets("bert-base", 1'000'000'000), 1U);
  EXPECT_EQ(buckets("bert-tiny", plan::kBucketBytes), 1U);
}

class ShardedTraining : public TrainingTest {
 protected:
  RunOptions sharded(std::string_view run, Sharding shard, std::int64_t ranks, double steps = 8) const {
    RunOptions given = options(run, steps);
    given.run.ranks = ranks;
    given.run.threads = ranks;
    given.run.shard = shard;
    given.run.bucket_bytes = 1;
    given.model.layers = 4;  // so many buckets that some share a place
    given.optimizer.learning_rate.peak = 1e-3;
    return given;
  }

  std::vector<double> losses() const {
    std::vector<double> all;
    for (const StepReport& step : observer_.steps) all.push_back(step.outcome.loss());
    return all;
  }
};

constexpr Sharding kShardings[] = {Sharding::Optimizer, Sharding::Gradients, Sharding::Parameters};

TEST_F(ShardedTraining, WritesTheFilesOfReplicasWhereNothingIsClipped) {
  for (const std::int64_t layers : {1, 2}) {
    const std::string name = std::to_string(layers);
    RunOptions replicas = sharded("replicas " + name, Sharding::None, 3);
    replicas.model.layers = layers;
    replicas.data.micro_batch_tokens = 2000;
    replicas.optimizer.optimizer.clip_norm = 0;
    run(replicas);
    for (const Sharding shard : kShardings) {
      // With several layers the word table's gradient is summed in halves, unless every micro-batch is by
      // itself.
      if (layers > 1 && shard != Sharding::Optimizer) continue;
      RunOptions other = replicas;
      other.run.directory = directory_ / ("sharded " + name + std::to_string(static_cast<int>(shard)));
      other.run.shard = shard;
      run(other);
      const std::map<std::string, std::string> files = newest_checkpoint(other);
      for (const auto& [file, bytes] : newest_checkpoint(replicas)) {
        if (file.ends_with(".safetensors")) EXPECT_TRUE(files.at(file) == bytes) << file;
      }
    }
  }
}

TEST_F(ShardedTraining, AStoppedRunEndsWithTheBytesOfOneThatWasNot) {
  for (const Sharding shard : kShardings) {
    for (const OptimizerKind kind : {OptimizerKind::AdamW, OptimizerKind::Lamb}) {
      const std::string name =
          std::to_string(static_cast<int>(kind)) + std::to_string(static_cast<int>(shard));
      RunOptions whole = sharded("whole " + name, shard, 3);
      whole.optimizer.optimizer.kind = kind;
      RunOptions stopped = whole;
      stopped.run.directory = directory_ / ("stopped " + name);
      run(whole);
      run_and_stop(stopped, 3);
      run(stopped);
      expect_same_checkpoint(stopped, whole);
    }
  }
}

TEST_F(ShardedTraining, GoesOnWithAnotherShardingAndAnotherNumberOfRanks) {
  run(sharded("alone", Sharding::None, 1));
  const std::vector<double> expected = losses();
  struct Part {
    Sharding shard;
    std::int64_t ranks;
  };
  const std::vector<std::pair<Part, Part>> ways = {{{Sharding::Optimizer, 2}, {Sharding::None, 1}},
                                                   {{Sharding::None, 2}, {Sharding::Gradients, 4}},
                                                   {{Sharding::Gradients, 4}, {Sharding::Optimizer, 3}},
                                                   {{Sharding::Parameters, 3}, {Sharding::None, 1}},
                                                   {{Sharding::Optimizer, 2}, {Sharding::Parameters, 4}},
                                                   {{Sharding::Parameters, 4}, {Sharding::Parameters, 2}}};
  for (std::size_t i = 0; i < ways.size(); ++i) {
    SCOPED_TRACE(i);
    const std::string name = "way " + std::to_string(i);
    run_and_stop(sharded(name, ways[i].first.shard, ways[i].first.ranks), 4);
    std::vector<double> all = losses();
    run(sharded(name, ways[i].second.shard, ways[i].second.ranks));
    const std::vector<double> rest = losses();
    all.insert(all.end(), rest.begin(), rest.end());
    ASSERT_EQ(all.size(), expected.size());
    for (std::size_t step = 0; step < all.size(); ++step) {
      EXPECT_NEAR(all[step], expected[step], 1e-4 * expected[step]) << "step " << step;
    }
  }
}

TEST_F(ShardedTraining, EvaluatesAndExportsWholeWeights) {
  run(sharded("alone", Sharding::None, 1));
  const double expected = observer_.evaluations.back().second.loss();
  for (const Sharding shard : kShardings) {
    run(sharded("sharded " + std::to_string(static_cast<int>(shard)), shard, 2));
    EXPECT_NEAR(observer_.evaluations.back().second.loss(), expected, 1e-4 * expected);
  }
}

TEST_F(ShardedTraining, SaysIntoHowManyBucketsGradientsAreCut) {
  RunOptions given = sharded("said", Sharding::Optimizer, 2, 1);
  given.run.bucket_bytes.reset();
  run(given);
  EXPECT_THAT(observer_.choices, testing::Contains(HasSubstr("one bucket")));
  EXPECT_THAT(observer_.choices, testing::Contains(HasSubstr("--bucket-bytes")));
}

TEST_F(ShardedTraining, OnAGpuEvaluatesWithTheWeightsThatItHasGatheredForTraining) {
  const PreparedData dataset(dataset_);
  const describe::ModelConfig model = describe::preset("bert-mini");
  const auto N =
      static_cast<std::size_t>(describe::ParameterTable(describe::describe_bert(model)).num_elements());
  for (const Sharding shard : {Sharding::None, Sharding::Optimizer, Sharding::Gradients}) {
    RunOptions given = sharded("gpu", shard, 2);
    given.run.device = tensor::Device::Cuda;
    EXPECT_EQ(test::bytes_for(RunPlan(given, dataset, model, base::Rank{1}).memory(), "whole weights"), 0U);
  }
  // Nothing but shards lives through a step: evaluation has weights of its own, in fp32 and bf16.
  RunOptions given = sharded("gpu", Sharding::Parameters, 2);
  given.run.device = tensor::Device::Cuda;
  EXPECT_EQ(test::bytes_for(RunPlan(given, dataset, model, base::Rank{1}).memory(), "whole weights"), 6 * N);
}

TEST_F(ShardedTraining, PlansLessMemoryThanReplicas) {
  const RunOptions replicas = sharded("a", Sharding::None, 4);
  const RunOptions optimizer = sharded("b", Sharding::Optimizer, 4);
  const PreparedData dataset(dataset_);
  const describe::ModelConfig model = describe::preset("bert-mini");
  const std::size_t whole = RunPlan(replicas, dataset, model).memory().planned_bytes;
  const std::size_t less = RunPlan(optimizer, dataset, model).memory().planned_bytes;
  const describe::ParameterTable table(describe::describe_bert(model));
  // Of four copies of both moments one is left, but for where shards begin.
  const double saved = 3.0 * 8.0 * static_cast<double>(table.num_elements());
  EXPECT_NEAR(static_cast<double>(whole - less), saved, 1e-3 * saved);
  // The whole weights are there once more for evaluation, and gradients and weights have places on each rank.
  const RunOptions parameters = sharded("c", Sharding::Parameters, 4);
  const auto whole_weights = [&](std::optional<base::Rank> of_process) {
    const MemoryReport planned = RunPlan(parameters, dataset, model, of_process).memory();
    std::size_t bytes = 0;
    for (const tensor::MemoryLayout::Line& line : planned.lines)
      bytes += line.purpose == "whole weights" ? line.bytes : 0;
    return bytes;
  };
  const std::size_t room = 4 * static_cast<std::size_t>(table.num_elements());
  EXPECT_EQ(whole_weights(std::nullopt), room);
  // A process gets them from others bucket by bucket; the largest is that of the embeddings.
  const auto [begin, end] = table.elements_of_layers(base::LayerId::at(0), base::LayerId::at(1));
  EXPECT_EQ(whole_weights(base::Rank::at(1)), room + 4 * static_cast<std::size_t>(end - begin));
}

}  // namespace
}  // namespace plenum::train
