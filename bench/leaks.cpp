// Trains a BERT on packs, right and in the wrong ways that published packing warns of, and prints a line of
// JSON for each evaluation: the loss in training, and the loss on held-out sequences, each by itself as a
// user of the model would give them. All forms see the same sequences, masks and first weights.
//   build/bench/bench_leaks --data DIR --form isolated|no-mask|no-reset|neither
// *no-mask*: a pack is one sequence, so its tokens attend to its other sequences. *no-reset*: positions count
// on through a pack. Plenum has no options for these: they are made here, of micro-batches that are right.
#include <map>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/small_training.h"

namespace plenum {
namespace {

struct Options {
  bench::SmallTrainingOptions training;
  std::string form = "isolated";

  bool leaks_attention() const { return form == "no-mask" || form == "neither"; }
  bool runs_positions_on() const { return form == "no-reset" || form == "neither"; }
};

/// Rows by what they read of the table of positions, as micro_batch_builder groups them.
batch::GroupedRows group_by_position(const batch::MicroBatch& micro_batch) {
  std::map<std::int32_t, std::vector<std::int32_t>> rows_of;
  for (std::size_t s = 0; s < micro_batch.starts.size(); ++s) {
    for (std::int32_t row = micro_batch.starts[s]; row < micro_batch.starts[s] + micro_batch.lengths[s];
         ++row)
      rows_of[micro_batch.positions[static_cast<std::size_t>(row)]].push_back(row);
  }
  batch::GroupedRows groups;
  for (const auto& [position, rows] : rows_of) {
    groups.entries.push_back(position);
    groups.starts.push_back(static_cast<std::int32_t>(groups.rows.size()));
    groups.rows.insert(groups.rows.end(), rows.begin(), rows.end());
  }
  groups.starts.push_back(static_cast<std::int32_t>(groups.rows.size()));
  return groups;
}

/// Lets positions count from the first row of a pack, which has `pack_rows` rows.
void run_positions_on(batch::MicroBatch& micro_batch, std::int32_t pack_rows) {
  for (std::size_t s = 0; s < micro_batch.starts.size(); ++s) {
    for (std::int32_t row = micro_batch.starts[s]; row < micro_batch.starts[s] + micro_batch.lengths[s];
         ++row)
      micro_batch.positions[static_cast<std::size_t>(row)] = row % pack_rows;
  }
  micro_batch.by_position = group_by_position(micro_batch);
}

/// Makes each pack one sequence, which is what attention without a mask takes it for.
void join_sequences(batch::MicroBatch& micro_batch, std::int32_t pack_rows) {
  batch::MicroBatch joined;
  for (std::size_t s = 0; s < micro_batch.starts.size(); ++s) {
    const std::int32_t start = micro_batch.starts[s];
    if (joined.starts.empty() || joined.starts.back() / pack_rows != start / pack_rows) {
      joined.starts.push_back(start);
      joined.lengths.push_back(0);
      joined.samples.push_back(micro_batch.samples[s]);
    }
    joined.lengths.back() = start + micro_batch.lengths[s] - joined.starts.back();
  }
  micro_batch.starts = joined.starts;
  micro_batch.lengths = joined.lengths;
  micro_batch.samples = joined.samples;
}

void train_and_report(const Options& options) {
  bench::SmallTraining training(options.training);
  const auto pack_rows = static_cast<std::int32_t>(training.max_length());
  const auto batch_of = [&](std::uint64_t step) {
    batch::StepBatch batch = training.batch_of(step);
    for (batch::MicroBatch& micro_batch : batch.micro_batches) {
      if (options.runs_positions_on()) run_positions_on(micro_batch, pack_rows);
      if (options.leaks_attention()) join_sequences(micro_batch, pack_rows);
    }
    return batch;
  };
  training.run(
      training.program(), batch_of, [](const pipeline::StepOutcome&) {},
      [&](nlohmann::json line) {
        line["form"] = options.form;
        fmt::print("{}\n", line.dump());
        std::fflush(stdout);
      });
}

}  // namespace
}  // namespace plenum

int main(int argc, char** argv) {
  plenum::Options options;
  options.training.layout = plenum::data::Layout::Packed;
  CLI::App app("Trains on packs that leak");
  add_options(app, options.training);
  app.add_option("--form", options.form)
      ->check(CLI::IsMember({"isolated", "no-mask", "no-reset", "neither"}));
  CLI11_PARSE(app, argc, argv);
  try {
    plenum::train_and_report(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_leaks: {}\n", error.what());
    return 2;
  }
  return 0;
}
