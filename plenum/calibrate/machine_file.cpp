#include "plenum/calibrate/machine_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "plenum/base/check.h"
#include "plenum/calibrate/model_file.h"
#include "plenum/io/file.h"
#include "plenum/io/toml_file.h"

namespace plenum::calibrate {
namespace {

constexpr std::size_t kMostSettings = 1000;

std::string_view operation_name(LinkOperation operation) {
  switch (operation) {
    case LinkOperation::Message:
      return "message";
    case LinkOperation::AllReduce:
      return "all_reduce";
    case LinkOperation::Gather:
      return "gather";
    case LinkOperation::ReduceScatter:
      return "reduce_scatter";
  }
  return "";
}

/// In quotes; a name may hold anything.
std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + "\"";
}

std::string print_setting(const Setting& setting) {
  std::string text = fmt::format("\n[[setting]]\ndevice = \"{}\"\nranks = {}\nthreads = {}\n",
                                 device_name(setting.device), setting.ranks, setting.threads);
  text += print_device_limits(setting.model);
  text += fmt::format("peak-flops-spread = {:.3g}\npeak-bytes-spread = {:.3g}\nlaunch-spread = {:.3g}\n",
                      setting.spreads.gemm, setting.spreads.copy, setting.spreads.launch);
  text += fmt::format("left-out = {}\n\n", setting.num_left_out);
  for (const MeasuredLink& link : setting.links) {
    text += fmt::format("[setting.link.{}]\n{}fit-error = {:.3g}\n\n", operation_name(link.operation),
                        print_link(link.link), link.fit_error);
  }
  return text + print_efficiency(setting.model, setting.spreads, "setting.efficiency");
}

std::vector<MeasuredLink> read_links(const io::TomlValue& value) {
  const io::TomlTable links(value, "[setting.link]", {"message", "all_reduce", "gather", "reduce_scatter"});
  std::vector<MeasuredLink> result;
  for (std::size_t i = 0; i < kNumLinkOperations; ++i) {
    const auto operation = static_cast<LinkOperation>(i);
    const io::TomlValue* found = links.find(operation_name(operation));
    if (found == nullptr) continue;
    const io::TomlTable link(*found, fmt::format("[setting.link.{}]", operation_name(operation)),
                             {"latency-seconds", "bytes-per-second", "fit-error"});
    result.push_back({operation, read_link(link), link.number("fit-error", 0, kMostSpread, 0)});
  }
  return result;
}

Setting read_setting(const io::TomlValue& value) {
  const io::TomlTable table(
      value, "[[setting]]",
      {"device", "ranks", "threads", "peak-flops", "peak-bytes-per-second", "launch-seconds",
       "peak-flops-spread", "peak-bytes-spread", "launch-spread", "left-out", "link", "efficiency"});
  Setting setting;
  setting.device = read_device(table, "device");
  setting.ranks = table.count("ranks", 1, kMostRanks);
  setting.threads = table.count("threads", 1, kMostThreads, 1);
  setting.model = read_device_model(table, setting.spreads);
  setting.spreads.gemm = table.number("peak-flops-spread", 0, kMostSpread, 0);
  setting.spreads.copy = table.number("peak-bytes-spread", 0, kMostSpread, 0);
  setting.spreads.launch = table.number("launch-spread", 0, kMostSpread, 0);
  setting.num_left_out = table.count("left-out", 0, kMostRanks, 0);
  if (const io::TomlValue* links = table.find("link")) setting.links = read_links(*links);
  return setting;
}

const io::TomlValue* find_table(const io::TomlValue& root, std::string_view name) {
  for (const io::TomlEntry& entry : root.table) {
    if (entry.key == name) return &entry.value;
  }
  return nullptr;
}

Machine machine_in(const io::TomlValue& root, const std::string& path) {
  const io::TomlTable file(root, "a machine's file", {"machine", "setting"});
  base::require(file.find("machine") != nullptr, "{}: lacks the table [machine]", path);
  const io::TomlTable table(file.require("machine"), "[machine]",
                            {"name", "date", "memory-bytes", "overhead-bytes", "step-overhead-seconds"});
  Machine machine;
  machine.name = table.text("name");
  machine.date = table.text("date", "unknown");
  machine.memory_bytes = table.number("memory-bytes", kLeastMemory, kMostBytes);
  machine.overhead_bytes = table.number("overhead-bytes", 0, kMostBytes, 0);
  machine.step_overhead_seconds = table.number("step-overhead-seconds", 0, kMostOverheadSeconds, 0);
  const std::vector<io::TomlValue>& settings = file.list("setting");
  base::require(!settings.empty() && settings.size() <= kMostSettings,
                "{}: a machine's file has between 1 and {} tables [[setting]]: {}", path, kMostSettings,
                settings.size());
  for (const io::TomlValue& setting : settings) machine.settings.push_back(read_setting(setting));
  return machine;
}

/// How far a setting is from what is asked for, in powers of two.
double distance(const Setting& setting, const ClusterRequest& request) {
  const auto of = [](std::size_t have, std::size_t want) {
    return want == 0 ? 0 : std::abs(std::log2(static_cast<double>(have) / static_cast<double>(want)));
  };
  return of(setting.ranks, request.ranks) + of(setting.threads, request.threads);
}

const Setting& nearest_setting(const Machine& machine, const ClusterRequest& request) {
  base::check(!machine.settings.empty(), "a machine has settings");
  return *std::ranges::min_element(machine.settings, {},
                                   [&](const Setting& setting) { return distance(setting, request); });
}

/// Of collectives where they were measured. A machine with one rank has none.
std::optional<plan::Link> link_of(const Setting& setting) {
  const auto link = std::ranges::find(setting.links, LinkOperation::AllReduce, &MeasuredLink::operation);
  if (link != setting.links.end()) return link->link;
  return setting.links.empty() ? std::nullopt : std::optional(setting.links.front().link);
}

/// A link that is only asked for where there is anybody to talk to.
plan::Link read_link_table(const io::TomlTable& file, std::string_view name, bool is_needed,
                           const plan::Link& otherwise) {
  const io::TomlValue* value = file.find(name);
  if (value == nullptr) {
    base::require(!is_needed || otherwise.bytes_per_second > 0, "{}: a cluster's file lacks the table [{}]",
                  file.place(), name);
    return otherwise;
  }
  return read_link(io::TomlTable(*value, fmt::format("[{}]", name), {"latency-seconds", "bytes-per-second"}));
}

std::string beside(const std::string& path, const std::string& other) {
  const std::filesystem::path named(other);
  return named.is_absolute() ? other : (std::filesystem::path(path).parent_path() / named).string();
}

void read_inline_device(const io::TomlValue& value, plan::Cluster& cluster) {
  const io::TomlTable device(
      value, "[device]",
      {"kind", "threads", "peak-flops", "peak-bytes-per-second", "launch-seconds", "efficiency"});
  Spreads spreads;
  cluster.kind = read_device(device, "kind");
  cluster.threads = device.count("threads", 1, kMostThreads, 1);
  cluster.device = read_device_model(device, spreads);
}

plan::Cluster cluster_in(const io::TomlValue& root, const std::string& path, const ClusterRequest& request) {
  const io::TomlTable file(root, "a cluster's file", {"cluster", "device", "within-node", "between-nodes"});
  const io::TomlTable table(file.require("cluster"), "[cluster]",
                            {"name", "provenance", "nodes", "devices-per-node", "machine", "memory-bytes",
                             "overhead-bytes", "step-overhead-seconds", "price-per-device-hour"});
  const io::TomlValue* device = file.find("device");
  const io::TomlValue* machine = table.find("machine");
  base::require((device == nullptr) != (machine == nullptr),
                "{}: a cluster has either a table [device] or the key 'machine'", table.place());
  plan::Cluster cluster;
  if (machine != nullptr) {
    const Machine known = read_machine(beside(path, table.text("machine")));
    cluster = cluster_of(
        known, {.ranks = request.ranks != 0 ? request.ranks : table.count("devices-per-node", 1, kMostRanks),
                .threads = request.threads});
  } else {
    read_inline_device(*device, cluster);
    if (request.threads != 0) cluster.threads = request.threads;
  }
  cluster.name = table.text("name");
  cluster.provenance = table.choice("provenance", {"measured", "datasheet"}) == 0
                           ? plan::Provenance::Measured
                           : plan::Provenance::Datasheet;
  cluster.num_nodes = table.count("nodes", 1, kMostRanks);
  cluster.devices_per_node = table.count("devices-per-node", 1, kMostRanks);
  if (request.ranks != 0) cluster.devices_per_node = request.ranks;
  if (machine == nullptr || table.find("memory-bytes") != nullptr) {
    cluster.memory_bytes = table.number("memory-bytes", kLeastMemory, kMostBytes);
  }
  cluster.overhead_bytes = table.number("overhead-bytes", 0, kMostBytes, cluster.overhead_bytes);
  cluster.step_overhead_seconds =
      table.number("step-overhead-seconds", 0, kMostOverheadSeconds, cluster.step_overhead_seconds);
  constexpr double kMostPrice = 1e6;
  cluster.price_per_device_hour = table.optional_number("price-per-device-hour", 0, kMostPrice);
  cluster.within_node =
      read_link_table(file, "within-node", cluster.devices_per_node > 1, cluster.within_node);
  cluster.between_nodes = read_link_table(file, "between-nodes", cluster.num_nodes > 1, {});
  return cluster;
}

}  // namespace

std::string print_machine(const Machine& machine) {
  std::string text = fmt::format(
      "# What `plenum calibrate` measured. docs/formats.md says what the keys mean.\n"
      "[machine]\nname = {}\ndate = {}\nmemory-bytes = {:.6g}\noverhead-bytes = {:.6g}\n"
      "step-overhead-seconds = {:.6g}\n",
      in_quotes(machine.name), in_quotes(machine.date), machine.memory_bytes, machine.overhead_bytes,
      machine.step_overhead_seconds);
  for (const Setting& setting : machine.settings) text += print_setting(setting);
  return text;
}

void write_machine(const Machine& machine, const std::string& path) {
  io::write_file(path, print_machine(machine));
}

Machine read_machine(const std::string& path) {
  return machine_in(io::read_toml_file(path), path);
}

plan::Cluster cluster_of(const Machine& machine, const ClusterRequest& request) {
  const Setting& setting = nearest_setting(machine, request);
  plan::Cluster cluster;
  cluster.name = machine.name;
  cluster.provenance = plan::Provenance::Measured;
  cluster.devices_per_node = request.ranks != 0 ? request.ranks : setting.ranks;
  cluster.kind = setting.device;
  cluster.threads = request.threads != 0 ? request.threads : setting.threads;
  cluster.device = setting.model;
  if (const std::optional<plan::Link> link = link_of(setting)) cluster.within_node = *link;
  cluster.memory_bytes = machine.memory_bytes;
  cluster.overhead_bytes = machine.overhead_bytes;
  cluster.step_overhead_seconds = machine.step_overhead_seconds;
  return cluster;
}

plan::Cluster read_cluster(const std::string& path, const ClusterRequest& request) {
  const io::TomlValue root = io::read_toml_file(path);
  if (find_table(root, "cluster") != nullptr) return cluster_in(root, path, request);
  base::require(find_table(root, "machine") != nullptr,
                "{}: has neither a table [cluster] nor a table [machine]", path);
  return cluster_of(machine_in(root, path), request);
}

}  // namespace plenum::calibrate
