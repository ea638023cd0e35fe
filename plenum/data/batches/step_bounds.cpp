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
  std::int64_t masked = 0;
  std::int64_t sequences = 0;
};

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
    std::int64_t masked = 0;
    for (const std::int32_t length : pattern.lengths) masked += masked_count(length, problem.mask_rate);
    bounds.masked = std::max(bounds.masked, masked);
    bounds.sequences = std::max(bounds.sequences, static_cast<std::int64_t>(pattern.lengths.size()));
  }
  return bounds;
}

/// Not what preparation allowed: padding to a length that no sequence has would help nobody.
std::int64_t longest_sequence(const StepProblem& problem) {
  return std::min(problem.max_length, problem.histogram.longest());
}

ItemBounds bound_items(const StepProblem& problem) {
  const bool places_packs = problem.plan != nullptr && problem.layout != Layout::Padded;
  if (places_packs) return bound_packs(*problem.plan, problem);
  return {.num_items = problem.plan != nullptr
                           ? most_sequences_in_packs(*problem.plan, problem.items_per_step)
                           : problem.items_per_step,
          .rows = longest_sequence(problem),
          .masked = masked_count(longest_sequence(problem), problem.mask_rate),
          .sequences = 1};
}

/// The most sequences that `rows` rows can hold: the shortest there are.
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

/// The most masked tokens that `rows` rows can hold, or a little more: the relaxed knapsack, filled with the
/// lengths that are masked most densely, the last in part.
std::int64_t most_masked(const packing::LengthHistogram& histogram, std::int64_t rows, double rate) {
  struct Choice {
    std::int64_t length = 0;
    std::int64_t masked = 0;
    std::uint64_t count = 0;
  };
  std::vector<Choice> densest_first;
  for (std::size_t n = 1; n < histogram.counts.size(); ++n) {
    const auto length = static_cast<std::int64_t>(n);
    if (histogram.counts[n] > 0)
      densest_first.push_back({length, masked_count(length, rate), histogram.counts[n]});
  }
  std::stable_sort(densest_first.begin(), densest_first.end(), [](const Choice& a, const Choice& b) {
    return a.masked * b.length > b.masked * a.length;
  });
  std::int64_t masked = 0;
  for (const Choice& choice : densest_first) {
    const auto fitting = static_cast<std::uint64_t>(rows / choice.length);
    const auto taken = static_cast<std::int64_t>(std::min(fitting, choice.count));
    masked += taken * choice.masked;
    rows -= taken * choice.length;
    if (fitting < choice.count) return masked + ceil_divide(rows * choice.masked, choice.length);
  }
  return masked;
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

/// What a micro-batch of at most `most_items` items in `rows` rows can hold.
batch::Capacity capacity_of(const StepProblem& problem, const ItemBounds& items, std::int64_t most_items,
                            std::int64_t rows) {
  batch::Capacity capacity{.rows = rows, .max_length = longest_sequence(problem)};
  capacity.sequences = std::min(most_items * items.sequences, most_sequences(problem.histogram, rows));
  capacity.labels[kMaskedTokens] =
      std::min(most_items * items.masked, most_masked(problem.histogram, rows, problem.mask_rate));
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
                items.sequences > 1 ? "pack" : "sequence", budget, items.rows);
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
  if (is_unpadded) {
    // Many short sequences would mask more of a micro-batch than long ones do, which rarely happens, and the
    // logits of masked tokens are the largest buffer. Filling stops there too; an eighth is left for chance.
    const std::int64_t masked_of_any = any_items * items.masked;
    std::int64_t& masked = bounds.capacity.labels[kMaskedTokens];
    masked = std::min(masked, masked_of_any + ceil_divide(masked_of_any, 8));
  }
  return bounds;
}

/// Of a given number of micro-batches that share a rank's items.
StepBounds bound_divided(const StepProblem& problem, const ItemBounds& items) {
  const std::int64_t items_of_rank = ceil_divide(items.num_items, problem.num_ranks);
  const std::int64_t most_items = ceil_divide(items_of_rank, *problem.micro_batches.count);
  const bool are_sequences = problem.layout == Layout::Unpadded && items.sequences == 1;
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

StepBounds bound_steps(const StepProblem& problem) {
  base::check(problem.plan != nullptr || problem.layout != Layout::Packed, "packed needs a packing plan");
  base::check(
      problem.items_per_step >= 1 && problem.num_ranks >= 1 && problem.micro_batches.count.value_or(1) >= 1,
      "a step must have items, ranks and micro-batches: items={} ranks={} micro-batches={}",
      problem.items_per_step, problem.num_ranks, problem.micro_batches.count.value_or(1));
  const ItemBounds items = bound_items(problem);
  return problem.micro_batches.count ? bound_divided(problem, items) : bound_filled(problem, items);
}

}  // namespace plenum::data
