#include "plenum/cli/calibrate_report.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plenum/base/units.h"

namespace plenum::cli {
namespace {

using calibrate::LinkOperation;
using calibrate::MeasuredLink;
using calibrate::Setting;
using Json = nlohmann::ordered_json;

std::string_view operation_text(LinkOperation operation) {
  switch (operation) {
    case LinkOperation::Message:
      return "message";
    case LinkOperation::AllReduce:
      return "all-reduce";
    case LinkOperation::Gather:
      return "gather";
    case LinkOperation::ReduceScatter:
      return "reduce-scatter";
  }
  return "";
}

std::string setting_text(const Setting& setting) {
  const std::string ranks = fmt::format("{} rank{}", setting.ranks, setting.ranks == 1 ? "" : "s");
  if (setting.device == tensor::Device::Cuda) return ranks + ", GPU";
  return fmt::format("{}, {} thread{}", ranks, setting.threads, setting.threads == 1 ? "" : "s");
}

std::size_t num_points(const Setting& setting) {
  std::size_t count = 0;
  for (std::size_t kind = 0; kind < plan::kNumOpKinds; ++kind) {
    count += setting.model.points(static_cast<plan::OpKind>(kind)).size();
  }
  return count;
}

/// Of the spreads of all points; 0 where there are none.
double median_spread(const Setting& setting) {
  std::vector<double> spreads;
  for (const std::vector<double>& of_kind : setting.spreads.points) {
    spreads.insert(spreads.end(), of_kind.begin(), of_kind.end());
  }
  if (spreads.empty()) return 0;
  std::ranges::sort(spreads);
  return spreads[spreads.size() / 2];
}

std::string plus_minus(double spread) {
  return fmt::format("{:.1f} %", 100 * spread);
}

Json setting_json(const Setting& setting) {
  Json json;
  json["device"] = setting.device == tensor::Device::Cpu ? "cpu" : "cuda";
  json["ranks"] = setting.ranks;
  json["threads"] = setting.threads;
  json["peak_flops"] = setting.model.peak_flops;
  json["peak_flops_spread"] = setting.spreads.gemm;
  json["peak_bytes_per_second"] = setting.model.peak_bytes_per_second;
  json["peak_bytes_spread"] = setting.spreads.copy;
  json["launch_seconds"] = setting.model.launch_seconds;
  json["launch_spread"] = setting.spreads.launch;
  json["sizes_left_out"] = setting.num_left_out;
  json["links"] = Json::array();
  for (const MeasuredLink& link : setting.links) {
    json["links"].push_back({{"operation", operation_text(link.operation)},
                             {"latency_seconds", link.link.latency_seconds},
                             {"bytes_per_second", link.link.bytes_per_second},
                             {"fit_error", link.fit_error}});
  }
  json["points"] = Json::array();
  for (std::size_t kind = 0; kind < plan::kNumOpKinds; ++kind) {
    const auto of_kind = setting.model.points(static_cast<plan::OpKind>(kind));
    for (std::size_t i = 0; i < of_kind.size(); ++i) {
      json["points"].push_back({{"kind", plan::op_kind_name(static_cast<plan::OpKind>(kind))},
                                {"rows", of_kind[i].rows},
                                {"in", of_kind[i].in},
                                {"out", of_kind[i].out},
                                {"efficiency", of_kind[i].efficiency},
                                {"spread", setting.spreads.points[kind][i]}});
    }
  }
  return json;
}

}  // namespace

std::string calibrate_report_text(const calibrate::Machine& machine) {
  std::string text = fmt::format("{}, {}\n\n", machine.name, machine.date);
  text += fmt::format("{:<24} {:>14} {:>7} {:>11} {:>7} {:>9} {:>6} {:>9} {:>7}\n", "each rank of",
                      "products", "spread", "copies", "spread", "launch", "sizes", "left out", "spread");
  for (const Setting& setting : machine.settings) {
    text += fmt::format("{:<24} {:>6.0f} GFLOP/s {:>7} {:>6.1f} GB/s {:>7} {:>6.1f} us {:>6} {:>9} {:>7}\n",
                        setting_text(setting), setting.model.peak_flops * 1e-9,
                        plus_minus(setting.spreads.gemm), setting.model.peak_bytes_per_second * 1e-9,
                        plus_minus(setting.spreads.copy), setting.model.launch_seconds * 1e6,
                        num_points(setting), setting.num_left_out, plus_minus(median_spread(setting)));
  }
  const bool has_links =
      std::ranges::any_of(machine.settings, [](const Setting& setting) { return !setting.links.empty(); });
  if (has_links) {
    text += fmt::format("\n{:<24} {:<14} {:>11} {:>12} {:>10}\n", "link between", "", "latency", "bandwidth",
                        "fit error");
  }
  for (const Setting& setting : machine.settings) {
    for (const MeasuredLink& link : setting.links) {
      text += fmt::format("{:<24} {:<14} {:>8.1f} us {:>7.2f} GB/s {:>10}\n", setting_text(setting),
                          operation_text(link.operation), link.link.latency_seconds * 1e6,
                          link.link.bytes_per_second * 1e-9, plus_minus(link.fit_error));
    }
  }
  return text + fmt::format("\nA process takes {} beside what is planned.\n",
                            base::format_bytes(static_cast<std::uint64_t>(machine.overhead_bytes)));
}

std::string calibrate_report_json(const calibrate::Machine& machine) {
  Json json;
  json["name"] = machine.name;
  json["date"] = machine.date;
  json["memory_bytes"] = machine.memory_bytes;
  json["overhead_bytes"] = machine.overhead_bytes;
  json["step_overhead_seconds"] = machine.step_overhead_seconds;
  json["settings"] = Json::array();
  for (const Setting& setting : machine.settings) json["settings"].push_back(setting_json(setting));
  return json.dump(2);
}

}  // namespace plenum::cli
