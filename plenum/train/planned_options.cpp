#include "plenum/train/planned_options.h"

#include <vector>

#include <fmt/format.h>

#include "plenum/io/config_file.h"

namespace plenum::train {

RunOptions planned_options(RunOptions options, const plan::Strategy& strategy, const plan::Cluster& cluster) {
  const auto number = [](std::size_t value) { return static_cast<std::int64_t>(value); };
  RunSettings& run = options.run;
  const bool is_gpu = strategy.device == tensor::Device::Cuda;
  run.device = strategy.device;
  run.ranks = is_gpu ? 1 : number(strategy.num_ranks());
  // On several nodes a launcher starts the processes, and says how many there are.
  const bool is_one_node = strategy.num_ranks() <= cluster.devices_per_node;
  if (is_gpu && is_one_node && strategy.num_ranks() > 1) run.process.gpus = number(strategy.num_ranks());
  if (!is_gpu && is_one_node) run.threads = number(strategy.num_ranks() * cluster.threads);
  run.tp = number(strategy.slices);
  run.pp = number(strategy.depth);
  if (strategy.depth > 1) {
    run.schedule = strategy.pipeline;
    run.chunks = number(strategy.chunks);
    run.stage_layers = strategy.stage_layers;
  } else {
    run.fill.reset();
  }
  run.shard = strategy.sharding;
  run.recompute = strategy.recomputation;
  run.bucket_bytes = strategy.bucket_bytes;
  run.reduce_dtype = strategy.reduce_dtype;
  options.data.micro_batch_tokens = strategy.micro_batches.tokens;
  options.data.micro_batches = strategy.micro_batches.count;
  return options;
}

std::string print_plan_file(RunOptions options, const std::string& comment) {
  RunOptions plain;
  const std::vector<base::OptionTable> tables = options.tables();
  const std::vector<base::OptionTable> defaults = plain.tables();
  std::vector<base::OptionTable> changed;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    base::OptionTable table = tables[i].only(
        [&](const base::Option& option) { return option.get() != defaults[i].find(option.name)->get(); });
    if (!table.options().empty()) changed.push_back(std::move(table));
  }
  return fmt::format("{}\n{}", comment, io::print_config(changed));
}

}  // namespace plenum::train
