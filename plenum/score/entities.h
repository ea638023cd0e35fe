#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plenum::score {

/// Words that a name is made of.
struct Entity {
  std::string type;
  std::size_t begin = 0;
  std::size_t end = 0;

  friend auto operator<=>(const Entity&, const Entity&) = default;
};

/// Whether tags say where entities begin and end: O, and B-, I-, E- or S- before a type.
bool are_entity_tags(std::span<const std::string> tags);

/// The entities of a sentence by the tags of its words, as conlleval and seqeval's default mode read them:
/// IOB2, IOBES, and BIO where B only parts neighbours of one type. An entity begins with B or S, where the
/// type changes, and with I or E after O, S or E. What stands before - is the first character of a tag.
std::vector<Entity> entities_of(std::span<const std::string_view> tags);

/// Entities over all sentences.
struct EntityCounts {
  std::uint64_t correct = 0;  ///< predicted with type, beginning and end as expected
  std::uint64_t predicted = 0;
  std::uint64_t expected = 0;

  /// Counts a sentence.
  void add(std::span<const std::string_view> predicted_tags, std::span<const std::string_view> expected_tags);

  // 0 where a quotient is not defined.
  double precision() const;
  double recall() const;
  double f1() const;
};

}  // namespace plenum::score
