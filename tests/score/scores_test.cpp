#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/base/philox.h"
#include "plenum/score/answers.h"
#include "plenum/score/classes.h"
#include "plenum/score/correlations.h"
#include "plenum/score/entities.h"

#include "tests/support/read_golden.h"

namespace plenum::score {
namespace {

using testing::ElementsAre;
using Classes = std::vector<std::int32_t>;
using Numbers = std::vector<double>;
using Tags = std::vector<std::string_view>;

constexpr double kRounding = 1e-12;

nlohmann::json golden(const char* kind) {
  nlohmann::json cases = test::read_golden("scores.json").at(kind);
  EXPECT_GT(cases.size(), 20U);
  return cases;
}

Tags tags_in(const nlohmann::json& sentence) {
  Tags tags;
  for (const nlohmann::json& tag : sentence) tags.push_back(tag.get_ref<const std::string&>());
  return tags;
}

TEST(Classes, AreScoredAsScikitLearnScoresThem) {
  for (const nlohmann::json& one : golden("classes")) {
    const auto predicted = one.at("predicted").get<Classes>();
    const auto expected = one.at("expected").get<Classes>();
    EXPECT_NEAR(accuracy(predicted, expected), one.at("accuracy").get<double>(), kRounding) << one;
    EXPECT_NEAR(f1(predicted, expected, 1), one.at("f1").get<double>(), kRounding) << one;
    EXPECT_NEAR(macro_f1(predicted, expected), one.at("f1_macro").get<double>(), kRounding) << one;
    EXPECT_NEAR(matthews(predicted, expected), one.at("matthews").get<double>(), kRounding) << one;
  }
}

TEST(Classes, OfTheirOwnLabelsAreRightAndMatthewsDoesNotKnowTheirNames) {
  const base::RandomFunction random(1, base::Purpose::SyntheticText);
  for (std::uint64_t index = 0; index < 20; ++index) {
    Classes expected = {0, 1};
    Classes predicted = {0, 1};
    for (std::uint32_t i = 0; i < 50; ++i) {
      expected.push_back(static_cast<std::int32_t>(random(index, i)[0] % 4));
      predicted.push_back(static_cast<std::int32_t>(random(index, i)[1] % 4));
    }
    EXPECT_EQ(accuracy(expected, expected), 1);
    EXPECT_EQ(macro_f1(expected, expected), 1);
    EXPECT_NEAR(matthews(expected, expected), 1, kRounding);
    const double value = matthews(predicted, expected);
    for (Classes* classes : {&predicted, &expected}) {
      for (std::int32_t& of_one : *classes) of_one = 17 - 5 * of_one;
    }
    EXPECT_NEAR(matthews(predicted, expected), value, kRounding);
    EXPECT_NEAR(matthews(expected, predicted), value, kRounding);
  }
}

TEST(Classes, NeedAPredictionForEachLabel) {
  const Classes two = {0, 1};
  const Classes three = {0, 1, 1};
  EXPECT_THROW(accuracy(two, three), base::InternalError);
  EXPECT_THROW(matthews(Classes{}, Classes{}), base::InternalError);
}

TEST(Correlations, AreThoseOfSciPy) {
  for (const nlohmann::json& one : golden("numbers")) {
    const auto predicted = one.at("predicted").get<Numbers>();
    const auto expected = one.at("expected").get<Numbers>();
    // A shift by a million leaves ten digits of what differs.
    EXPECT_NEAR(pearson(predicted, expected), one.at("pearson").get<double>(), 1e-8) << one;
    EXPECT_NEAR(spearman(predicted, expected), one.at("spearman").get<double>(), kRounding) << one;
  }
}

TEST(Correlations, GiveEqualValuesTheMeanOfTheirRanks) {
  EXPECT_THAT(ranks_of(Numbers{3, 1, 3, 2, 3}), ElementsAre(4, 1, 4, 2, 4));
}

TEST(Correlations, AreZeroWhereNumbersDoNotDiffer) {
  const Numbers varied = {1, 2, 4};
  const Numbers constant = {0.1, 0.1, 0.1};
  EXPECT_EQ(pearson(constant, varied), 0);
  EXPECT_EQ(pearson(varied, constant), 0);
  EXPECT_EQ(spearman(constant, varied), 0);
}

TEST(Correlations, OfRanksSurviveAnyMonotoneChange) {
  const base::RandomFunction random(2, base::Purpose::SyntheticText);
  Numbers predicted;
  Numbers expected;
  for (std::uint32_t i = 0; i < 100; ++i) {
    predicted.push_back(static_cast<double>(random(0, i)[0] % 30));
    expected.push_back(predicted.back() + static_cast<double>(random(0, i)[1] % 30));
  }
  const double before = spearman(predicted, expected);
  EXPECT_GT(before, 0.2);
  for (double& value : predicted) value = std::exp(value / 10);
  EXPECT_NEAR(spearman(predicted, expected), before, kRounding);
  for (double& value : predicted) value = -value;
  EXPECT_NEAR(spearman(predicted, expected), -before, kRounding);
}

TEST(Correlations, OfWhatIsNoNumberAreNone) {
  const double nan = std::nan("");
  EXPECT_TRUE(std::isnan(pearson(Numbers{1, nan, 3}, Numbers{1, 2, 3})));
  EXPECT_TRUE(std::isnan(spearman(Numbers{1, nan, 3}, Numbers{1, 2, 3})));
  EXPECT_TRUE(std::isnan(spearman(Numbers{nan, nan}, Numbers{1, 2})));
}

TEST(Entities, AreCountedAsSeqevalCountsThem) {
  for (const nlohmann::json& one : golden("entities")) {
    EntityCounts counts;
    for (std::size_t i = 0; i < one.at("expected").size(); ++i)
      counts.add(tags_in(one.at("predicted")[i]), tags_in(one.at("expected")[i]));
    EXPECT_NEAR(counts.precision(), one.at("precision").get<double>(), kRounding) << one;
    EXPECT_NEAR(counts.recall(), one.at("recall").get<double>(), kRounding) << one;
    EXPECT_NEAR(counts.f1(), one.at("f1").get<double>(), kRounding) << one;
    std::vector<Entity> entities;
    for (const nlohmann::json& entity : one.at("entities"))
      entities.push_back(
          {entity[0].get<std::string>(), entity[1].get<std::size_t>(), entity[2].get<std::size_t>()});
    EXPECT_EQ(entities_of(tags_in(one.at("expected")[0])), entities) << one;
  }
}

TEST(Entities, OfOneTypeArePartedByB) {
  EXPECT_THAT(entities_of(Tags{"B-PER", "I-PER", "B-PER", "O", "I-PER"}),
              ElementsAre(Entity{"PER", 0, 2}, Entity{"PER", 2, 3}, Entity{"PER", 4, 5}));
}

TEST(Entities, AreTaggedByPlaceAndType) {
  const auto are_tags = [](std::vector<std::string> tags) { return are_entity_tags(tags); };
  EXPECT_TRUE(are_tags({"O", "B-PER", "I-PER"}));
  EXPECT_TRUE(are_tags({"S-LOC", "E-LOC", "O"}));
  EXPECT_FALSE(are_tags({"NN", "O"}));
  EXPECT_FALSE(are_tags({"O", "B-"}));
}

TEST(Answers, AreScoredByTheirBestMatch) {
  const AnswerWords predicted = {"eiffel", "tower", "tower"};
  const std::vector<AnswerWords> expected = {{"eiffel"}, {"tower", "eiffel"}, {"paris"}};
  EXPECT_EQ(exact_match(predicted, expected), 0);
  EXPECT_NEAR(word_f1(predicted, expected), 2 * 2.0 / 5, kRounding);
  EXPECT_EQ(exact_match({"paris"}, expected), 1);
}

TEST(Answers, AgreeThatThereIsNone) {
  EXPECT_EQ(exact_match({}, {}), 1);
  EXPECT_EQ(word_f1({}, {}), 1);
  EXPECT_EQ(word_f1({"paris"}, {}), 0);
  EXPECT_EQ(word_f1({}, std::vector<AnswerWords>{{"paris"}}), 0);
}

}  // namespace
}  // namespace plenum::score
