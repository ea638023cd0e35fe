#include "plenum/optim/duration.h"

#include <gtest/gtest.h>

#include "tests/support/expect_user_error.h"

namespace plenum::optim {
namespace {

const RunLength kRun{.steps_per_epoch = 250, .tokens_per_step = 1000.5, .sequences_per_step = 8};

TEST(Duration, IsReadInEveryUnit) {
  EXPECT_EQ(parse_duration("1000st", "x"), (Duration{1000, DurationUnit::Steps}));
  EXPECT_EQ(parse_duration("1000", "x"), (Duration{1000, DurationUnit::Steps}));
  EXPECT_EQ(parse_duration("2e9tok", "x"), (Duration{2e9, DurationUnit::Tokens}));
  EXPECT_EQ(parse_duration("2e+9tok", "x"), (Duration{2e9, DurationUnit::Tokens}));
  EXPECT_EQ(parse_duration("5000sp", "x"), (Duration{5000, DurationUnit::Sequences}));
  EXPECT_EQ(parse_duration("3ep", "x"), (Duration{3, DurationUnit::Epochs}));
  EXPECT_EQ(parse_duration("1e1ep", "x"), (Duration{10, DurationUnit::Epochs}));
  EXPECT_EQ(parse_duration("0.06dur", "x"), (Duration{0.06, DurationUnit::Run}));
}

TEST(Duration, RefusesWhatIsNone) {
  for (const char* text :
       {"", "st", "ep", "3x", "3 st", "steps", "1e", "1.2.3st", "nan", "infst", "0x10st"}) {
    test::expect_user_error([&] { parse_duration(text, "warmup"); }, "warmup");
  }
  test::expect_user_error([&] { parse_duration("-3ep", "warmup"); }, "negative");
  test::expect_user_error([&] { parse_duration("1.5dur", "warmup"); }, "at most the whole run");
}

TEST(Duration, IsReadBackAsWritten) {
  for (const char* text :
       {"0st", "1000st", "2e9tok", "1e300tok", "0.1ep", "0.06dur", "1e-7dur", "123456789sp"}) {
    const Duration duration = parse_duration(text, "x");
    EXPECT_EQ(parse_duration(to_string(duration), "x"), duration) << to_string(duration);
  }
}

TEST(Interval, MayBeATime) {
  EXPECT_EQ(parse_interval("10min", "x"), (Duration{600, DurationUnit::Seconds}));
  EXPECT_EQ(parse_interval("1.5h", "x"), (Duration{5400, DurationUnit::Seconds}));
  EXPECT_EQ(parse_interval("30s", "x"), (Duration{30, DurationUnit::Seconds}));
  EXPECT_EQ(parse_interval("2d", "x"), (Duration{172800, DurationUnit::Seconds}));
  EXPECT_EQ(parse_interval("500", "x"), (Duration{500, DurationUnit::Steps}));
  for (const char* text : {"10min", "90min", "2d", "90s", "2h", "0.5s", "0.1dur"})
    EXPECT_EQ(to_string(parse_interval(text, "x")), text);
  test::expect_user_error([] { parse_interval("soon", "eval-every"); },
                          "eval-every must be a duration such as 10min");
  test::expect_user_error([] { parse_duration("10min", "steps"); }, "--stop-after 10min");
}

TEST(NumSteps, RoundsUp) {
  const auto steps = [](const char* text, std::optional<std::uint64_t> total = std::nullopt) {
    return num_steps(parse_duration(text, "x"), kRun, "x", total);
  };
  EXPECT_EQ(steps("12"), 12);
  EXPECT_EQ(steps("11.5st"), 12);
  EXPECT_EQ(steps("1001tok"), 2);
  EXPECT_EQ(steps("2001tok"), 2);
  EXPECT_EQ(steps("1tok"), 1);
  EXPECT_EQ(steps("0tok"), 0);
  EXPECT_EQ(steps("17sp"), 3);
  EXPECT_EQ(steps("1.5ep"), 375);
  EXPECT_EQ(steps("0.07dur", 100), 7);
  EXPECT_EQ(steps("1dur", 123), 123);
  EXPECT_EQ(steps("0.001dur", 10), 1);
}

TEST(NumSteps, RefusesAShareOfAnUnknownRunAndWhatIsTooLong) {
  test::expect_user_error([&] { num_steps({0.5, DurationUnit::Run}, kRun, "steps"); }, "share of the run");
  test::expect_user_error([&] { num_steps({1e300, DurationUnit::Tokens}, kRun, "steps"); }, "too long");
}

}  // namespace
}  // namespace plenum::optim
