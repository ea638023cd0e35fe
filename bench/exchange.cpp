// What the exchange of sequences between ranks is worth. Prints a line of JSON for each number of ranks and
// sequences: the load of the busiest rank over the mean, in the mean of many draws, for sequences as they
// come, as published (sorted and dealt in turn), and as Plenum divides them. With --ranks it then trains on
// ranks that are threads, step by step in turns with each rank's sequences as they come and divided, and
// prints both times. With --traces DIR it writes what every rank did in the last step with either as a trace
// for Perfetto, as-they-come.json and divided.json.
//   build/bench/bench_exchange --histogram tests/golden/wikipedia_512_histogram.txt [--ranks 2 --sequences
//   16]
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plenum/data/batches/even_division.h"
#include "plenum/data/batches/histogram_file.h"
#include "plenum/data/batches/micro_batch_assembly.h"
#include "plenum/data/batches/micro_batch_builder.h"
#include "plenum/describe/bert.h"
#include "plenum/describe/flops.h"
#include "plenum/io/file.h"
#include "plenum/model/initialise.h"
#include "plenum/packing/sequence_ids.h"
#include "plenum/pipeline/bert_program.h"
#include "plenum/pipeline/executor.h"
#include "plenum/schedule/generate/data_parallel.h"
#include "plenum/schedule/simulate/timeline_of.h"
#include "plenum/trace/perfetto.h"

#include "tests/support/synthetic_sequences.h"

namespace plenum {
namespace {

struct Options {
  std::string histogram;
  std::string model = "bert-mini";
  std::size_t draws = 200;
  std::size_t ranks = 0;
  std::size_t sequences = 16;  ///< of each rank
  std::size_t steps = 10;
  std::uint64_t seed = 1;
  std::string traces;
};

using Lengths = std::vector<std::int64_t>;
using Shares = std::vector<std::vector<std::size_t>>;  ///< the sequences of each rank
using Divide = std::function<Shares(const Lengths&, std::size_t num_ranks)>;

std::vector<std::size_t> longest_first(const Lengths& lengths) {
  std::vector<std::size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t i) { return lengths[i]; });
  return order;
}

Shares as_they_come(const Lengths& lengths, std::size_t num_ranks) {
  Shares shares(num_ranks);
  for (std::size_t i = 0; i < lengths.size(); ++i) shares[i * num_ranks / lengths.size()].push_back(i);
  return shares;
}

/// The published exchange: rank r gets sequences r, r + ranks, ... of all, from the longest to the shortest.
Shares dealt_in_turn(const Lengths& lengths, std::size_t num_ranks) {
  Shares shares(num_ranks);
  const std::vector<std::size_t> order = longest_first(lengths);
  for (std::size_t i = 0; i < order.size(); ++i) shares[i % num_ranks].push_back(order[i]);
  return shares;
}

/// The same with every second round the other way about.
Shares dealt_in_snakes(const Lengths& lengths, std::size_t num_ranks) {
  Shares shares(num_ranks);
  const std::vector<std::size_t> order = longest_first(lengths);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t place = i % num_ranks;
    shares[i / num_ranks % 2 == 0 ? place : num_ranks - 1 - place].push_back(order[i]);
  }
  return shares;
}

class Costs {
 public:
  explicit Costs(const std::string& model) : flops_(describe::describe_bert(describe::preset(model))) {}
  double operator()(std::int64_t length) const {
    return flops_.forward({.tokens = length,
                           .squared_lengths = length * length,
                           .sequences = 1,
                           .labels = {data::masked_count(length, data::MaskingOptions{}.rate)}});
  }

 private:
  describe::Flops flops_;
};

Shares divided_by_cost(const Lengths& lengths, std::size_t num_ranks, const Costs& costs) {
  std::vector<double> of_each;
  for (const std::int64_t length : lengths) of_each.push_back(costs(length));
  return data::divide_evenly(of_each, num_ranks);
}

double busiest_over_mean(const Shares& shares, const std::function<double(std::size_t)>& load_of) {
  double greatest = 0;
  double sum = 0;
  for (const std::vector<std::size_t>& share : shares) {
    const double load = std::accumulate(share.begin(), share.end(), 0.0,
                                        [&](double so_far, std::size_t i) { return so_far + load_of(i); });
    greatest = std::max(greatest, load);
    sum += load;
  }
  return greatest * static_cast<double>(shares.size()) / sum;
}

Lengths draw(const packing::LengthHistogram& histogram, std::size_t count, std::mt19937_64& generator) {
  const packing::SequenceIds ids(histogram);
  Lengths lengths(count);
  for (std::int64_t& length : lengths)
    length = std::max<std::int64_t>(3, ids.length_of(generator() % ids.num_sequences()));
  return lengths;
}

void count_loads(const Options& options, const packing::LengthHistogram& histogram) {
  struct Way {
    const char* name;
    Divide divide;
  };
  const Costs costs("bert-large");
  const std::vector<Way> ways = {{"as_they_come", as_they_come},
                                 {"dealt_in_turn", dealt_in_turn},
                                 {"dealt_in_snakes", dealt_in_snakes},
                                 {"divided", [&](const Lengths& lengths, std::size_t ranks) {
                                    return divided_by_cost(lengths, ranks, costs);
                                  }}};
  for (const auto& [ranks, sequences] : {std::pair{8, 56}, {8, 16}, {64, 48}, {128, 3}}) {
    nlohmann::json line = {{"ranks", ranks}, {"sequences", sequences}, {"draws", options.draws}};
    for (const Way& way : ways) {
      std::mt19937_64 generator(options.seed);  // the same draws for all
      double tokens = 0;
      double operations = 0;
      for (std::size_t i = 0; i < options.draws; ++i) {
        const Lengths lengths = draw(histogram, static_cast<std::size_t>(ranks * sequences), generator);
        const Shares shares = way.divide(lengths, static_cast<std::size_t>(ranks));
        tokens += busiest_over_mean(shares, [&](std::size_t s) { return static_cast<double>(lengths[s]); });
        operations += busiest_over_mean(shares, [&](std::size_t s) { return costs(lengths[s]); });
      }
      line[way.name] = {{"tokens", tokens / static_cast<double>(options.draws)},
                        {"operations", operations / static_cast<double>(options.draws)}};
    }
    fmt::print("{}\n", line.dump());
  }
}

/// Ranks that are threads of one core each, and what they work on.
class Ranks {
 public:
  Ranks(const Options& options, const packing::LengthHistogram& histogram)
      : options_(options),
        model_(describe::preset(options.model)),
        source_(histogram, {.vocabulary = model_.vocabulary}, options.seed),
        capacity_(capacity_of(histogram)),
        schedule_(
            schedule::generate_data_parallel({.num_micro_batches = 1,
                                              .num_replicas = options.ranks,
                                              .stage_layers = {static_cast<std::uint16_t>(model_.num_layers)},
                                              .num_buckets = static_cast<std::size_t>(model_.num_layers)})) {
    base::ThreadPool pool(1);
    std::vector<pipeline::StageProgram*> borrowed;
    for (std::size_t rank = 0; rank < options.ranks; ++rank) {
      programs_.push_back(std::make_unique<pipeline::BertProgram>(
          schedule_, schedule::Rank::at(rank),
          pipeline::BertProgramOptions{.model = model_, .capacity = capacity_, .seed = options.seed}));
      pipeline::BertProgram& program = *programs_.back();
      model::initialise_weights(program.parameters(), options.seed, pool, program.buffers().weights_N);
      program.begin(0);
      borrowed.push_back(&program);
    }
    executor_.emplace(schedule_, pipeline::local_ranks(borrowed));
  }

  /// Seconds of a step on sequences with these ids.
  double run(const std::vector<std::uint64_t>& ids, const Shares& shares) {
    std::vector<batch::StepBatch> batches(shares.size());
    batch::Work global;
    for (std::size_t rank = 0; rank < shares.size(); ++rank) {
      batches[rank].micro_batches.push_back(micro_batch_of(ids, shares[rank]));
      global += batches[rank].micro_batches.front().work();
    }
    for (std::size_t rank = 0; rank < shares.size(); ++rank) {
      batches[rank].step = step_;
      batches[rank].global = global;
      batches[rank].first_micro_batch = rank;
      for (const batch::StepBatch& of_rank : batches) {
        batches[rank].global_rows.push_back(of_rank.micro_batches.front().num_rows);
        batches[rank].work.push_back(of_rank.micro_batches.front().work());
      }
    }
    ++step_;
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t rank = 0; rank < shares.size(); ++rank) programs_[rank]->begin_step(batches[rank], 1e-4);
    executor_->run(1);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    timeline_ =
        schedule::timeline_of(schedule_, executor_->measured().times, "", schedule::ActionLabels::Words);
    return seconds;
  }

  const data::SequenceSource& source() const { return source_; }
  /// Of the last run.
  const trace::Timeline& timeline() const { return timeline_; }

 private:
  /// For the longest sequences there are.
  batch::Capacity capacity_of(const packing::LengthHistogram& histogram) const {
    const std::int64_t longest = histogram.longest();
    const auto sequences = static_cast<std::int64_t>(options_.sequences);
    return {.rows = longest * sequences,
            .sequences = sequences,
            .labels = {data::masked_count(longest, data::MaskingOptions{}.rate) * sequences},
            .max_length = longest};
  }
  batch::MicroBatch micro_batch_of(const std::vector<std::uint64_t>& ids,
                                   const std::vector<std::size_t>& share) const {
    data::MicroBatchPlan plan;
    for (const std::size_t i : share) {
      const std::int64_t length = source_.length(ids[i]);
      plan.sequences.push_back({.id = ids[i], .start = plan.num_rows, .length = length});
      plan.num_rows += length;
      plan.labels += data::masked_count(length, data::MaskingOptions{}.rate);
    }
    const data::Masking masking({}, source_.vocabulary(), options_.seed, 0);
    return data::build_micro_batch(plan, source_, masking, data::MicroBatchUse::Training);
  }

  Options options_;
  describe::ModelConfig model_;
  test::SyntheticSequences source_;
  batch::Capacity capacity_;
  schedule::Schedule schedule_;
  std::vector<std::unique_ptr<pipeline::BertProgram>> programs_;
  std::optional<pipeline::Executor> executor_;
  std::uint64_t step_ = 0;
  trace::Timeline timeline_;
};

void write_trace_file(const std::string& path, const trace::Timeline& timeline) {
  io::AtomicFile file(path);
  trace::write_trace(timeline, [&file](std::string_view piece) { file.write(piece); });
  file.commit();
}

void measure_steps(const Options& options, const packing::LengthHistogram& histogram) {
  Ranks ranks(options, histogram);
  const Costs costs(options.model);
  std::mt19937_64 generator(options.seed);
  const std::uint64_t num_sequences = histogram.num_sequences();
  std::vector<double> off, on;
  trace::Timeline off_timeline, on_timeline;
  double load_off = 0;
  double load_on = 0;
  double last_off = 0;
  double last_on = 0;
  for (std::size_t step = 0; step <= options.steps; ++step) {
    std::vector<std::uint64_t> ids(options.ranks * options.sequences);
    Lengths lengths;
    for (std::uint64_t& id : ids) {
      id = generator() % num_sequences;
      lengths.push_back(ranks.source().length(id));
    }
    const Shares naive = as_they_come(lengths, options.ranks);
    const Shares divided = divided_by_cost(lengths, options.ranks, costs);
    // Now one, now the other first: a step may find a warmer machine than the one before it.
    const bool is_off_first = step % 2 == 0;
    const double first = ranks.run(ids, is_off_first ? naive : divided);
    (is_off_first ? off_timeline : on_timeline) = ranks.timeline();
    const double second = ranks.run(ids, is_off_first ? divided : naive);
    (is_off_first ? on_timeline : off_timeline) = ranks.timeline();
    if (step == 0) continue;  // warms up
    off.push_back(is_off_first ? first : second);
    on.push_back(is_off_first ? second : first);
    const auto load = [&](std::size_t s) { return costs(lengths[s]); };
    last_off = busiest_over_mean(naive, load);
    last_on = busiest_over_mean(divided, load);
    load_off += last_off / static_cast<double>(options.steps);
    load_on += last_on / static_cast<double>(options.steps);
  }
  if (!options.traces.empty()) {
    write_trace_file(options.traces + "/as-they-come.json", off_timeline);
    write_trace_file(options.traces + "/divided.json", on_timeline);
  }
  fmt::print("{}\n", nlohmann::json({{"measured", true},
                                     {"model", options.model},
                                     {"ranks", options.ranks},
                                     {"sequences", options.sequences},
                                     {"off_seconds", off},
                                     {"on_seconds", on},
                                     {"off_load", load_off},
                                     {"on_load", load_on},
                                     {"last_off_load", last_off},
                                     {"last_on_load", last_on}})
                         .dump());
}

}  // namespace
}  // namespace plenum

int main(int argc, char** argv) {
  plenum::Options options;
  CLI::App app("What it is worth to exchange sequences between ranks");
  app.add_option("--histogram", options.histogram, "Line i: the number of sequences of length i")->required();
  app.add_option("--model", options.model);
  app.add_option("--draws", options.draws);
  app.add_option("--ranks", options.ranks, "Train on so many");
  app.add_option("--sequences", options.sequences, "Of each rank and step");
  app.add_option("--steps", options.steps);
  app.add_option("--seed", options.seed);
  app.add_option("--traces", options.traces, "Where traces of the last step go");
  CLI11_PARSE(app, argc, argv);
  try {
    const plenum::packing::LengthHistogram histogram =
        plenum::data::read_histogram_file(options.histogram, plenum::packing::HistogramText::Form::Histogram);
    if (options.ranks == 0) plenum::count_loads(options, histogram);
    if (options.ranks > 0) plenum::measure_steps(options, histogram);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_exchange: {}\n", error.what());
    return 2;
  }
  return 0;
}
