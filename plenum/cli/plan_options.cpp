#include "plenum/cli/plan_options.h"

#include <fmt/format.h>

#include "plenum/base/units.h"
#include "plenum/packing/histogram.h"

namespace plenum::cli {

std::vector<base::OptionTable> PlanOptions::tables() {
  base::OptionTable table("plan");
  constexpr std::int64_t kMost = 1 << 20;
  table.add("cluster", cluster, "FILE",
            "What to plan for: a file of plenum calibrate or of a cluster (recipes/clusters)");
  table.add(
      "histogram", histogram, "FILE",
      "Instead of --data, lengths of sequences: line i is the number of length i, or each line a length "
      "and a number");
  table.add("max-length", max_length, 1, kMost,
            "With --histogram: the longest that a sequence may be; default: the longest that occurs");
  table.add("nodes", nodes, 1, kMost, "Nodes of the cluster; default: as its file says");
  table.add("ranks", ranks, 1, kMost, "Devices to use; default: all of the cluster");
  table.add("threads", threads, 1, 4096, "Of a rank on the CPU; default: as the cluster's file says");
  table.add_parsed("memory-limit", memory_limit, "BYTES",
                   "What a process may take, such as 24GB: a GPU's rank, or on one node of CPUs all ranks "
                   "together; default: "
                   "what the cluster has",
                   base::parse_bytes, [](double bytes) { return fmt::format("{:.0f}", bytes); });
  table.add_choice("reduce-dtype", reduce_dtype,
                   {{"fp32", tensor::DType::Float32}, {"bf16", tensor::DType::BFloat16}},
                   "In which gradients travel between ranks: bf16 in half the bytes, each rounded");
  train::add_fill_option(table, run.run.fill);
  table.add("top", top, 1, 1000, "How many plans to find for certain, and to print");
  table.add("simulate", simulate, 1, kMost, "How many plans to simulate at most");
  table.add("output", output, "FILE", "Write the best plan as a configuration for plenum train --plan");
  table.add("svg", svg, "FILE", "Draw a simulated step of the best plan");
  table.add("explain", explain, "Show where the time of the best plan goes, and what one change would buy");
  table.add(
      "what-if", what_if, "CHANGE",
      "Plan for a changed cluster, too: link.bandwidth, link.latency, device.flops, device.bandwidth or "
      "memory, as in link.bandwidth=2x or memory=40e9");
  table.add("price", price, 0, 1e9, "Of a device for an hour: print what a billion tokens cost");
  table.add("json", json, "Print the result as JSON");
  std::vector<base::OptionTable> tables = {std::move(table)};
  tables.push_back(run.model.table());
  tables.push_back(run.data.table());
  tables.push_back(run.optimizer.table());
  return tables;
}

}  // namespace plenum::cli
