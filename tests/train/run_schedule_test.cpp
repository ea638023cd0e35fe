#include "plenum/train/run_schedule.h"

#include <gmock/gmock.h>

#include "plenum/data/batches/dataset_sequences.h"
#include "plenum/data/corpus/dataset.h"
#include "plenum/schedule/generate/generator.h"
#include "plenum/train/prepared_data.h"
#include "plenum/train/starting_model.h"

#include "tests/support/expect_user_error.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

using testing::ElementsAre;

class RunSchedule : public TrainingTest {
 protected:
  RunOptions piped(std::string_view schedule, std::int64_t pp, std::int64_t ranks,
                   std::int64_t layers) const {
    RunOptions given = options("run");
    given.run.schedule = schedule;
    given.run.ranks = ranks;
    given.run.threads = ranks;
    given.run.pp = pp;
    given.model.layers = layers;
    given.data.micro_batch_tokens.reset();
    return given;
  }
  schedule::Schedule make(const RunOptions& given, std::size_t micro_batches = 8) const {
    const PreparedData dataset(given.data.directory);
    const data::SequenceSource& sequences = dataset.training();
    return make_schedule(given, starting_model(given.model, dataset), typical_work(sequences, given.data),
                         micro_batches);
  }
  std::string refusal_of(const RunOptions& given) const {
    return test::user_error_of([&] {
      given.check();
      make(given);
    });
  }
  std::int64_t micro_batches_of(const RunOptions& given) const {
    const PreparedData dataset(given.data.directory);
    const data::SequenceSource& sequences = dataset.training();
    const data::StepBatchSource batches(sequences, given.data, starting_model(given.model, dataset),
                                        given.mesh().num_replicas(), 3);
    return default_micro_batches(given, batches);
  }
};

TEST_F(RunSchedule, HasAStageForEveryRankOfThePipeline) {
  const schedule::Schedule schedule = make(piped("", 4, 8, 8));
  EXPECT_EQ(schedule.name, "1f1b");
  EXPECT_EQ(schedule.ranks.size(), 8U);
  EXPECT_EQ(schedule.num_stages(), 4U);
  EXPECT_EQ(schedule.problem.num_micro_batches, 16U);
  EXPECT_TRUE(schedule.problem.has_tied_parameters);
  EXPECT_FALSE(schedule.problem.has_tied_halves);
  for (const schedule::Generator& generator : schedule::all_generators()) {
    if (!generator.is_pipeline()) continue;
    const schedule::Schedule other = make(piped(generator.name, 4, 4, 8));
    EXPECT_EQ(other.name, generator.name);
    EXPECT_EQ(other.num_stages(), generator.has_chunks ? 8U : 4U);
  }
}

TEST_F(RunSchedule, GivesTheLastStageFewerLayersWhereHeadsCostMuch) {
  RunOptions given = piped("1f1b", 2, 2, 8);
  EXPECT_THAT(make(given).problem.stage_layers, ElementsAre(4, 4));
  describe::ModelConfig model = describe::preset("bert-tiny");
  model.num_layers = 8;
  const batch::Work work{.tokens = 100, .squared_lengths = 3000, .labels = {15}};
  EXPECT_THAT(make_schedule(given, model, work, 8).problem.stage_layers, ElementsAre(5, 3));
  given.run.stage_layers = {3, 5};
  EXPECT_THAT(make(given).problem.stage_layers, ElementsAre(3, 5));
  EXPECT_EQ(schedule_text(make(given)), "1f1b, stages of 3 and 5 layers");
}

TEST_F(RunSchedule, RefusesWhatDoesNotBelongTogetherInOneLine) {
  EXPECT_EQ(
      refusal_of(piped("", 4, 6, 8)),
      "--ranks must be a multiple of --pp, since so many ranks hold a model together: --ranks 6 --pp 4");
  EXPECT_EQ(refusal_of(piped("chimera", 3, 3, 8)), "--schedule chimera needs --pp to be a multiple of 2: 3");
  EXPECT_EQ(refusal_of(piped("1f1b", 4, 4, 2)),
            "the model has 2 layers for 4 stages, and every stage needs one; give fewer --pp");
  EXPECT_EQ(refusal_of(piped("interleaved", 4, 4, 7)),
            "the model has 7 layers for 8 stages, and every stage needs one; give fewer --pp or --chunks");
  RunOptions given = piped("1f1b", 2, 2, 8);
  given.run.stage_layers = {3, 4};
  EXPECT_EQ(refusal_of(given), "--stage-layers must add up to the 8 layers of the model: 3,4");
  given.run.stage_layers = {3, 3, 2};
  EXPECT_EQ(refusal_of(given), "--stage-layers must have a number for each of the 2 stages: 3,3,2");
  given = piped("zb-h1", 2, 2, 8);
  given.run.recompute = schedule::Recomputation::Full;
  EXPECT_THAT(refusal_of(given), testing::HasSubstr("--recompute does not go with --schedule zb-h1"));
  given = piped("1f1b", 2, 4, 8);
  given.run.shard = schedule::Sharding::Optimizer;
  EXPECT_THAT(refusal_of(given), testing::HasSubstr("--shard does not go with --pp 2"));
  given.run.shard = schedule::Sharding::None;
  given.run.reduce_dtype = tensor::DType::BFloat16;
  EXPECT_THAT(refusal_of(given), testing::HasSubstr("--reduce-dtype bf16 does not go with --pp 2"));
}

TEST_F(RunSchedule, CutsAStepIntoFourMicroBatchesForEveryRankUnlessThereIsTooLittle) {
  RunOptions given = piped("1f1b", 2, 2, 2);
  EXPECT_EQ(micro_batches_of(given), 8);
  given.data.global_batch = "5";
  EXPECT_EQ(micro_batches_of(given), 5);
  given.run.schedule = "chimera";
  EXPECT_EQ(micro_batches_of(given), 6);
  given.data.global_batch = "12";
  given.data.micro_batch_tokens = 24;  // one sequence
  EXPECT_EQ(micro_batches_of(given), 12);
}

TEST_F(RunSchedule, ReadsTheLayersOfStages) {
  RunOptions given = options("run");
  std::vector<base::OptionTable> tables = given.tables();
  const base::Option* option = tables.front().find("stage-layers");
  option->set({"3,2,1"});
  EXPECT_THAT(given.run.stage_layers, ElementsAre(3, 2, 1));
  EXPECT_THAT(option->get(), ElementsAre("3,2,1"));
  for (const char* wrong : {"3,0", "3,", "x", "3;2"})
    EXPECT_THROW(option->set({wrong}), base::UserError) << wrong;
}

}  // namespace
}  // namespace plenum::train
