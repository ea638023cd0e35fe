#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "plenum/comm/local/local_world.h"
#include "plenum/data/corpus/dataset_shard.h"
#include "plenum/train/run_directory.h"

#include "tests/support/expect_user_error.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

using comm::Rank;
using testing::HasSubstr;

/// Processes of a run are threads here; each has a directory for its shards.
class DataShardingTest : public TrainingTest {
 protected:
  /// The dataset of the fixture in shards, dealt out to as many directories: "node-0" and so on.
  void deal_out(std::size_t num_shards, std::size_t num_nodes) const {
    data::PrepareOptions options;
    options.inputs = {directory_ / "data.txt"};
    options.output = directory_ / "shards";
    options.vocab_path = directory_ / "data-vocab.txt";
    options.sequences.max_length = 24;
    options.holdout = 0.2;
    options.threads = 1;
    options.shards = static_cast<std::int64_t>(num_shards);
    options.overwrite = true;
    base::SilentProgress silent;
    data::prepare(options, silent);
    for (std::size_t shard = 0; shard < num_shards; ++shard) {
      const std::string node = node_of(shard % num_nodes);
      if (shard < num_nodes) std::filesystem::remove_all(node);
      std::filesystem::create_directories(node);
      std::filesystem::copy(options.output + "/" + data::shard_name(shard),
                            node + "/" + data::shard_name(shard));
    }
  }
  std::string node_of(std::size_t index) const { return directory_ / ("node-" + std::to_string(index)); }

  RunOptions options_of(std::string_view run, std::size_t count) const {
    RunOptions given = options(run, 12);
    given.run.ranks = static_cast<std::int64_t>(count);
    given.run.threads = static_cast<std::int64_t>(count);
    return given;
  }

  /// Trains in processes, each with the shards of its node. Returns what each threw.
  std::vector<std::string> train_on_nodes(const RunOptions& options) const {
    const auto count = static_cast<std::size_t>(options.run.ranks);
    comm::local::LocalWorld world(count);
    std::vector<std::string> errors(count);
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        RunOptions own = options;
        own.data.directory = node_of(i);
        own.data.sharding = data::DataSharding::Local;
        const std::unique_ptr<comm::Communicator> ranks = world.communicator(Rank::at(i));
        RecordingObserver observer;
        try {
          train(own, observer, {}, [&](const RunOptions&, const TrainingData&) { return Processes(*ranks); });
        } catch (const std::exception& error) {
          errors[i] = error.what();
          ranks->abort_all(Rank::at(i), error.what());
        }
      });
    }
    threads.clear();
    return errors;
  }
};

TEST_F(DataShardingTest, ChangesNoByteOfARun) {
  for (const auto& [count, num_shards] : {std::pair<std::size_t, std::size_t>{2, 2}, {3, 3}, {2, 5}}) {
    const std::string name = std::to_string(count) + "-" + std::to_string(num_shards);
    deal_out(num_shards, count);
    run(options_of("shared-" + name, count));
    EXPECT_THAT(train_on_nodes(options_of("local-" + name, count)), testing::Each(""));
    expect_same_checkpoint(options_of("local-" + name, count), options_of("shared-" + name, count));
  }
}

TEST_F(DataShardingTest, BringsEveryStageOfAPipelineWhatItsReplicaWorksOn) {
  deal_out(3, 2);
  const auto piped = [&](const std::string& name) {
    RunOptions given = options_of(name, 2);
    given.run.pp = 2;
    return given;
  };
  run(piped("shared"));
  EXPECT_THAT(train_on_nodes(piped("local")), testing::Each(""));
  expect_same_checkpoint(piped("local"), piped("shared"));
}

TEST_F(DataShardingTest, BringsWhatTheStepsWorkOnThatAreMeasuredToFillAPipeline) {
  deal_out(3, 2);
  const auto filled = [&](const std::string& name) {
    RunOptions given = options_of(name, 2);
    given.run.pp = 2;
    given.optimizer.optimizer.kind = optim::OptimizerKind::Kfac;
    return given;
  };
  EXPECT_THAT(train_on_nodes(filled("local")), testing::Each(""));
  RunOptions shared = filled("shared");
  shared.run.schedule = RunPaths(filled("local").run.directory).schedule;
  run(shared);
  expect_same_checkpoint(filled("local"), shared);
}

TEST_F(DataShardingTest, MayChangeWhenARunResumes) {
  deal_out(2, 2);
  // Learning rates follow from the length of a run, so both are lengthened alike.
  RunOptions shared = options_of("shared", 2);
  RunOptions mixed = options_of("mixed", 2);
  for (const double steps : {4, 8, 12}) {
    shared.run.steps.amount = steps;
    mixed.run.steps.amount = steps;
    run(shared);
    if (steps == 8) {
      run(mixed);
    } else {
      EXPECT_THAT(train_on_nodes(mixed), testing::Each(""));
    }
  }
  expect_same_checkpoint(mixed, shared);
}

TEST_F(DataShardingTest, TrainsOnAllShardsInOnePlaceAsOnTheWholeDataset) {
  deal_out(3, 3);
  run(options_of("whole", 2));
  RunOptions given = options_of("divided", 2);
  given.data.directory = directory_ / "shards";
  run(given);
  expect_same_checkpoint(given, options_of("whole", 2));
}

TEST_F(DataShardingTest, RefusesARunWithoutAllShards) {
  deal_out(3, 3);
  for (const std::string& error : train_on_nodes(options_of("run", 2)))
    EXPECT_THAT(error, HasSubstr("of the 3 shards of the dataset no process has 2;"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run/checkpoints"));
  RunOptions alone = options_of("run", 2);
  alone.data.directory = node_of(0);
  for (const data::DataSharding sharding : {data::DataSharding::Shared, data::DataSharding::Local}) {
    alone.data.sharding = sharding;
    test::expect_user_error([&] { run(alone); }, "has not all of the 3 shards of its dataset");
  }
}

TEST_F(DataShardingTest, RefusesAShardThatIsDamagedOnAnyNode) {
  deal_out(2, 2);
  const std::string path = node_of(1) + "/shard-1/train.bin";
  std::string bytes = io::read_file(path);
  bytes[bytes.size() / 2] ^= 4;
  io::write_file(path, bytes);
  EXPECT_THAT(train_on_nodes(options_of("run", 2)), testing::Each(HasSubstr("shard-1/train.bin is damaged")));
}

}  // namespace
}  // namespace plenum::train
