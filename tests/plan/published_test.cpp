#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plenum/describe/bert.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/io/file.h"
#include "plenum/memory/micro_batch_layout.h"
#include "plenum/plan/action_ops.h"
#include "plenum/plan/matrix_ops.h"
#include "plenum/schedule/simulate/layer_profile.h"
#include "plenum/tensor/memory_plan.h"

#include "tests/plan/op_sums.h"

// What others have published of BERT beside what this planner's formulas say of the same. Each test prints a
// row for each figure: `build/tests/test_plan --gtest_filter='Published.*'`.

namespace plenum::plan {
namespace {

using describe::FactorShape;
using test::flops_of;

constexpr double kMiB = 1 << 20;
constexpr std::int64_t kLength = 128;  ///< of the profiles' sequences

describe::ModelDescription bert(std::int64_t width, std::int64_t num_layers) {
  return describe::describe_bert({.vocabulary = 30522,
                                  .width = width,
                                  .num_layers = num_layers,
                                  .num_heads = width / 64,
                                  .mlp_width = 4 * width,
                                  .max_positions = 512,
                                  .has_next_sentence = true});
}
describe::ModelDescription base() {
  return bert(768, 12);
}
describe::ModelDescription large() {
  return bert(1024, 24);
}

/// Prints a row and returns the error, ours / published - 1.
double row(const std::string& what, double published, double ours, const std::string& source) {
  const double error = ours / published - 1;
  fmt::print("| {} | {:.6g} | {:.6g} | {:+.1f} % | {} |\n", what, published, ours, 100 * error, source);
  return error;
}

schedule::LayerProfile profile(const std::string& name) {
  const std::string path = std::string(PLENUM_SOURCE_DIR) + "/recipes/profiles/" + name + ".csv";
  return schedule::parse_layer_profile(io::read_file(path), path);
}

ComputedWork work_of(std::int64_t num_sequences, const describe::ModelDescription& model) {
  const std::int64_t tokens = num_sequences * kLength;
  return computed_work({.rows = tokens,
                        .work = {.tokens = tokens,
                                 .squared_lengths = tokens * kLength,
                                 .sequences = num_sequences,
                                 .labels = {1}}},
                       model, tensor::Device::Cpu);
}

TEST(Published, Parameters) {
  const auto count = [](const describe::ModelDescription& model) {
    return static_cast<double>(describe::ParameterTable(model).num_parameters());
  };
  EXPECT_EQ(row("BERT-base, parameters with heads", 110'106'428, count(base()), "Alibaba PAI"), 0);
  EXPECT_EQ(row("BERT-large, parameters with heads", 336'226'108, count(large()), "counted by hand"), 0);
}

TEST(Published, FactorsOfKfac) {
  for (const auto& [name, model, published] :
       {std::tuple("BERT-base", base(), 94.5), std::tuple("BERT-large", large(), 168.0)}) {
    double bytes = 0;
    for (const FactorShape& shape : factor_shapes(model.layers.front()))
      bytes += 4 * std::pow(shape.in_width, 2) + 4 * std::pow(shape.out_width, 2);
    // Plenum keeps one A for queries, keys and values: two squares less.
    EXPECT_EQ(row(fmt::format("{} layer, K-FAC's factors, MiB", name), published, bytes / kMiB, "PipeFisher"),
              0);
  }
}

TEST(Published, OperationsOfLayers) {
  for (const auto& [name, model, linear, attention] :
       {std::tuple("BERT-base", base(), 169.9e6, 0.028), std::tuple("BERT-large", large(), 604.0e6, 0.021)}) {
    const ActionOps ops(model, tensor::Device::Cpu, schedule::Recomputation::None);
    const auto layers = static_cast<double>(model.layers.size());
    const double tokens = 32 * kLength;
    double products = 0;
    double of_attention = 0;
    for (const Op& op : ops.layer(0, Pass::Forward, work_of(32, model), Gradients::Overwritten).ops)
      (op.kind == OpKind::AttentionForward ? of_attention : products) += op.flops;
    EXPECT_NEAR(row(fmt::format("{}, products of a token forward", name), linear, layers * products / tokens,
                    "counted by hand"),
                0, 1e-3);
    EXPECT_NEAR(row(fmt::format("{}, attention beside them at 128 tokens", name), attention,
                    of_attention / products, "counted by hand"),
                0, 0.03);
  }
}

/// Bytes that a layer between two others keeps of a token: what the engine plans for one layer more.
double kept_bytes_of_token(const describe::ModelDescription& model, tensor::Device device) {
  const auto bytes = [&](std::size_t end, std::int64_t sequences) {
    const batch::Capacity capacity{
        .rows = sequences * kLength, .sequences = sequences, .labels = {sequences}, .max_length = kLength};
    tensor::MemoryPlan plan(device, tensor::precision_of(device));
    memory::plan_training_memory(model, memory::computed_capacity(capacity, device),
                                 {.stages = {{.layers = {base::LayerId::at(1), base::LayerId::at(end)}}},
                                  .recompute = schedule::Recomputation::None},
                                 plan);
    return static_cast<double>(plan.layout().num_bytes());
  };
  const double more_layers = (bytes(3, 64) - bytes(2, 64)) - (bytes(3, 32) - bytes(2, 32));
  return more_layers / (32 * kLength);
}

// Not the same program: PyTorch's layer in fp32, of which each operation keeps its inputs, and this engine's.
TEST(Published, MemoryThatLayersKeep) {
  for (const auto& [name, model, width] :
       {std::tuple("base", base(), 768.0), std::tuple("large", large(), 1024.0)}) {
    const schedule::LayerProfile measured = profile(fmt::format("bert-{}-v100", name));
    const double published =
        (measured.row(64).activation_bytes - measured.row(32).activation_bytes) / (32 * kLength);
    EXPECT_NEAR(published, 88 * width + 16, 0.003 * published) << "what the profile was made of";
    for (const auto& [device, dtype] :
         {std::pair(tensor::Device::Cpu, "fp32"), std::pair(tensor::Device::Cuda, "bf16")}) {
      const double ours = kept_bytes_of_token(model, device);
      EXPECT_LT(row(fmt::format("BERT-{} layer, bytes kept of a token, Plenum's in {}", name, dtype),
                    published, ours, "PipeFisher: Hugging Face, fp32"),
                0);
      EXPECT_GT(ours, (dtype == std::string("fp32") ? 4 : 2) * 12 * width) << "x, q, k, v, context, y, MLP";
    }
  }
}

// With one rate for all operations, that of the forward pass: what shapes and kernels make of it is left out.
TEST(Published, TimesOfLayersByOperationsAlone) {
  for (const std::string gpu : {"p100", "v100", "rtx3090"}) {
    for (const auto& [name, model] : {std::pair("base", base()), std::pair("large", large())}) {
      const schedule::LayerProfile measured = profile(fmt::format("bert-{}-{}", name, gpu));
      const ActionOps ops(model, tensor::Device::Cpu, schedule::Recomputation::None);
      const std::int64_t most = measured.rows().back().batch;
      const schedule::LayerCosts costs = measured.row(most);
      const ComputedWork work = work_of(most, model);
      const auto pass = [&](Pass which) {
        return flops_of(ops.layer(0, which, work, Gradients::Overwritten).ops);
      };
      const double rate = pass(Pass::Forward) / costs.forward_seconds;
      const std::vector<FactorShape> shapes = factor_shapes(model.layers.front());
      double curvature = 0;
      for (std::size_t map = 0; map < shapes.size(); ++map) {
        curvature +=
            flops_of(curvature_a_ops(ops, 0, map, work)) + flops_of(curvature_b_ops(ops, 0, map, work));
      }
      fmt::print("forward on {}: {:.2f} TFLOP/s\n", gpu, 1e-12 * rate);
      const std::string what = fmt::format("BERT-{} layer on {}, {} x 128, ms: ", name, gpu, most);
      const auto check = [&](const char* part, double seconds, double flops) {
        EXPECT_LT(std::abs(std::log2(1 + row(what + part, 1e3 * seconds, 1e3 * flops / rate, "PipeFisher"))),
                  5);
      };
      check("backward", costs.backward_seconds, pass(Pass::Backward));
      check("curvature", costs.curvature_seconds, curvature);
      check("inversion", costs.inversion_seconds, flops_of(inversion_ops(shapes, tensor::Device::Cpu)));
      check("preconditioning", costs.precondition_seconds, flops_of(kfac_precondition_ops(shapes)));
    }
  }
}

}  // namespace
}  // namespace plenum::plan
