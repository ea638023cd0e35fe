#include "plenum/batch/group_label.h"

#include <algorithm>

#include "plenum/base/check.h"

namespace plenum::batch {

void check_group_labels(std::span<const std::int32_t> labels, int num_columns) {
  base::check(num_columns >= 1 && num_columns <= GroupLabel::kMostColumns,
              "labels of groups have from 1 to {} columns: {}", GroupLabel::kMostColumns, num_columns);
  constexpr std::int32_t kNoGroup = -1;
  const std::int32_t all_answers = GroupLabel::answer(num_columns) - 1;
  std::int32_t answers = all_answers;  // of the group so far; of none
  bool is_in_group = false;
  for (const std::int32_t label : labels) {
    if (label == kNoGroup || GroupLabel::is_first(label)) {
      base::check(answers == all_answers, "a group has no answer in some column: {:#x} of {:#x}", answers,
                  all_answers);
      is_in_group = label != kNoGroup;
      if (!is_in_group) continue;
      answers = 0;
    }
    const std::int32_t own = label & ~GroupLabel::kFirst;
    base::check(is_in_group, "a row lies before the first of its group: {:#x}", label);
    base::check((own & ~all_answers) == 0, "a label is not of {} columns: {:#x}", num_columns, label);
    base::check((own & answers) == 0, "a group has two answers in a column: {:#x}", own & answers);
    answers |= own;
  }
  base::check(answers == all_answers, "a group has no answer in some column: {:#x} of {:#x}", answers,
              all_answers);
}

std::int64_t count_groups(std::span<const std::int32_t> labels) {
  return std::ranges::count_if(labels,
                               [](std::int32_t label) { return label != -1 && GroupLabel::is_first(label); });
}

}  // namespace plenum::batch
