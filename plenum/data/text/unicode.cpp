#include "plenum/data/text/unicode.h"

#include <algorithm>
#include <span>
#include <vector>

#include <utf8proc.h>

#include "plenum/data/text/unicode_differences.h"

namespace plenum::data {
namespace {

// The differences are relative to Unicode 15.0; what later versions add is masked, what earlier ones lack
// cannot be.
static_assert(UTF8PROC_VERSION_MAJOR > 2 || (UTF8PROC_VERSION_MAJOR == 2 && UTF8PROC_VERSION_MINOR >= 8),
              "utf8proc 2.8 or later is needed");

constexpr CodePointRange kWhitespace[] = {
    {0x0009, 0x000D}, {0x0020, 0x0020}, {0x0085, 0x0085}, {0x00A0, 0x00A0}, {0x1680, 0x1680},
    {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};

constexpr CodePointRange kCjk[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F},
                                   {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};

/// Code points, one bit each: whole tables are made of these questions.
class CodePointSet {
 public:
  explicit CodePointSet(std::span<const CodePointRange> ranges) : bits_(kNumCodePoints) {
    for (const CodePointRange& range : ranges) {
      std::fill(bits_.begin() + range.first, bits_.begin() + range.last + 1, true);
    }
  }
  bool contains(char32_t code_point) const { return bits_[code_point]; }

 private:
  std::vector<bool> bits_;
};

struct Differences {
  CodePointSet unassigned{unicode_differences().unassigned};
  CodePointSet removed{unicode_differences().removed};
  CodePointSet punctuation{unicode_differences().punctuation};
  CodePointSet nonspacing{unicode_differences().nonspacing};
};

const Differences& differences() {
  static const Differences sets;
  return sets;
}

bool contains(std::span<const CodePointRange> ranges, char32_t code_point) {
  return std::any_of(ranges.begin(), ranges.end(), [code_point](const CodePointRange& range) {
    return code_point >= range.first && code_point <= range.last;
  });
}

const CodePointMapping* find(std::span<const CodePointMapping> mappings, char32_t code_point) {
  if (code_point < mappings.front().code_point || code_point > mappings.back().code_point) return nullptr;
  const auto found = std::lower_bound(
      mappings.begin(), mappings.end(), code_point,
      [](const CodePointMapping& mapping, char32_t value) { return mapping.code_point < value; });
  return found->code_point == code_point ? &*found : nullptr;
}

bool is_unassigned(char32_t code_point) {
  return differences().unassigned.contains(code_point);
}

utf8proc_category_t category(char32_t code_point) {
  return is_unassigned(code_point) ? UTF8PROC_CATEGORY_CN
                                   : utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
}

CodePoints target_of(const CodePointMapping& mapping) {
  CodePoints result{.size = mapping.size};
  std::copy_n(mapping.target, mapping.size, result.values.begin());
  return result;
}

CodePoints single(char32_t code_point) {
  return {.values = {code_point}, .size = 1};
}

}  // namespace

bool is_whitespace(char32_t code_point) {
  return contains(kWhitespace, code_point);
}

bool is_control(char32_t code_point) {
  if (code_point == '\t' || code_point == '\n' || code_point == '\r') return false;
  if (code_point == kReplacementCharacter) return true;
  const utf8proc_category_t known = category(code_point);
  const bool dropped =
      known == UTF8PROC_CATEGORY_CC || known == UTF8PROC_CATEGORY_CF || known == UTF8PROC_CATEGORY_CO;
  return dropped != differences().removed.contains(code_point);
}

bool is_punctuation(char32_t code_point) {
  const utf8proc_category_t known = category(code_point);
  const bool listed = known >= UTF8PROC_CATEGORY_PC && known <= UTF8PROC_CATEGORY_PO;
  return listed != differences().punctuation.contains(code_point);
}

bool is_alphanumeric(char32_t code_point) {
  const utf8proc_category_t known = category(code_point);
  const bool is_letter = known >= UTF8PROC_CATEGORY_LU && known <= UTF8PROC_CATEGORY_LO;
  return is_letter || (known >= UTF8PROC_CATEGORY_ND && known <= UTF8PROC_CATEGORY_NO);
}

bool is_cjk(char32_t code_point) {
  return contains(kCjk, code_point);
}

bool is_nonspacing_mark(char32_t code_point) {
  return (category(code_point) == UTF8PROC_CATEGORY_MN) != differences().nonspacing.contains(code_point);
}

std::uint32_t combining_class(char32_t code_point) {
  if (const CodePointMapping* other = find(unicode_differences().combining, code_point))
    return other->target[0];
  if (is_unassigned(code_point)) return 0;
  return static_cast<std::uint32_t>(
      utf8proc_get_property(static_cast<utf8proc_int32_t>(code_point))->combining_class);
}

CodePoints decompose(char32_t code_point) {
  if (const CodePointMapping* other = find(unicode_differences().decomposition, code_point))
    return target_of(*other);
  if (is_unassigned(code_point)) return single(code_point);
  utf8proc_int32_t parts[4];
  int boundary_state = 0;
  const utf8proc_ssize_t count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point), parts, 4,
                                                         UTF8PROC_DECOMPOSE, &boundary_state);
  CodePoints result{.size = static_cast<std::uint32_t>(count)};
  std::copy_n(parts, count, result.values.begin());
  return result;
}

CodePoints lowercase(char32_t code_point) {
  if (const CodePointMapping* other = find(unicode_differences().lowercase, code_point))
    return target_of(*other);
  if (is_unassigned(code_point)) return single(code_point);
  return single(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code_point))));
}

}  // namespace plenum::data
