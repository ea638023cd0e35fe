#include "plenum/data/batches/training_data_options.h"

#include <algorithm>

#include "plenum/base/check.h"
#include "plenum/base/units.h"

namespace plenum::data {

GlobalBatchSize parse_global_batch(std::string_view text, std::string_view what) {
  const std::size_t unit_begin = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view unit = text.substr(unit_begin);
  base::require(unit_begin > 0 && (unit.empty() || unit == "sp" || unit == "tok"),
                "{} must be a number of sequences (256 or 256sp) or of tokens (32768tok): '{}'", what, text);
  const std::int64_t amount = base::parse_integer(text.substr(0, unit_begin), what);
  base::require(amount >= 1, "{} must be at least 1: '{}'", what, text);
  return {.unit = unit == "tok" ? GlobalBatchSize::Unit::Tokens : GlobalBatchSize::Unit::Sequences,
          .amount = static_cast<std::uint64_t>(amount)};
}

base::OptionTable TrainingDataOptions::table() {
  base::OptionTable options("data");
  options.add("data", directory, "DIR", "Dataset made by plenum prepare");
  options.add_choice("data-sharding", sharding,
                     {{"shared", DataSharding::Shared}, {"local", DataSharding::Local}},
                     "Whether all processes read the whole dataset, or each has some of its shards (plenum "
                     "prepare --shards) on a disk of its own and sequences travel between them");
  options.add_choice("layout", layout,
                     {{"unpadded", Layout::Unpadded}, {"packed", Layout::Packed}, {"padded", Layout::Padded}},
                     "Sequences end to end, in packs of fixed length, or padded to the longest");
  options.add_choice(
      "order", order_choice,
      {{"auto", OrderChoice::Auto}, {"sequences", OrderChoice::Sequences}, {"packs", OrderChoice::Packs}},
      "What is shuffled; packs gives every layout the same steps, of nearly the same tokens; with sequences "
      "the packed layout packs those of each step; auto is packs for packed and where the global batch is in "
      "tokens");
  options.add(
      "global-batch", global_batch, "N|Nsp|Ntok",
      "What a step trains on: sequences (256 or 256sp) or tokens (32768tok); by the length of the run if "
      "not given");
  options.add(
      "micro-batch-tokens", micro_batch_tokens, 1, std::int64_t{1} << 30,
      "Tokens of a micro-batch, padding included; 4096, or the longest sequence if that is longer, and on "
      "a GPU 512 for each of its multiprocessors, or fewer if they would not fit");
  options.add("micro-batches", micro_batches, 1, 1 << 20,
              "Divide what each replica trains on in a step into this many micro-batches of equal cost; four "
              "for each rank of a pipeline, and without --pp by --micro-batch-tokens if not given");
  options.add("attention-cost", attention_cost, 0.01, 100,
              "How much longer an operation of attention takes than one of a matrix product, for dividing "
              "work among ranks and micro-batches; measured where it matters if not given");
  options.add("packing-depth", packing_depth, 1, packing::kGreatestCapacity,
              "Sequences in a pack at most (with --order packs); as many as fit if not given");
  options.add("packing-plan", packing_plan, "FILE",
              "Pack as this plan of plenum pack says (with --order packs)");
  options.add_fraction("mask-rate", mask_rate, "Share of the tokens that is masked");
  options.add_choice("mask-unit", mask_unit, {{"token", MaskUnit::Token}, {"word", MaskUnit::Word}},
                     "Mask single tokens or whole words");
  options.add("mask-split", mask_split, "M/R/K",
              "Percentages of masked tokens that become [MASK], a random token, or stay");
  return options;
}

void TrainingDataOptions::check() const {
  base::require(!directory.empty(), "no dataset is given; add --data DIR");
  if (!global_batch.empty()) global_batch_size();
  masking();
  base::require(mask_rate > 0, "mask-rate must be above 0: there would be nothing to learn");
  const bool has_packs = order() == OrderUnit::Packs;
  base::require(has_packs || (!packing_depth && packing_plan.empty()),
                "--packing-depth and --packing-plan need --order packs");
  base::require(!packing_depth || packing_plan.empty(),
                "--packing-depth does not go with --packing-plan, which has a depth of its own");
}

OrderUnit TrainingDataOptions::order() const {
  if (order_choice == OrderChoice::Packs) return OrderUnit::Packs;
  if (order_choice == OrderChoice::Sequences) return OrderUnit::Sequences;
  const bool has_packs = layout == Layout::Packed || global_batch.empty() ||
                         global_batch_size().unit == GlobalBatchSize::Unit::Tokens;
  return has_packs ? OrderUnit::Packs : OrderUnit::Sequences;
}

GlobalBatchSize TrainingDataOptions::global_batch_size() const {
  return parse_global_batch(global_batch, "global-batch");
}

MaskingOptions TrainingDataOptions::masking() const {
  return {.rate = mask_rate, .unit = mask_unit, .split = parse_mask_split(mask_split, "mask-split")};
}

}  // namespace plenum::data
