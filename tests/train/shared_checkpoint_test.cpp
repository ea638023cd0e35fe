// Checkpoints that several processes write together. Processes are threads here, which share nothing but a
// world and a directory.

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "plenum/comm/local/local_world.h"
#include "plenum/describe/bert.h"
#include "plenum/train/checkpoint.h"

#include "tests/data/prepare_fixture.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_model.h"

namespace plenum::train {
namespace {

using comm::Rank;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

class SharedCheckpoints : public testing::Test {
 protected:
  SharedCheckpoints() {
    std::iota(weights_.begin(), weights_.end(), 0.0F);
    std::iota(first_moments_.begin(), first_moments_.end(), 0.25F);
    std::iota(second_moments_.begin(), second_moments_.end(), 0.5F);
  }

  /// The pieces of a buffer that each of `count` processes has, cut anywhere.
  std::vector<model::FlatPieces> divide(std::span<float> values, std::size_t count) {
    std::vector<std::vector<model::FlatPiece>> pieces(count);
    for (std::size_t begin = 0; begin < values.size();) {
      const std::size_t size = std::min<std::size_t>(1 + random_() % 40, values.size() - begin);
      pieces[random_() % count].push_back({static_cast<std::int64_t>(begin), values.subspan(begin, size)});
      begin += size;
    }
    std::vector<model::FlatPieces> divided;
    for (std::vector<model::FlatPiece>& of_one : pieces) divided.emplace_back(std::move(of_one));
    return divided;
  }

  std::vector<CheckpointTensors> divide(std::size_t count) {
    std::vector<CheckpointTensors> divided;
    const auto weights = divide(weights_, count);
    const auto first_moments = divide(first_moments_, count);
    const auto second_moments = divide(second_moments_, count);
    for (std::size_t i = 0; i < count; ++i)
      divided.push_back({table_, weights[i], first_moments[i], second_moments[i]});
    return divided;
  }

  /// Saves in as many processes as there are tensors; what each threw. Calls `on_phase` with the process.
  std::vector<std::string> save(std::uint64_t step, const std::vector<CheckpointTensors>& tensors,
                                const std::function<void(std::size_t, JointPhase)>& on_phase = {}) const {
    comm::local::LocalWorld world(tensors.size());
    std::vector<std::string> errors(tensors.size());
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      threads.emplace_back([&, i] {
        const std::unique_ptr<comm::Communicator> ranks = world.communicator(Rank::at(i));
        const Processes processes(*ranks);
        try {
          store_.save({.step = step}, config_, tensors[i], processes, [&](JointPhase phase) {
            if (on_phase) on_phase(i, phase);
          });
        } catch (const std::exception& error) {
          errors[i] = error.what();
          if (dynamic_cast<const base::UserError*>(&error) == nullptr)
            ranks->abort_all(Rank::at(i), error.what());
        }
      });
    }
    threads.clear();
    return errors;
  }

  std::string directory_of(std::uint64_t step) const {
    return directory_ / fmt::format("checkpoints/step-{:08}", step);
  }

  test::TemporaryDirectory directory_;
  std::mt19937 random_{3};
  describe::ModelConfig config_ = test::tiny_model();
  describe::ParameterTable table_{describe::describe_bert(config_)};
  std::vector<float> weights_ = std::vector<float>(static_cast<std::size_t>(table_.num_elements()));
  std::vector<float> first_moments_ = weights_;
  std::vector<float> second_moments_ = weights_;
  CheckpointStore store_{directory_.path(), 2};
};

TEST_F(SharedCheckpoints, AreTheBytesOfOneProcess) {
  const test::TemporaryDirectory other;
  CheckpointStore(other.path(), 1)
      .save({.step = 7}, config_,
            {table_, std::span(weights_), std::span(first_moments_), std::span(second_moments_)});
  const auto expected = data::contents_of(other / "checkpoints/step-00000007");
  for (const std::size_t count : {2U, 3U, 5U}) {
    EXPECT_THAT(save(7, divide(count)), Each(""));
    const auto files = data::contents_of(directory_of(7));
    ASSERT_EQ(files.size(), expected.size());
    for (const auto& [name, bytes] : expected) EXPECT_TRUE(files.at(name) == bytes) << name;
    verify_checkpoint(directory_of(7));
  }
}

TEST_F(SharedCheckpoints, AreNotThereWhereOneProcessCannotWrite) {
  ASSERT_THAT(save(1, divide(3)), Each(""));
  // Whoever fails, and at whatever part: the third process has none of the first and of the last phase.
  for (const std::size_t failing : {0U, 1U, 2U}) {
    for (const int failing_part : {1, 4}) {
      std::vector<int> num_parts(3);
      const std::vector<std::string> errors = save(2, divide(3), [&](std::size_t process, JointPhase phase) {
        if (phase == JointPhase::Works && process == failing && ++num_parts[process] == failing_part + 1)
          throw base::UserError("cannot write here: No space left on device");
      });
      EXPECT_THAT(errors, Each(fmt::format("rank {}: cannot write here: No space left on device", failing)));
      EXPECT_THAT(store_.list(), ElementsAre(directory_of(1)));
      EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_ / "checkpoints"), {}), 1);
      verify_checkpoint(directory_of(1));
    }
  }
  EXPECT_THAT(save(2, divide(3)), Each(""));
  verify_checkpoint(directory_of(2));
}

TEST_F(SharedCheckpoints, AreRefusedWhereNobodyHasAnElement) {
  std::vector<CheckpointTensors> tensors = divide(2);
  tensors[1].weights = {};
  EXPECT_THAT(save(1, tensors), Each(HasSubstr("bytes of model.safetensors")));
  EXPECT_TRUE(store_.list().empty());
}

TEST_F(SharedCheckpoints, SayWhenAProcessWaitsForOthers) {
  std::vector<std::vector<JointPhase>> phases(2);
  save(1, divide(2), [&](std::size_t process, JointPhase phase) { phases[process].push_back(phase); });
  for (const std::vector<JointPhase>& of_one : phases) {
    EXPECT_EQ(of_one.front(), JointPhase::Works);
    EXPECT_EQ(of_one.back(), JointPhase::Waits);
    EXPECT_EQ(std::ranges::count(of_one, JointPhase::Waits), 3);
  }
}

}  // namespace
}  // namespace plenum::train
