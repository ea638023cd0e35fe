#include "plenum/calibrate/model_file.h"

#include "plenum/base/check.h"
#include "plenum/base/options.h"

namespace plenum::calibrate {
namespace {

using plan::OpKind;

OpKind kind_of(const std::string& key, const std::string& place) {
  if (const std::optional<OpKind> kind = plan::op_kind_named(key)) return *kind;
  std::vector<std::string> names;
  for (std::size_t kind = 0; kind < plan::kNumOpKinds; ++kind) {
    names.emplace_back(plan::op_kind_name(static_cast<OpKind>(kind)));
  }
  base::fail("{}: unknown kind of operation '{}'{}", place, key, base::suggest_name(key, names));
}

/// [rows, in, out, efficiency] and, measured, its spread.
void read_point(const io::TomlValue& value, const std::string& kind,
                std::vector<plan::EfficiencyPoint>& points, std::vector<double>& spreads) {
  base::require(
      value.kind == io::TomlValue::Kind::List && (value.list.size() == 4 || value.list.size() == 5),
      "{}: a point of {} must be [rows, in, out, efficiency], or [rows, in, out, efficiency, spread]",
      value.place, kind);
  const auto size = [&](std::size_t index, const char* name) {
    return io::toml_number(value.list[index], fmt::format("{} of {}", name, kind), 1, kMostSize);
  };
  points.push_back({.rows = size(0, "rows"),
                    .in = size(1, "in"),
                    .out = size(2, "out"),
                    .efficiency = io::toml_number(value.list[3], "the efficiency of " + kind,
                                                  kLeastEfficiency, kMostEfficiency)});
  spreads.push_back(
      value.list.size() == 5 ? io::toml_number(value.list[4], "the spread of " + kind, 0, kMostSpread) : 0);
}

void read_efficiency(const io::TomlValue& value, plan::DeviceModel& model, Spreads& spreads) {
  base::require(value.kind == io::TomlValue::Kind::Table, "{}: efficiency must be a table", value.place);
  for (const auto& [key, of_kind] : value.table) {
    const OpKind kind = kind_of(key, of_kind.place);
    if (of_kind.kind == io::TomlValue::Kind::Number) {
      model.set_default_efficiency(
          kind, io::toml_number(of_kind, "the efficiency of " + key, kLeastEfficiency, kMostEfficiency));
      continue;
    }
    base::require(of_kind.kind == io::TomlValue::Kind::List,
                  "{}: the efficiency of {} must be a number or a list of points", of_kind.place, key);
    std::vector<plan::EfficiencyPoint> points;
    for (const io::TomlValue& point : of_kind.list) {
      read_point(point, key, points, spreads.points[static_cast<std::size_t>(kind)]);
    }
    model.set_points(kind, std::move(points));
  }
}

}  // namespace

plan::DeviceModel read_device_model(const io::TomlTable& table, Spreads& spreads) {
  plan::DeviceModel model;
  model.peak_flops = table.number("peak-flops", kLeastFlops, kMostFlops);
  model.peak_bytes_per_second = table.number("peak-bytes-per-second", kLeastRate, kMostRate);
  model.launch_seconds = table.number("launch-seconds", 0, kMostLaunch);
  if (const io::TomlValue* efficiency = table.find("efficiency"))
    read_efficiency(*efficiency, model, spreads);
  return model;
}

std::string print_device_limits(const plan::DeviceModel& model) {
  return fmt::format("peak-flops = {:.6g}\npeak-bytes-per-second = {:.6g}\nlaunch-seconds = {:.6g}\n",
                     model.peak_flops, model.peak_bytes_per_second, model.launch_seconds);
}

std::string print_efficiency(const plan::DeviceModel& model, const Spreads& spreads,
                             const std::string& name) {
  std::string text = fmt::format("[{}]\n", name);
  for (std::size_t index = 0; index < plan::kNumOpKinds; ++index) {
    const auto kind = static_cast<OpKind>(index);
    const std::span<const plan::EfficiencyPoint> points = model.points(kind);
    if (!model.is_known(kind)) continue;
    if (points.empty()) {
      text += fmt::format("{} = {:.6g}\n", plan::op_kind_name(kind), model.default_efficiency(kind));
      continue;
    }
    text += fmt::format("{} = [\n", plan::op_kind_name(kind));
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double spread = i < spreads.points[index].size() ? spreads.points[index][i] : 0;
      text += fmt::format("  [{:.10g}, {:.10g}, {:.10g}, {:.5g}, {:.3g}],\n", points[i].rows, points[i].in,
                          points[i].out, points[i].efficiency, spread);
    }
    text += "]\n";
  }
  return text;
}

plan::Link read_link(const io::TomlTable& table) {
  return {.latency_seconds = table.number("latency-seconds", 0, kMostLatency),
          .bytes_per_second = table.number("bytes-per-second", kLeastRate, kMostRate)};
}

std::string print_link(const plan::Link& link) {
  return fmt::format("latency-seconds = {:.6g}\nbytes-per-second = {:.6g}\n", link.latency_seconds,
                     link.bytes_per_second);
}

tensor::Device read_device(const io::TomlTable& table, const std::string& key) {
  return table.choice(key, {"cpu", "cuda"}) == 0 ? tensor::Device::Cpu : tensor::Device::Cuda;
}

std::string device_name(tensor::Device device) {
  return device == tensor::Device::Cpu ? "cpu" : "cuda";
}

}  // namespace plenum::calibrate
