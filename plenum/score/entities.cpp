#include "plenum/score/entities.h"

#include <algorithm>
#include <iterator>

#include "plenum/base/check.h"

namespace plenum::score {
namespace {

constexpr char kOutside = 'O';

/// A tag, taken apart.
struct TagParts {
  char place = kOutside;  ///< B, I, E, S or O
  std::string_view type = "_";

  bool is_outside() const { return place == kOutside || place == '.'; }
};

TagParts parts_of(std::string_view tag) {
  if (tag.empty()) return {};
  TagParts parts{.place = tag.front()};
  std::string_view type = tag.substr(1);
  if (const std::size_t dash = type.find('-'); dash != std::string_view::npos) type.remove_prefix(dash + 1);
  if (!type.empty()) parts.type = type;
  return parts;
}

bool is_one_of(char place, std::string_view places) {
  return places.find(place) != std::string_view::npos;
}

bool ends_between(const TagParts& before, const TagParts& after) {
  if (is_one_of(before.place, "ES")) return true;
  if (is_one_of(before.place, "BI") && is_one_of(after.place, "BSO")) return true;
  return !before.is_outside() && before.type != after.type;
}

bool begins_between(const TagParts& before, const TagParts& after) {
  if (is_one_of(after.place, "BS")) return true;
  if (is_one_of(before.place, "ESO") && is_one_of(after.place, "EI")) return true;
  return !after.is_outside() && before.type != after.type;
}

double ratio_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

bool are_entity_tags(std::span<const std::string> tags) {
  return std::ranges::all_of(tags, [](const std::string& tag) {
    return tag == "O" || (tag.size() >= 3 && is_one_of(tag[0], "BIES") && tag[1] == '-');
  });
}

std::vector<Entity> entities_of(std::span<const std::string_view> tags) {
  std::vector<Entity> entities;
  TagParts before{.place = kOutside, .type = ""};
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= tags.size(); ++i) {
    const TagParts after = i < tags.size() ? parts_of(tags[i]) : TagParts{};
    if (ends_between(before, after)) entities.push_back({std::string(before.type), begin, i});
    if (begins_between(before, after)) begin = i;
    before = after;
  }
  return entities;
}

void EntityCounts::add(std::span<const std::string_view> predicted_tags,
                       std::span<const std::string_view> expected_tags) {
  base::check(predicted_tags.size() == expected_tags.size(), "every word must have a tag: {} {}",
              predicted_tags.size(), expected_tags.size());
  std::vector<Entity> found = entities_of(predicted_tags);
  std::vector<Entity> right = entities_of(expected_tags);
  predicted += found.size();
  expected += right.size();
  std::sort(found.begin(), found.end());
  std::sort(right.begin(), right.end());
  std::vector<Entity> both;
  std::set_intersection(found.begin(), found.end(), right.begin(), right.end(), std::back_inserter(both));
  correct += both.size();
}

double EntityCounts::precision() const {
  return ratio_of(correct, predicted);
}

double EntityCounts::recall() const {
  return ratio_of(correct, expected);
}

double EntityCounts::f1() const {
  return ratio_of(2 * correct, predicted + expected);
}

}  // namespace plenum::score
