#include "plenum/schedule/replay.h"

#include <gtest/gtest.h>

#include "plenum/schedule/parse_schedule.h"

namespace plenum::schedule {
namespace {

class FreeCosts final : public CostModel {
 public:
  double seconds(Rank, const Action&) const override { return 0; }
  double latency_seconds(Rank, Rank) const override { return 0; }
};

std::size_t num_blocked(std::string_view text, std::size_t num_cycles) {
  const Schedule schedule = parse_schedule(text, "test");
  return replay(schedule, Dataflow(schedule), FreeCosts(), num_cycles).blocked.size();
}

TEST(Replay, KeepsTheOldestValuesWhileComputeIsAStepAhead) {
  // When the data lane of rank 1 comes to its last reduction, of what step t - 2 left, the compute lane makes
  // the same of step t + 1.
  EXPECT_EQ(num_blocked(R"(plenum-schedule 1
layers 1
micro-batches 2
preconditioner kfac
factors 1
staleness 2
rank 0 holds 0
rank 1 holds 0
0 compute: F0.0 B0.0 KA0.0[0]/0 KB0.0[0]/0 P0~2 U0 | KI0[0]/0~1 F0.0 B0.0 KA0.0[0]/0 KB0.0[0]/0 P0~1 U0
0 data: AR0 PG0 N | KR0[0]/0~1 AR0 PG0 N KR0[0]/0~2
1 compute: F0.1 B0.1 KA0.1[0]/0 KB0.1[0]/0 P0~2 U0 | F0.1 B0.1 KA0.1[0]/0 KB0.1[0]/0 P0~1 U0
1 data: AR0 PG0 N | KR0[0]/0~1 AR0 PG0 N KR0[0]/0~2
)",
                        6),
            0u);
}

TEST(Replay, HoldsBackALaneThatNeedsNothing) {
  EXPECT_EQ(num_blocked(R"(plenum-schedule 1
layers 1
micro-batches 1
rank 0 holds 0
0 compute: F0.0 B0.0 U0
0 copy: X
)",
                        10),
            0u);
}

}  // namespace
}  // namespace plenum::schedule
