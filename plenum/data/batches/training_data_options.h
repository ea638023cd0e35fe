#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plenum/base/options.h"
#include "plenum/data/batches/batch_order.h"
#include "plenum/data/batches/layout.h"
#include "plenum/data/batches/masking.h"

namespace plenum::data {

/// "256" or "256sp" (sequences), "32768tok" (tokens). Throws UserError naming `what` for anything else.
GlobalBatchSize parse_global_batch(std::string_view text, std::string_view what);

/// Which order is asked for. Auto is packs for the packed layout, and where a step is a number of tokens:
/// packs are all nearly full, so every step has about as many, where sequences differ. Else it is sequences.
/// With Sequences a step is exactly so many of them, and the packed layout packs those (pack_batch), less
/// tightly than a plan for all.
enum class OrderChoice { Auto, Sequences, Packs };

/// Where processes find the dataset.
enum class DataSharding : std::uint8_t {
  Shared,  ///< all of it where each of them can read it
  Local,   ///< on each disk some of its shards; sequences travel to where they are worked on
};

/// What is trained on, in which pieces, and what is masked in it.
struct TrainingDataOptions {
  std::string directory;
  DataSharding sharding = DataSharding::Shared;
  Layout layout = Layout::Unpadded;
  OrderChoice order_choice = OrderChoice::Auto;
  std::string global_batch;                        ///< must be there when steps are made
  std::optional<std::int64_t> micro_batch_tokens;  ///< as MicroBatchCut has it
  std::optional<std::int64_t> micro_batches;       ///< of a rank; likewise
  std::optional<double> attention_cost;            ///< as StepBatchSource has it; measured if absent
  std::optional<std::int64_t> packing_depth;       ///< unlimited if absent
  std::string packing_plan;                        ///< a file; made anew if empty
  double mask_rate = 0.15;
  MaskUnit mask_unit = MaskUnit::Token;
  std::string mask_split = "80/10/10";

  base::OptionTable table();

  /// Throws UserError for settings that are wrong or contradict each other.
  void check() const;

  OrderUnit order() const;
  GlobalBatchSize global_batch_size() const;
  MaskingOptions masking() const;
};

}  // namespace plenum::data
