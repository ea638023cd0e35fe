#include "bench/gpu/profile/kernel_table.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "plenum/describe/bert.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/kernels/vocabulary_loss.h"

#include "bench/gpu/profile/idle_table.h"

namespace plenum::bench {
namespace {

constexpr double kSizeOfBFloat16 = 2;

/// A row of the table. Work is that of one step, 0 where it is not known.
struct Group {
  std::string label;
  /// The mangled name of a kernel holds the file that it was compiled from, with "_cu" for the end of it.
  std::vector<std::string_view> signs = {};
  double flops = 0;
  double bytes = 0;
  std::int64_t num_launches = 0;
  std::uint64_t ns = 0;

  void add(const KernelRecord& record) {
    ++num_launches;
    ns += record.end_ns - record.begin_ns;
  }
};

/// The kernels of the engine. A kernel belongs to the first group of which it has a sign.
std::vector<Group> engine_groups(const RecordedSteps& steps) {
  const describe::ModelConfig& model = steps.model;
  const auto num_steps = static_cast<double>(steps.num_steps);
  const auto L = static_cast<double>(model.num_layers);
  const auto D = static_cast<double>(model.width);
  const auto F = static_cast<double>(model.mlp_width);
  const double T = static_cast<double>(steps.num_rows) / num_steps;
  const double TD = kSizeOfBFloat16 * T * D;
  const double M = static_cast<double>(steps.work.labels[0]) / num_steps;
  const double MD = kSizeOfBFloat16 * M * D;
  // Rows behind attention, over all layers: in the last one those that heads read.
  const double S = static_cast<double>(steps.work.labels[1]) / num_steps;
  const double C = (L - 1) * T + M + S;
  const double CD = kSizeOfBFloat16 * C * D;
  const double MW = kSizeOfBFloat16 * M *
                    static_cast<double>(kernels::vocabulary_stride(tensor::Device::Cuda, model.vocabulary));
  const double scores = L * D * static_cast<double>(steps.work.squared_lengths) / num_steps;
  const auto N = static_cast<double>(describe::ParameterTable(describe::describe_bert(model)).num_elements());
  const double norm_arrays = model.hidden_dropout > 0 ? 4 : 3;  // without dropout dx is dz
  return {
      // Two products forward; five backward, one of them to make the scores again.
      {.label = "attention forward", .signs = {"attention_forward"}, .flops = 4 * scores},
      {.label = "attention backward", .signs = {"attention_backward"}, .flops = 10 * scores},
      // Products with GELU that are not the library's.
      {.label = "mlp, first, forward, with GELU", .signs = {"mlp_gelu_forward"}, .flops = 2 * C * D * F},
      {.label = "mlp, second, input gradient, with GELU's",
       .signs = {"mlp_gelu_backward"},
       .flops = 2 * C * D * F},
      {.label = "attention's keep bits", .signs = {"attention_keep_bits_cu"}},
      {.label = "layer norm forward", .signs = {"layer_norm_cu"}, .bytes = 2 * 4 * CD + 2 * MD},
      {.label = "layer norm backward",
       .signs = {"layer_norm_gradient_cu"},
       .bytes = 2 * norm_arrays * CD + 3 * TD + 3 * MD},
      {.label = "GELU's derivative", .signs = {"gelu_gradient_cu"}, .bytes = kSizeOfBFloat16 * 3 * C * F},
      {.label = "other activations", .signs = {"activation_cu"}},
      // What column sums, norms and GELU's derivative leave for blocks of rows.
      {.label = "sums of blocks of rows", .signs = {"add_sums"}},
      {.label = "column sums", .signs = {"column_sums_cu"}, .bytes = L * 2 * TD},  // of queries and values
      {.label = "embedding forward", .signs = {"embedding_cu"}, .bytes = 3 * TD},
      {.label = "gradients of embedding tables", .signs = {"table_gradient_cu"}},
      {.label = "vocabulary's loss and gradient", .signs = {"vocabulary_loss_cu"}, .bytes = 3 * MW},
      // The norm reads gradients; Adam reads those, weights and two moments, and writes weights twice.
      {.label = "optimizer", .signs = {"optimizer_step_cu"}, .bytes = N * (4 + 4 * 4 + 3 * 4 + 2)},
      {.label = "other kernels of the engine", .signs = {"6plenum"}},
  };
}

/// Kernels of the library that only finish what another began.
bool is_second_part(const std::string& name) {
  return name.find("splitKreduce") != std::string::npos;
}

/// The name of the linear map that a product belongs to, and its part.
std::string label_of(const ProductCall& call, const RecordedSteps& steps) {
  const describe::ModelConfig& model = steps.model;
  const std::int64_t D = model.width;
  const std::int64_t F = model.mlp_width;
  const bool is_of_all_rows = 2 * call.tokens > steps.num_rows / steps.num_steps;
  const auto is = [&](std::int64_t outputs, std::int64_t inputs) {
    return is_of_all_rows && call.outputs == outputs && call.inputs == inputs;
  };
  if (!is_of_all_rows && 2 * call.outputs < model.vocabulary)
    return "products of the heads and of rows they read";
  const std::string_view map = is(3 * D, D)      ? "qkv"
                               : is(D, D)        ? "attention output"
                               : is(F, D)        ? "mlp, first"
                               : is(D, F)        ? "mlp, second"
                               : !is_of_all_rows ? "vocabulary"
                                                 : "other product";
  constexpr std::string_view kParts[] = {"forward", "input gradient", "weight gradient"};
  return fmt::format("{}, {}", map, kParts[static_cast<std::size_t>(call.part)]);
}

/// The group of this label, made where there is none.
Group& group_of(std::vector<Group>& groups, const std::string& label) {
  const auto found = std::ranges::find(groups, label, &Group::label);
  return found != groups.end() ? *found : groups.emplace_back(Group{.label = label});
}

/// Groups the library's kernels, which are in the order of their calls.
std::vector<Group> product_groups(const std::vector<KernelRecord>& kernels,
                                  const std::vector<ProductCall>& calls, const RecordedSteps& steps) {
  const auto num_first =
      std::ranges::count_if(kernels, [](const KernelRecord& kernel) { return !is_second_part(kernel.name); });
  const bool are_calls_known = num_first == static_cast<std::ptrdiff_t>(calls.size());
  std::vector<Group> groups;
  std::string label;
  auto call = calls.begin();
  for (const KernelRecord& kernel : kernels) {
    if (!are_calls_known) {
      group_of(groups, kernel.name.substr(0, 44)).add(kernel);
      continue;
    }
    if (!is_second_part(kernel.name)) {
      label = label_of(*call, steps);
      group_of(groups, label).flops += call->flops() / static_cast<double>(steps.num_steps);
      ++call;
    }
    group_of(groups, label).add(kernel);
  }
  return groups;
}

std::uint64_t span_ns(const std::vector<KernelRecord>& records) {
  const auto last = std::ranges::max_element(records, {}, &KernelRecord::end_ns);
  return last->end_ns - records.front().begin_ns;
}

class Table {
 public:
  Table(const RecordedSteps& steps, double ms_of_step) : steps_(steps), ms_of_step_(ms_of_step) {
    text_ = fmt::format("{:<44} {:>8} {:>8} {:>7} {:>12} {:>9}\n", "", "launches", "ms", "share", "reached",
                        "of limit");
  }

  void add(const Group& group) {
    const auto num_steps = static_cast<double>(steps_.num_steps);
    add(group, fmt::format("{:.0f}", static_cast<double>(group.num_launches) / num_steps));
  }
  void add_time(const std::string& label, std::uint64_t ns) { add({.label = label, .ns = ns}, ""); }

  const std::string& text() const { return text_; }

 private:
  void add(const Group& group, const std::string& launches) {
    const double ms = static_cast<double>(group.ns) * 1e-6 / static_cast<double>(steps_.num_steps);
    text_ +=
        fmt::format("{:<44} {:>8} {:>8.3f} {:>5.1f} %", group.label, launches, ms, 100 * ms / ms_of_step_);
    const double seconds = ms * 1e-3;
    if (group.flops > 0 && seconds > 0) {
      const double reached = group.flops / seconds;
      text_ += fmt::format(" {:>5.0f} TFLOP/s {:>6.1f} %", reached * 1e-12,
                           100 * reached / steps_.flops_per_second);
    } else if (group.bytes > 0 && seconds > 0) {
      const double reached = group.bytes / seconds;
      text_ +=
          fmt::format(" {:>8.2f} TB/s {:>6.1f} %", reached * 1e-12, 100 * reached / steps_.bytes_per_second);
    }
    text_ += "\n";
  }

  const RecordedSteps& steps_;
  double ms_of_step_;
  std::string text_;
};

/// All of them as one.
Group total_of(const std::vector<Group>& groups, std::string label) {
  Group total{.label = std::move(label)};
  for (const Group& group : groups) {
    total.flops += group.flops;
    total.num_launches += group.num_launches;
    total.ns += group.ns;
  }
  return total;
}

/// Whose a record is: the engine's, grouped, or the library's.
struct Owners {
  std::vector<Group> engine;
  std::vector<KernelRecord> library;
};

Owners divide(const std::vector<KernelRecord>& records, const RecordedSteps& steps) {
  Owners owners{.engine = engine_groups(steps), .library = {}};
  Group copies{.label = "copies"};
  Group fills{.label = "fills"};
  for (const KernelRecord& record : records) {
    if (record.kind == KernelRecord::Kind::Copy) {
      copies.add(record);
      continue;
    }
    if (record.kind == KernelRecord::Kind::Fill) {
      fills.add(record);
      fills.bytes += static_cast<double>(record.num_bytes) / static_cast<double>(steps.num_steps);
      continue;
    }
    const auto has_sign = [&](std::string_view sign) { return record.name.find(sign) != std::string::npos; };
    const auto own = std::ranges::find_if(
        owners.engine, [&](const Group& group) { return std::ranges::any_of(group.signs, has_sign); });
    if (own != owners.engine.end()) {
      own->add(record);
    } else {
      owners.library.push_back(record);
    }
  }
  owners.engine.push_back(std::move(copies));
  owners.engine.push_back(std::move(fills));
  std::erase_if(owners.engine, [](const Group& group) { return group.num_launches == 0; });
  std::ranges::sort(owners.engine, std::greater(), &Group::ns);
  return owners;
}

}  // namespace

std::string kernel_table(const std::vector<KernelRecord>& records, const std::vector<ProductCall>& calls,
                         const RecordedSteps& steps) {
  if (records.empty()) return "nothing ran on the GPU\n";
  const Owners owners = divide(records, steps);
  const std::vector<Group> products = product_groups(owners.library, calls, steps);
  const std::uint64_t span = span_ns(records);
  Table table(steps, static_cast<double>(span) * 1e-6 / static_cast<double>(steps.num_steps));
  for (const Group& group : products) table.add(group);
  table.add(total_of(products, "all products of cuBLASLt"));
  for (const Group& group : owners.engine) table.add(group);
  table.add_time("nothing", idle_ns(records));
  table.add_time("a step, recorded", span);
  return table.text() + fmt::format(
                            "A step without records takes {:.3f} ms. Limits: {:.0f} TFLOP/s (a large "
                            "product, sustained), {:.2f} TB/s (a copy).\n",
                            steps.seconds_of_step * 1e3, steps.flops_per_second * 1e-12,
                            steps.bytes_per_second * 1e-12);
}

}  // namespace plenum::bench
