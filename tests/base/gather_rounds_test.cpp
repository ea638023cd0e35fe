#include "plenum/base/gather_rounds.h"

#include <bit>
#include <vector>

#include <gtest/gtest.h>

namespace plenum::base {
namespace {

using Records = std::vector<std::size_t>;  // the members that they are of

/// What each member holds after a round.
std::vector<Records> after_round(const GatherRound& round, const std::vector<Records>& held) {
  std::vector<Records> after = held;
  for (const GatherMessage& message : round) {
    for (std::size_t member = 0; member < held.size(); ++member) {
      const Records& sent = held[(member + message.distance) % held.size()];
      EXPECT_EQ(after[member].size(), message.distance);
      after[member].insert(after[member].end(), sent.begin(),
                           sent.begin() + static_cast<std::ptrdiff_t>(message.num_records));
    }
  }
  return after;
}

TEST(GatherRounds, BringEveryRecordToEveryMemberOnce) {
  for (std::size_t num_members = 1; num_members < 300; ++num_members) {
    std::vector<Records> held(num_members);
    for (std::size_t member = 0; member < num_members; ++member) held[member] = {member};
    for (const GatherRound& round : gather_rounds(num_members)) held = after_round(round, held);
    for (std::size_t member = 0; member < num_members; ++member) {
      Records expected(num_members);
      for (std::size_t i = 0; i < num_members; ++i) expected[i] = (member + i) % num_members;
      ASSERT_EQ(held[member], expected) << num_members << " members";
    }
  }
}

TEST(GatherRounds, AreNoMoreThanTheBinaryLogarithm) {
  for (std::size_t num_members = 1; num_members < 5000; ++num_members)
    ASSERT_LE(gather_rounds(num_members).size(), std::bit_width(num_members - 1)) << num_members;
  EXPECT_EQ(gather_rounds(1).size(), 0u);
  EXPECT_EQ(gather_rounds(16).size(), 1u);
  EXPECT_EQ(gather_rounds(17).size(), 2u);
  EXPECT_EQ(gather_rounds(257).size(), 3u);
  EXPECT_EQ(gather_rounds(4096).size(), 3u);
}

TEST(GatherRounds, HaveNoMoreMessagesThanOneToEveryOther) {
  for (std::size_t num_members = 1; num_members < 5000; ++num_members) {
    std::size_t num_messages = 0;
    for (const GatherRound& round : gather_rounds(num_members)) num_messages += round.size();
    ASSERT_EQ(num_gather_messages(num_members), num_messages) << num_members;
    ASSERT_LE(num_messages, num_members - 1) << num_members;
  }
  EXPECT_EQ(num_gather_messages(16), 15u);
  EXPECT_EQ(num_gather_messages(17), 7u);
  EXPECT_EQ(num_gather_messages(64), 14u);
  EXPECT_EQ(num_gather_messages(1024), 28u);
  EXPECT_EQ(num_gather_messages(4096), 45u);
}

}  // namespace
}  // namespace plenum::base
