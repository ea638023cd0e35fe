#include "plenum/data/corpus/document_hash.h"

#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/data/corpus/duplicates.h"

#include "tests/support/temporary_directory.h"

namespace plenum::data {
namespace {

TEST(DocumentHash, DoesNotDependOnHowADocumentIsCut) {
  const std::vector<std::string> sentences = {"a", "b", "", "a", "a longer sentence", "b"};
  DocumentHash whole;
  for (const std::string& sentence : sentences) whole.add_sentence(sentence);
  for (std::size_t cut = 0; cut <= sentences.size(); ++cut) {
    DocumentHash head;
    DocumentHash tail;
    for (std::size_t i = 0; i < sentences.size(); ++i) (i < cut ? head : tail).add_sentence(sentences[i]);
    head.append(tail);
    EXPECT_EQ(head.identity(), whole.identity());
  }
}

TEST(DocumentHash, TellsDifferentDocumentsApart) {
  std::set<std::uint64_t> identities;
  const std::vector<std::vector<std::string>> documents = {
      {}, {""}, {"", ""}, {"a"}, {"b"}, {"a", "b"}, {"b", "a"}, {"ab"}, {"a", "a"}, {"a", "b", ""}};
  for (const auto& document : documents) {
    DocumentHash hash;
    for (const std::string& sentence : document) hash.add_sentence(sentence);
    identities.insert(hash.identity());
  }
  EXPECT_EQ(identities.size(), documents.size());
}

TEST(HoldoutRule, SetsTheShareAsideThatWasAsked) {
  std::mt19937_64 random(1);
  for (const double fraction : {0.0, 0.005, 0.3, 1.0}) {
    const HoldoutRule rule(7, fraction);
    int count = 0;
    for (int i = 0; i < 20'000; ++i) count += rule.split_of(random()) == Split::Holdout ? 1 : 0;
    EXPECT_NEAR(count / 20'000.0, fraction, 0.012) << fraction;
  }
}

TEST(HoldoutRule, DependsOnTheSeedAndEveryBitOfTheIdentity) {
  const HoldoutRule rule(1, 0.5);
  const HoldoutRule other(2, 0.5);
  int differences = 0;
  int high_bits = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    differences += rule.split_of(i) != other.split_of(i) ? 1 : 0;
    high_bits += rule.split_of(i) != rule.split_of(i | (std::uint64_t{1} << 63)) ? 1 : 0;
  }
  EXPECT_NEAR(differences, 500, 80);
  EXPECT_NEAR(high_bits, 500, 80);
}

std::uint64_t duplicates_in(const std::vector<std::uint64_t>& hashes) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.write(
      "hashes",
      std::string_view(reinterpret_cast<const char*>(hashes.data()), hashes.size() * sizeof hashes[0]));
  const std::uint64_t duplicates = count_duplicates(path, 3);
  EXPECT_FALSE(std::filesystem::exists(path + ".grouped"));
  return duplicates;
}

TEST(CountDuplicates, CountsEveryRepetition) {
  EXPECT_EQ(duplicates_in({}), 0U);
  EXPECT_EQ(duplicates_in({5}), 0U);
  EXPECT_EQ(duplicates_in({5, 6, 5, 5, ~std::uint64_t{0}, 6}), 3U);
  std::mt19937_64 random(3);
  std::vector<std::uint64_t> hashes;
  std::set<std::uint64_t> distinct;
  for (int i = 0; i < 30'000; ++i) {
    hashes.push_back((random() % 20'000) * 0x9E3779B97F4A7C15);
    distinct.insert(hashes.back());
  }
  EXPECT_EQ(duplicates_in(hashes), hashes.size() - distinct.size());
}

TEST(CountDuplicates, GroupsALargeNumberOfHashes) {
  std::mt19937_64 random(4);
  std::vector<std::uint64_t> hashes(2'500'000);
  for (std::uint64_t& hash : hashes) hash = random();
  for (std::size_t i = 0; i < 1000; ++i) hashes[2'000'000 + i] = hashes[i];
  EXPECT_EQ(duplicates_in(hashes), 1000U);
}

}  // namespace
}  // namespace plenum::data
