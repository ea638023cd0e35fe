#include "plenum/data/batches/step_bounds.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "plenum/base/check.h"
#include "plenum/batch/capacity.h"
#include "plenum/data/batches/masking.h"
#include "plenum/data/batches/objective_index.h"

namespace plenum::data {
namespace {

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// The most that BatchItems can be.
struct ItemBounds {
  std::int64_t num_items = 0;  ///< of a step
  std::int64_t rows = 0;
  std::int64_t labels = 0;  ///< of the first objective
  std::int64_t sequences = 0;
};

/// Labels of the first objective that a sequence of a length has at most.
std::int64_t most_labels_of(std::int64_t length, const StepProblem& problem) {
  return problem.task != nullptr ? problem.task->most_labels(length)
                                 : masked_count(length, problem.mask_rate);
}

/// That a sequence of the histogram is laid out as.
std::int64_t sequences_of_one(const StepProblem& problem) {
  return problem.task != nullptr ? problem.task->sequences_per_example() : 1;
}

/// The sequences of the `num_packs` packs that have the most.
std::int64_t most_sequences_in_packs(const packing::PackingPlan& plan, std::int64_t num_packs) {
  std::vector<const packing::PackPattern*> fullest_first;
  for (const packing::PackPattern& pattern : plan.patterns) fullest_first.push_back(&pattern);
  std::sort(fullest_first.begin(), fullest_first.end(),
            [](const auto* a, const auto* b) { return a->lengths.size() > b->lengths.size(); });
  std::int64_t sequences = 0;
  for (const packing::PackPattern* pattern : fullest_first) {
    const auto taken =
        static_cast<std::int64_t>(std::min(pattern->count, static_cast<std::uint64_t>(num_packs)));
    sequences += taken * static_cast<std::int64_t>(pattern->lengths.size());
    num_packs -= taken;
  }
  return sequences;
}

ItemBounds bound_packs(const packing::PackingPlan& plan, const StepProblem& problem) {
  ItemBounds bounds{.num_items = problem.items_per_step, .rows = plan.capacity};
  for (const packing::PackPattern& pattern : plan.patterns) {
    std::int64_t labels = 0;
    for (const std::int32_t length : pattern.lengths) labels += most_labels_of(length, problem);
    bounds.labels = std::max(bounds.labels, labels);
    bounds.sequences = std::max(
        bounds.sequences, static_cast<std::int64_t>(pattern.lengths.size()) * sequences_of_one(problem));
  }
  return bounds;
}

/// Not what preparation allowed: padding to a length that no sequence has would help nobody.
std::int64_t longest_sequence(const StepProblem& problem) {
  const std::int64_t longest = problem.histogram.longest();
  return problem.task != nullptr ? problem.task->longest_sequence() : std::min(problem.max_length, longest);
}

/// The most sequences of the histogram that `rows` rows can hold: the shortest there are.
std::int64_t most_sequences(const packing::LengthHistogram& histogram, std::int64_t rows) {
  std::int64_t sequences = 0;
  for (std::size_t length = 1; length < histogram.counts.size(); ++length) {
    const auto fitting = static_cast<std::uint64_t>(rows) / length;
    const auto taken = static_cast<std::int64_t>(std::min(fitting, histogram.counts[length]));
    sequences += taken;
    rows -= taken * static_cast<std::int64_t>(length);
  }
  return sequences;
}

/// The most labels that `rows` rows can hold, or a little more: the relaxed knapsack, filled with the lengths
/// that are labelled most densely, the last in part.
std::int64_t most_labels_in(const StepProblem& problem, std::int64_t rows) {
  struct Choice {
    std::int64_t length = 0;
    std::int64_t labels = 0;
    std::uint64_t count = 0;
  };
  const packing::LengthHistogram& histogram = problem.histogram;
  std::vector<Choice> densest_first;
  for (std::size_t n = 1; n < histogram.counts.size(); ++n) {
    const auto length = static_cast<std::int64_t>(n);
    if (histogram.counts[n] > 0)
      densest_first.push_back({length, most_labels_of(length, problem), histogram.counts[n]});
  }
  std::stable_sort(densest_first.begin(), densest_first.end(), [](const Choice& a, const Choice& b) {
    return a.labels * b.length > b.labels * a.length;
  });
  std::int64_t labels = 0;
  for (const Choice& choice : densest_first) {
    const auto fitting = static_cast<std::uint64_t>(rows / choice.length);
    const auto taken = static_cast<std::int64_t>(std::min(fitting, choice.count));
    labels += taken * choice.labels;
    rows -= taken * choice.length;
    if (fitting < choice.count) return labels + ceil_divide(rows * choice.labels, choice.length);
  }
  return labels;
}

/// The rows of the `num_items` longest sequences.
std::int64_t most_rows(const packing::LengthHistogram& histogram, std::int64_t num_items) {
  std::int64_t rows = 0;
  for (std::size_t length = histogram.counts.size(); length-- > 1 && num_items > 0;) {
    const auto taken =
        static_cast<std::int64_t>(std::min(histogram.counts[length], static_cast<std::uint64_t>(num_items)));
    rows += taken * static_cast<std::int64_t>(length);
    num_items -= taken;
  }
  return rows;
}

/// Packs of a step's own sequences.
ItemBounds bound_packed_steps(const StepProblem& problem) {
  const std::int64_t capacity = pack_capacity(problem.histogram, problem.max_length);
  const std::int64_t any_sequences = capacity / problem.histogram.longest();
  const std::int64_t by_tokens =
      std::max<std::int64_t>(2 * most_rows(problem.histogram, problem.items_per_step) / capacity, 1);
  const std::int64_t in_pack = std::min(problem.items_per_step, most_sequences(problem.histogram, capacity));
  return {.num_items = std::min(ceil_divide(problem.items_per_step, any_sequences), by_tokens),
          .rows = capacity,
          .labels = most_labels_in(problem, capacity),
          .sequences = in_pack * sequences_of_one(problem)};
}

ItemBounds bound_items(const StepProblem& problem) {
  const bool places_packs = problem.plan != nullptr && problem.layout != Layout::Padded;
  if (places_packs) return bound_packs(*problem.plan, problem);
  if (problem.layout == Layout::Packed) return bound_packed_steps(problem);
  const bool is_padded = problem.layout == Layout::Padded;
  const std::int64_t longest_item = problem.task != nullptr && !is_padded
                                        ? problem.histogram.longest()
                                        : longest_sequence(problem) * sequences_of_one(problem);
  return {.num_items = problem.plan != nullptr
                           ? most_sequences_in_packs(*problem.plan, problem.items_per_step)
                           : problem.items_per_step,
          .rows = longest_item,
          .labels = most_labels_of(longest_item, problem),
          .sequences = sequences_of_one(problem)};
}

/// What a micro-batch of at most `most_items` items in `rows` rows can hold.
batch::Capacity capacity_of(const StepProblem& problem, const ItemBounds& items, std::int64_t most_items,
                            std::int64_t rows) {
  batch::Capacity capacity{.rows = rows, .max_length = longest_sequence(problem)};
  capacity.sequences = std::min(most_items * items.sequences,
                                most_sequences(problem.histogram, rows) * sequences_of_one(problem));
  capacity.labels[kFirstObjective] = std::min(most_items * items.labels, most_labels_in(problem, rows));
  if (problem.plan == nullptr) {  // packs of few sequences may each hold many, but not all of them
    const std::int64_t of_one = most_labels_of(problem.histogram.longest(), problem);
    std::int64_t& labels = capacity.labels[kFirstObjective];
    capacity.sequences = std::min(capacity.sequences, problem.items_per_step * sequences_of_one(problem));
    labels = std::min(labels, problem.items_per_step * of_one);
  }
  if (problem.labels_sequences) capacity.labels[kNextSentence] = capacity.sequences;
  return capacity;
}

/// Of micro-batches that are filled up to a number of rows.
StepBounds bound_filled(const StepProblem& problem, const ItemBounds& items) {
  const std::int64_t budget =
      problem.micro_batches.tokens.value_or(std::max(kDefaultMicroBatchTokens, items.rows));
  base::require(budget >= items.rows,
                "a micro-batch must have room for the longest {}: --micro-batch-tokens is {}, but must be at "
                "least {}",
                items.sequences > sequences_of_one(problem) ? "pack" : "sequence", budget, items.rows);
  base::require(budget <= std::numeric_limits<std::int32_t>::max(), "--micro-batch-tokens is too large: {}",
                budget);
  const std::int64_t items_of_rank = ceil_divide(items.num_items, problem.num_ranks);
  // What a micro-batch can take of any items; the k of fill_micro_batches.
  const std::int64_t any_items = std::min(budget / items.rows, items_of_rank);
  const bool is_unpadded = problem.layout == Layout::Unpadded;
  StepBounds bounds{.items_per_step = items.num_items,
                    .item_rows = items.rows,
                    .micro_batches_per_rank = ceil_divide(items_of_rank, any_items)};
  bounds.capacity =
      capacity_of(problem, items, is_unpadded ? items_of_rank : any_items,
                  is_unpadded ? std::min(budget, items_of_rank * items.rows) : any_items * items.rows);
  if (is_unpadded && problem.task == nullptr) {
    // Many short sequences would mask more of a micro-batch than long ones do, which rarely happens, and the
    // logits of masked tokens are the largest buffer. Filling stops there too; an eighth is left for chance.
    const std::int64_t masked_of_any = any_items * items.labels;
    std::int64_t& masked = bounds.capacity.labels[kMaskedTokens];
    masked = std::min(masked, masked_of_any + ceil_divide(masked_of_any, 8));
  }
  return bounds;
}

/// Of a given number of micro-batches that share a rank's items.
StepBounds bound_divided(const StepProblem& problem, const ItemBounds& items) {
  const std::int64_t items_of_rank = ceil_divide(items.num_items, problem.num_ranks);
  const std::int64_t most_items = ceil_divide(items_of_rank, *problem.micro_batches.count);
  const bool are_sequences =
      problem.layout == Layout::Unpadded && items.sequences == sequences_of_one(problem);
  const std::int64_t rows =
      are_sequences ? most_rows(problem.histogram, most_items) : most_items * items.rows;
  constexpr std::int64_t kMostRows = std::numeric_limits<std::int32_t>::max();
  const std::int64_t allowed = problem.micro_batches.tokens.value_or(kMostRows);
  base::require(rows <= allowed,
                "with --micro-batches {} one may have up to {} tokens, more than {}{}; give more "
                "--micro-batches",
                *problem.micro_batches.count, rows,
                problem.micro_batches.tokens ? "--micro-batch-tokens " : "", allowed);
  return {.items_per_step = items.num_items,
          .item_rows = items.rows,
          .micro_batches_per_rank = *problem.micro_batches.count,
          .capacity = capacity_of(problem, items, most_items, rows)};
}

}  // namespace

std::int64_t pack_capacity(const packing::LengthHistogram& histogram, std::int64_t max_length) {
  return std::max(max_length, histogram.longest());
}

StepBounds bound_steps(const StepProblem& problem) {
  base::check(
      problem.items_per_step >= 1 && problem.num_ranks >= 1 && problem.micro_batches.count.value_or(1) >= 1,
      "a step must have items, ranks and micro-batches: items={} ranks={} micro-batches={}",
      problem.items_per_step, problem.num_ranks, problem.micro_batches.count.value_or(1));
  const ItemBounds items = bound_items(problem);
  return problem.micro_batches.count ? bound_divided(problem, items) : bound_filled(problem, items);
}

}  // namespace plenum::data
