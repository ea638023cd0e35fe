#include "plenum/train/run_warnings.h"

#include <gmock/gmock.h>

#include "plenum/base/units.h"
#include "plenum/train/prepared_data.h"
#include "plenum/train/starting_model.h"

#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class RunWarnings : public TrainingTest {
 protected:
  std::vector<std::string> warnings(const RunOptions& given, std::uint64_t step = 0) const {
    const PreparedData dataset(dataset_);
    const RunPlan plan(given, dataset, starting_model(given.model, dataset));
    TrainingState state;
    state.step = step;
    return warnings_of(given, plan, state);
  }
};

TEST_F(RunWarnings, AreNotNeededForAnOrdinaryRun) {
  EXPECT_THAT(warnings(options("run", 20)), IsEmpty());
}

TEST_F(RunWarnings, TellOfABatchThatIsLargerThanTheData) {
  RunOptions given = options("run", 20);
  const PreparedData dataset(dataset_);
  const std::uint64_t sequences = dataset.training().histogram().num_sequences();
  const std::uint64_t tokens = dataset.training().histogram().num_tokens();
  given.data.global_batch = fmt::format("{}", sequences);
  EXPECT_THAT(warnings(given), IsEmpty()) << "who asks for all of it gets all of it";
  given.data.global_batch = fmt::format("{}", sequences + 1);
  EXPECT_THAT(warnings(given),
              ElementsAre(HasSubstr(fmt::format("is more than the dataset has, {} sequences: every step "
                                                "trains on all of it, a whole epoch",
                                                sequences))));
  given.data.global_batch = "1000000tok";
  EXPECT_THAT(warnings(given), ElementsAre(HasSubstr(fmt::format("--global-batch 1000000tok is more than the "
                                                                 "dataset has, {} tokens",
                                                                 base::format_count(tokens)))));
}

TEST_F(RunWarnings, TellOfRanksWithNothingToDo) {
  RunOptions given = options("run", 20);
  given.run.ranks = 12;
  given.run.threads = 12;
  EXPECT_THAT(warnings(given), IsEmpty());
  given.run.ranks = 13;
  given.run.threads = 13;
  EXPECT_THAT(warnings(given), ElementsAre(AllOf(HasSubstr("--ranks 13"), HasSubstr("12 parts at most"),
                                                 HasSubstr("nothing to do: 1 rank;"))));
}

TEST_F(RunWarnings, TellOfPipelinesThatAreMostlyIdle) {
  RunOptions given = options("run", 20);
  given.run.schedule = "1f1b";
  EXPECT_THAT(warnings(given), ElementsAre(HasSubstr("no effect without --pp")));
  given.run.ranks = given.run.threads.emplace(2);
  given.run.pp = 2;
  given.data.micro_batch_tokens.reset();
  given.data.micro_batches = 2;
  EXPECT_THAT(warnings(given), IsEmpty());
  given.data.micro_batches = 1;
  EXPECT_THAT(warnings(given), ElementsAre(HasSubstr("1 micro-batch for a pipeline of 2 ranks")));
}

TEST_F(RunWarnings, TellOfMasksThatLeaveNothingToPredictFrom) {
  RunOptions given = options("run", 20);
  given.data.mask_rate = 0.5;
  EXPECT_THAT(warnings(given), IsEmpty());
  given.data.mask_rate = 1;
  EXPECT_THAT(warnings(given), ElementsAre(HasSubstr("--mask-rate 1 masks")));
}

TEST_F(RunWarnings, TellOfAWarmupThatIsAsLongAsTheRun) {
  RunOptions given = options("run", 20);
  given.optimizer.learning_rate.warmup = {19, optim::DurationUnit::Steps};
  EXPECT_THAT(warnings(given), IsEmpty());
  given.optimizer.learning_rate.warmup = {20, optim::DurationUnit::Steps};
  EXPECT_THAT(warnings(given), ElementsAre(HasSubstr("--warmup 20st is as long as the run, 20 steps")));
}

TEST_F(RunWarnings, TellOfARunThatTrainsNothing) {
  RunOptions given = options("run", 1);
  given.optimizer.learning_rate.warmup = {1, optim::DurationUnit::Steps};
  EXPECT_THAT(warnings(given), ElementsAre(HasSubstr("the learning rate is 0 in all steps that are left")));
  given.optimizer.learning_rate = {.peak = 1, .schedule = optim::LearningRateSchedule::Polynomial};
  EXPECT_THAT(warnings(given), ElementsAre(HasSubstr("the learning rate is 0 in all steps that are left")));
}

TEST_F(RunWarnings, TellOfOptionsOfAnotherSchedule) {
  RunOptions given = options("run", 20);
  given.optimizer.learning_rate.power = 2;
  EXPECT_THAT(warnings(given), ElementsAre(HasSubstr("--power 2 has no effect")));
  given.optimizer.learning_rate.schedule = optim::LearningRateSchedule::Polynomial;
  EXPECT_THAT(warnings(given), IsEmpty());
  given.optimizer.learning_rate.decay = {0.2, optim::DurationUnit::Run};
  EXPECT_THAT(warnings(given), ElementsAre(HasSubstr("--decay-duration 0.2dur has no effect")));
}

TEST_F(RunWarnings, TellOfAnEarlyStopThatCannotCome) {
  RunOptions given = options("run", 20);
  given.evaluation.every = {5, optim::DurationUnit::Steps};
  given.evaluation.stop_when_worse = 2;
  EXPECT_THAT(warnings(given), IsEmpty());
  given.evaluation.stop_when_worse = 3;
  EXPECT_THAT(warnings(given), ElementsAre(HasSubstr("--stop-when-worse 3 cannot end this run early, which "
                                                     "has 4 evaluations")));
  given.evaluation.every = {1, optim::DurationUnit::Seconds};
  EXPECT_THAT(warnings(given), IsEmpty()) << "nobody knows how many there will be";
}

TEST_F(RunWarnings, TellOfTooLittleTrainingForATrainedModel) {
  const RunOptions first = options("first", 2);
  run(first);
  RunOptions given = options("run", 99);
  given.model = {};
  given.model.init = CheckpointStore(first.run.directory, 1).list().back();
  EXPECT_THAT(warnings(given), ElementsAre(AllOf(HasSubstr("99 steps of about"),
                                                 HasSubstr("are few at a learning rate of 0.01"))));
  EXPECT_THAT(warnings(given, 1), IsEmpty()) << "it was told when the run began";
  given.run.steps = {1e7, optim::DurationUnit::Tokens};
  EXPECT_THAT(warnings(given), IsEmpty());
  given.run.steps = {1e4, optim::DurationUnit::Tokens};
  EXPECT_THAT(warnings(given), ElementsAre(HasSubstr("are few")));
}

TEST_F(RunWarnings, ReachWhoeverStartsTheRun) {
  RunOptions given = options("run", 2);
  given.data.mask_rate = 1;
  run(given);
  EXPECT_THAT(observer_.notes, Contains(HasSubstr("--mask-rate 1 masks")));
  run(given);
  EXPECT_THAT(observer_.notes, testing::Not(Contains(HasSubstr("--mask-rate"))))
      << "nothing is left to be done";
}

}  // namespace
}  // namespace plenum::train
