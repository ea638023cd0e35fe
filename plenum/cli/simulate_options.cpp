#include "plenum/cli/simulate_options.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "plenum/base/check.h"
#include "plenum/base/units.h"
#include "plenum/describe/bert.h"
#include "plenum/io/file.h"

namespace plenum::cli {
namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;
constexpr std::int64_t kMostRanks = 1 << 16;
constexpr std::int64_t kMostMicroBatches = 1 << 20;
constexpr double kLongestMs = 1e9;

/// "3,3,2" -> {3, 3, 2}; nothing for an empty text.
template <typename Number>
std::vector<Number> parse_list(const std::string& text, const std::string& option) {
  std::vector<Number> numbers;
  for (std::size_t begin = 0; !text.empty() && begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::int64_t value = base::parse_integer(text.substr(begin, end - begin), "--" + option);
    base::require(value > 0 && value < std::numeric_limits<Number>::max(),
                  "--{} must lie between 1 and {}: {}", option, std::numeric_limits<Number>::max() - 1,
                  value);
    numbers.push_back(static_cast<Number>(value));
    begin = end + 1;
  }
  return numbers;
}

/// "gpipe, 1f1b": the generators for which a row of their table says so.
template <typename Predicate>
std::string names_of_those(Predicate is_wanted) {
  std::string names;
  for (const schedule::Generator& generator : schedule::all_generators()) {
    if (is_wanted(generator)) names += fmt::format("{}{}", names.empty() ? "" : ", ", generator.name);
  }
  return names;
}

void add_problem(base::OptionTable& table, SimulateOptions& options) {
  table.add("schedule", options.schedule, "NAME",
            "What to generate: " + names_of_those([](const schedule::Generator&) { return true; }));
  table.add("from", options.from, "FILE", "Read a schedule (text or JSON) instead of generating one");
  table.add("compare", options.compare, "Print all schedules side by side");
  table.add("stages", options.stages, 1, kMostRanks, "Ranks that one pipeline is spread over");
  table.add("micro-batches", options.micro_batches, 1, kMostMicroBatches,
            "Micro-batches of one replica in a step");
  table.add("replicas", options.replicas, 1, kMostRanks, "Data-parallel copies of the pipeline");
  table.add("layers-per-stage", options.layers_per_stage, 1, 4096, "Layers of every stage");
  table.add("stage-layers", options.stage_layers, "N,N,...", "Layers of each stage, where they differ");
  table.add("sizes", options.sizes, "N,N,...", "Tokens of each micro-batch, where they differ");
  table.add("chunks", options.chunks, 1, 1024,
            "Stages on a rank: " + names_of_those([](const auto& row) { return row.has_chunks; }));
  table.add("buckets", options.buckets, 1, 4096, "Parts of a stage whose gradients are reduced apart");
  table.add("recompute", options.recompute, "Keep only the input of every layer and compute the rest again");
  table.add_choice("shard", options.shard,
                   {{"none", schedule::Sharding::None},
                    {"optimizer", schedule::Sharding::Optimizer},
                    {"gradients", schedule::Sharding::Gradients},
                    {"parameters", schedule::Sharding::Parameters}},
                   "What the holders of a stage divide among themselves");
  table.add("tied", options.tied, "The first and the last stage share a parameter");
  table.add("tied-halves", options.tied_halves,
            "With --tied and one stage: reduce the last layers' half of its gradient early");
}

void add_costs(base::OptionTable& table, SimulateOptions& options) {
  table.add("profile", options.profile, "CSV",
            "What a layer costs by micro-batch size; see recipes/profiles");
  table.add("batch", options.batch, 1, 1 << 20, "The micro-batch size to take from the profile");
  table.add("forward-ms", options.forward_ms, 0, kLongestMs, "Without a profile: forward of a layer");
  table.add("backward-ms", options.backward_ms, 0, kLongestMs, "Without a profile: backward of a layer");
  table.add("curvature-ms", options.curvature_ms, 0, kLongestMs,
            "Without a profile: curvature of a layer and micro-batch");
  table.add("inversion-ms", options.inversion_ms, 0, kLongestMs,
            "Without a profile: inversion of a layer's factors");
  table.add("precondition-ms", options.precondition_ms, 0, kLongestMs,
            "Without a profile: preconditioning of a layer");
  table.add("update-ms", options.update_ms, 0, kLongestMs, "Update of a layer");
  table.add("latency-us", options.latency_us, 0, 1e9, "Of a message between two ranks");
  table.add("bandwidth-mb", options.bandwidth_mb_per_second, 1, std::int64_t{1} << 40,
            "Megabytes per second between two ranks; default: no limit");
  table.add("boundary-mib", options.boundary_mib, 0, 1e9,
            "Mebibytes that a micro-batch sends from stage to stage");
}

}  // namespace

base::OptionTable simulate_option_table(SimulateOptions& options) {
  base::OptionTable table("simulate");
  add_problem(table, options);
  add_costs(table, options);
  table.add_choice("fill", options.fill,
                   {{"none", FillKind::None}, {"kfac", FillKind::Kfac}, {"shampoo", FillKind::Shampoo}},
                   "Second-order work to place into idle time");
  table.add_choice(
      "fill-mode", options.fill_mode,
      {{"deferred", schedule::FillMode::Deferred}, {"fresh", schedule::FillMode::Fresh}},
      "With --fill kfac: curvature of all micro-batches, spread over later steps, or of as many as "
      "fit into the idle time of their own step");
  table.add_fraction("margin", options.margin, "How much longer filling may make a step");
  table.add("fill-memory-mib", options.fill_memory_mib, 0, std::int64_t{1} << 40,
            "With --profile: mebibytes that filling may keep alive on a rank; default: no limit");
  table.add("max-cycle", options.max_cycle, 1, 128,
            "Steps after which a filled schedule repeats, more only where nothing fits; default: 48 to 128");
  table.add("drains", options.drains,
            "Let all second-order work of a cycle end with it, as a run that is to be resumed between cycles "
            "needs");
  table.add("on-one-rank", options.on_one_rank,
            "Make of a filled schedule one for a single rank that trains the same, with inverses as old");
  table.add("json", options.json, "Print the result as JSON");
  table.add("output", options.output, "FILE", "Write the schedule: .json, or text");
  table.add("svg", options.svg, "FILE", "Draw the timeline as SVG");
  table.add("trace", options.trace, "FILE", "Write the timeline for Perfetto or chrome://tracing");
  table.add("rehearse", options.rehearse,
            "Run it in real time on threads that sleep as long as predicted, and compare");
  table.add("overlay", options.overlay, "FILE",
            "With --rehearse: draw what was measured below what was predicted");
  table.add("show-steps", options.show_steps, 1, 1 << 20, "Steps of the cycle that are drawn, at most");
  table.add("width", options.width, 0, 1000, "Columns of the drawing; 0: as wide as the terminal");
  table.add("all-lanes", options.all_lanes, "Draw communication beside computation");
  return table;
}

void require_consistent(const SimulateOptions& options) {
  base::require(options.rehearse || options.overlay.empty(), "--overlay needs --rehearse");
  base::require(
      options.fill == FillKind::Kfac || options.fill_mode == schedule::FillMode::Deferred,
      "--fill-mode fresh needs --fill kfac: only curvature can be that of a part of the micro-batches");
  if (options.fill_memory_mib) {
    base::require(options.fill != FillKind::None && !options.profile.empty(),
                  "--fill-memory-mib needs --fill and --profile: only a profile says what is kept alive");
  }
  base::require(!options.on_one_rank || !options.compare,
                "--compare simulates the ranks of every schedule: leave out --on-one-rank");
  if (!options.compare) return;
  base::require(
      options.from.empty() && options.output.empty() && options.svg.empty() && options.trace.empty(),
      "--compare generates its schedules and writes no file: leave out --from, --output, --svg, --trace");
  base::require(!options.rehearse, "--compare runs no schedule: leave out --rehearse");
}

std::string unused_options(SimulateOptions& options) {
  SimulateOptions defaults;
  base::OptionTable given("simulate");
  base::OptionTable usual("simulate");
  add_problem(given, options);
  add_problem(usual, defaults);
  std::string names;
  for (const base::Option& option : given.options()) {
    const bool is_used =
        options.from.empty() ? !options.compare || option.name != "schedule" : option.name == "from";
    if (is_used || option.get() == usual.find(option.name)->get()) continue;
    names += fmt::format("{}--{}", names.empty() ? "" : ", ", option.name);
  }
  return names;
}

schedule::GeneratorOptions generator_options(const SimulateOptions& options,
                                             const schedule::Generator& generator) {
  schedule::GeneratorOptions wanted{
      .depth = static_cast<std::size_t>(options.stages),
      .num_micro_batches = static_cast<std::size_t>(options.micro_batches),
      .num_replicas = static_cast<std::size_t>(options.replicas),
      .stage_layers = parse_list<std::uint16_t>(options.stage_layers, "stage-layers"),
      .num_chunks = static_cast<std::size_t>(options.chunks),
      .num_buckets = static_cast<std::size_t>(options.buckets),
      .recomputation = options.recompute ? schedule::Recomputation::Full : schedule::Recomputation::None,
      .sharding = options.shard,
      .has_tied_parameters = options.tied,
      .has_tied_halves = options.tied_halves,
      .micro_batch_sizes = parse_list<std::uint32_t>(options.sizes, "sizes")};
  if (wanted.stage_layers.empty()) {
    wanted.stage_layers.assign(wanted.depth, static_cast<std::uint16_t>(options.layers_per_stage));
  }
  if (generator.has_chunks && wanted.stage_layers.size() == wanted.depth) {
    const auto fewest = *std::min_element(wanted.stage_layers.begin(), wanted.stage_layers.end());
    base::require(fewest >= wanted.num_chunks,
                  "{} divides the layers of a rank into {} chunks (--chunks), and a rank has only {} "
                  "(--layers-per-stage, --stage-layers)",
                  generator.name, wanted.num_chunks, fewest);
    wanted.stage_layers = schedule::divide_over_chunks(wanted.stage_layers, wanted.num_chunks);
  }
  if (!generator.is_pipeline()) {
    std::size_t total = 0;
    for (const std::uint16_t layers : wanted.stage_layers) total += layers;
    base::require(total < std::numeric_limits<std::uint16_t>::max(), "too many layers: {}", total);
    wanted.depth = 1;
    wanted.stage_layers = {static_cast<std::uint16_t>(total)};
  }
  return wanted;
}

schedule::LayerCosts layer_costs(const SimulateOptions& options) {
  if (!options.profile.empty()) {
    return schedule::parse_layer_profile(io::read_file(options.profile), options.profile).row(options.batch);
  }
  return {.forward_seconds = options.forward_ms * 1e-3,
          .backward_seconds = options.backward_ms * 1e-3,
          .curvature_seconds = options.curvature_ms * 1e-3,
          .inversion_seconds = options.inversion_ms * 1e-3,
          .precondition_seconds = options.precondition_ms * 1e-3};
}

std::vector<schedule::LinearMap> bert_factor_maps() {
  const describe::ModelDescription model = describe::describe_bert(describe::preset("bert-base"));
  std::vector<schedule::LinearMap> maps;
  for (const describe::FactorShape& shape : describe::factor_shapes(model.layers.front())) {
    maps.push_back({static_cast<double>(shape.in_width), static_cast<double>(shape.out_width)});
  }
  return maps;
}

schedule::ProfileOptions profile_options(const SimulateOptions& options, const schedule::Problem& problem) {
  schedule::ProfileOptions costs{.maps = bert_factor_maps()};
  if (problem.num_factors > 0 && problem.num_factors != costs.maps.size()) {
    costs.maps.assign(problem.num_factors, {});
  }
  costs.communication.latency_seconds = options.latency_us * 1e-6;
  costs.communication.boundary_bytes = options.boundary_mib * kMebibyte;
  if (options.bandwidth_mb_per_second) {
    costs.communication.bytes_per_second = static_cast<double>(*options.bandwidth_mb_per_second) * 1e6;
  }
  costs.update_seconds_per_layer = options.update_ms * 1e-3;
  return costs;
}

}  // namespace plenum::cli
