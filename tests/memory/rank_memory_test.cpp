#include "plenum/memory/rank_memory.h"

#include <gtest/gtest.h>

#include "plenum/describe/bert.h"
#include "plenum/memory/schedule_shard.h"
#include "plenum/schedule/generate/data_parallel.h"
#include "plenum/schedule/generate/gpipe.h"
#include "plenum/schedule/generate/one_forward_one_backward.h"
#include "plenum/schedule/generate/single.h"

#include "tests/support/modern_encoder.h"

namespace plenum::memory {
namespace {

using describe::ParameterTable;
using tensor::Device;

schedule::Schedule schedule_of(const ParameterTable& table, std::size_t num_micro_batches) {
  return schedule::generate_single(
      {.num_micro_batches = num_micro_batches,
       .stage_layers = {static_cast<std::uint16_t>(table.model().layers.size())}});
}

tensor::MemoryLayout planned(const ParameterTable& table, Device device,
                             const batch::Capacity& capacity = {
                                 .rows = 512, .sequences = 128, .labels = {128}, .max_length = 128}) {
  return plan_memory(table, schedule_of(table, 3), schedule::Rank{0},
                     {.capacity = capacity, .device = device, .num_threads = 2});
}

std::size_t bytes_of(const tensor::MemoryLayout& layout, std::string_view purpose) {
  for (const tensor::MemoryLayout::Line& line : layout.lines()) {
    if (line.purpose == purpose) return line.bytes;
  }
  return 0;
}

TEST(RankMemory, HasParametersGradientsAndStateOfBothDevicesInAnyBuild) {
  const ParameterTable table(describe::describe_bert(describe::preset("bert-mini")));
  const auto N = static_cast<std::size_t>(table.num_elements());
  const tensor::MemoryLayout cpu = planned(table, Device::Cpu);
  EXPECT_EQ(bytes_of(cpu, "parameters"), 4 * N);
  EXPECT_EQ(bytes_of(cpu, "gradients"), 4 * N);
  EXPECT_EQ(bytes_of(cpu, "optimizer state"), 8 * N + 256);
  EXPECT_EQ(bytes_of(cpu, "micro-batches"), 0U);
  // In bfloat16 weights are there a second time, and what the optimizer's blocks take is listed: four numbers
  // of 8 bytes for each 4096 elements of a tensor.
  std::size_t chunks = 0;
  for (const describe::Parameter& parameter : table.parameters()) {
    chunks += static_cast<std::size_t>(parameter.num_elements() + 4095) / 4096;
  }
  const tensor::MemoryLayout gpu = planned(table, Device::Cuda);
  EXPECT_EQ(bytes_of(gpu, "parameters"), 6 * N);
  EXPECT_EQ(bytes_of(gpu, "gradients"), 4 * N);
  EXPECT_EQ(bytes_of(gpu, "optimizer state"), 8 * N + (32 * chunks + 255) / 256 * 256 + 256);
  // Of three micro-batches, of two steps.
  EXPECT_EQ(bytes_of(gpu, "micro-batches") % 6, 0U);
  EXPECT_GT(bytes_of(gpu, "micro-batches"), 6U * 512 * (3 * 4 + 8));
}

TEST(RankMemory, OfMuonIsThatOfAdamAndTheRoomOfItsIterations) {
  const ParameterTable table(describe::describe_bert(describe::preset("bert-mini")));
  const auto state = [&](Device device, LayerUpdate update) {
    return bytes_of(
        plan_memory(table, schedule_of(table, 3), schedule::Rank{0},
                    {.capacity = {.rows = 512, .sequences = 128, .labels = {128}, .max_length = 128},
                     .device = device,
                     .num_threads = 2,
                     .layer_update = update}),
        "optimizer state");
  };
  // D = 256, F = 1024, four layers. On the CPU one matrix at a time: its second place and two squares.
  EXPECT_EQ(state(Device::Cpu, LayerUpdate::Muon) - state(Device::Cpu, LayerUpdate::AsOthers),
            4U * (256 * 1024 + 2 * 256 * 256));
  // On the GPU two squares in bf16 of a matrix of each layer, and four numbers more for each chunk of 4096.
  const std::size_t num_chunks = 4 * (4 * 16 + 2 * 64);
  EXPECT_EQ(state(Device::Cuda, LayerUpdate::Muon) - state(Device::Cuda, LayerUpdate::AsOthers),
            2U * 4 * 2 * 256 * 256 + num_chunks * 4 * 8);
}

TEST(RankMemory, OfSoapHasFactorsAndBasesOfTheSidesUpToTheLimit) {
  const ParameterTable table(describe::describe_bert(describe::preset("bert-mini")));
  const auto state = [&](LayerUpdate update, std::int64_t limit) {
    return bytes_of(
        plan_memory(table, schedule_of(table, 3), schedule::Rank{0},
                    {.capacity = {.rows = 512, .sequences = 128, .labels = {128}, .max_length = 128},
                     .layer_update = update,
                     .soap_limit = limit}),
        "optimizer state");
  };
  const std::size_t adam = state(LayerUpdate::AsOthers, 0);
  constexpr std::size_t kD = 256;
  constexpr std::size_t kF = 1024;
  // Four layers; squares of attention's four matrices are two-sided, of the MLP's two as the limit says. The
  // room: four of the MLP's matrices, and a square for each layer.
  EXPECT_EQ(state(LayerUpdate::Soap, 512) - adam,
            4 * (4 * 2 * (4 * 2 + 2) * kD * kD + 4 * kD * kF + 4 * kD * kD));
  EXPECT_EQ(state(LayerUpdate::Soap, 1024) - adam,
            4 * (4 * 2 * ((4 * 2 + 2) * kD * kD + 2 * kF * kF) + 4 * kD * kF + 4 * kF * kF));
}

TEST(RankMemory, IsOfTheTypesThatRolesHave) {
  const ParameterTable table(describe::describe_bert(describe::preset("bert-mini")));
  const schedule::Schedule schedule = schedule_of(table, 1);
  const auto N = static_cast<std::size_t>(table.num_elements());
  // A CPU that would keep activations and the weights of products in two bytes.
  const tensor::Precision half({.weight = tensor::DType::BFloat16, .activation = tensor::DType::BFloat16});
  MemoryRequest request{.capacity = {.rows = 512, .sequences = 4, .labels = {128}, .max_length = 128},
                        .num_threads = 1};
  const std::size_t exact = bytes_of(plan_memory(table, schedule, schedule::Rank{0}, request), "activations");
  request.precision = half;
  const tensor::MemoryLayout layout = plan_memory(table, schedule, schedule::Rank{0}, request);
  EXPECT_EQ(bytes_of(layout, "parameters"), 6 * N);
  // But for the statistics, which keep their four bytes: two moments of each norm, and a number for each
  // head.
  const std::size_t statistics = 4 * (512 * (2 + 3 * (4 + 4) + 4) + 128 * 4);
  EXPECT_EQ(bytes_of(layout, "activations"), (exact - statistics) / 2 + statistics);
}

TEST(RankMemory, OfASecondArchitectureIsWhatWasCountedByHand) {
  // D = 128 in 2 heads of 64, F = 1152, two layers; T = 512 rows of which heads read R = 128.
  const ParameterTable table(
      test::describe_modern_encoder({.vocabulary = 100, .width = 128, .num_layers = 2, .num_heads = 2}));
  constexpr std::size_t kT = 512;
  constexpr std::size_t kR = 128;
  // Of layers as tests/describe has it: the first without a norm before attention, the last with few rows
  // behind it. Around them the input of each, the embedding's norm, what heads read, the norm behind the last
  // layer, and the running gradient.
  const auto bytes = [](std::size_t activation, std::size_t mlp_output) {
    const std::size_t first = activation * (4 * 128 + 2 * 128 + 2 * 1152 + mlp_output) + 4 * (2 + 2);
    const std::size_t last = activation * (4 * 128 + 128) + 4 * (2 + 2);
    const std::size_t last_read = activation * (128 + 2 * 128 + 2 * 1152 + mlp_output) + 4 * 2;
    const std::size_t around = activation * (2 * 128 + 128 + 128) + 4 * 2;
    const std::size_t around_read = activation * (128 + 128) + 4 * 2;
    return kT * (first + last + around) + kR * (last_read + around_read);
  };
  EXPECT_EQ(bytes_of(planned(table, Device::Cpu), "activations"), bytes(4, 0));
  EXPECT_EQ(bytes_of(planned(table, Device::Cuda), "activations"), bytes(2, 1152));
}

/// Weights, gradients and moments of a rank, in thousands of parameters of four bytes; one layer a bucket.
double thousands_of_parameters(const ParameterTable& table, std::size_t num_ranks,
                               schedule::Sharding sharding) {
  const schedule::Schedule schedule = schedule::generate_data_parallel(
      {.num_replicas = num_ranks,
       .stage_layers = {static_cast<std::uint16_t>(table.model().layers.size())},
       .num_buckets = table.model().layers.size(),
       .sharding = sharding});
  const tensor::MemoryLayout layout = plan_memory(
      table, schedule, schedule::Rank{0},
      {.capacity = {.rows = 128, .sequences = 1, .labels = {20}, .max_length = 128}, .num_threads = 1});
  return static_cast<double>(bytes_of(layout, "parameters") + bytes_of(layout, "gradients") +
                             bytes_of(layout, "optimizer state")) /
         4000;
}

TEST(RankMemory, FallsWithTheRanksThatShareIt) {
  const ParameterTable table(describe::describe_bert(describe::preset("bert-base")));
  using schedule::Sharding;
  const double N = static_cast<double>(table.num_elements()) / 1000;
  const auto layers = [&](std::uint16_t first, std::uint16_t end) {
    const auto [begin, last] =
        table.elements_of_layers(schedule::LayerId::at(first), schedule::LayerId::at(end));
    return static_cast<double>(last - begin) / 1000;
  };
  // Two buckets in turn, of which the last layer's has the head, and that with the embeddings.
  const double places = layers(11, 12) + layers(10, 11) + layers(0, 1);
  for (const std::size_t num_ranks : {1, 2, 4, 8}) {
    const double shard = N / static_cast<double>(num_ranks);
    const bool is_alone = num_ranks == 1;
    const auto expect = [&](Sharding sharding, double expected) {
      // Shards begin at multiples of 128 elements, and the scalars of a step have 256 bytes.
      EXPECT_NEAR(thousands_of_parameters(table, num_ranks, sharding), is_alone ? 4 * N : expected, 8)
          << num_ranks << " ranks, sharding " << static_cast<int>(sharding);
    };
    expect(Sharding::None, 4 * N);
    expect(Sharding::Optimizer, 2 * N + 2 * shard);
    expect(Sharding::Gradients, N + places + 3 * shard);
    expect(Sharding::Parameters, 2 * places + 4 * shard);
  }
}

TEST(RankMemory, OfAGpuFallsWithTheRanksThatShareIt) {
  const ParameterTable table(describe::describe_bert(describe::preset("bert-base")));
  using schedule::Sharding;
  const auto layers = [&](std::uint16_t first, std::uint16_t end) {
    const auto [begin, last] =
        table.elements_of_layers(schedule::LayerId::at(first), schedule::LayerId::at(end));
    return static_cast<double>(last - begin);
  };
  const auto N = static_cast<double>(table.num_elements());
  const double places = layers(11, 12) + layers(10, 11) + layers(0, 1);
  // Weight and bias of the embedding's norm, the head's and two of each layer.
  constexpr double kNorms = 2 * 768 * (1 + 1 + 2 * 12);
  for (const std::size_t num_ranks : {2, 4, 8}) {
    const double shard = N / static_cast<double>(num_ranks);
    const auto expect = [&](Sharding sharding, double parameters, double gradients) {
      const schedule::Schedule schedule = schedule::generate_data_parallel(
          {.num_replicas = num_ranks, .stage_layers = {12}, .num_buckets = 12, .sharding = sharding});
      const tensor::MemoryLayout layout =
          plan_memory(table, schedule, schedule::Rank{0},
                      {.capacity = {.rows = 128, .sequences = 1, .labels = {20}, .max_length = 128},
                       .device = Device::Cuda});
      SCOPED_TRACE(testing::Message() << num_ranks << " ranks, sharding " << static_cast<int>(sharding));
      // Shards begin at multiples of 128 elements.
      EXPECT_NEAR(static_cast<double>(bytes_of(layout, "parameters")), parameters, 32'000);
      EXPECT_NEAR(static_cast<double>(bytes_of(layout, "gradients")), gradients, 32'000);
    };
    expect(Sharding::None, 4 * N + 2 * N, 4 * N);
    expect(Sharding::Optimizer, 4 * shard + 2 * N + 4 * kNorms, 4 * N);
    expect(Sharding::Gradients, 4 * shard + 2 * N + 4 * kNorms, 4 * shard + 4 * places);
    expect(Sharding::Parameters, 4 * shard + 2 * places + 4 * kNorms, 4 * shard + 4 * places);
  }
}

TEST(RankMemory, GrowsWithTheActivationsThatAScheduleKeepsAlive) {
  const ParameterTable table(describe::describe_bert(describe::preset("bert-mini")));
  const batch::Capacity capacity{.rows = 512, .sequences = 4, .labels = {60}, .max_length = 128};
  const MemoryRequest request{.capacity = capacity, .num_threads = 1};
  const schedule::Schedule one_by_one = schedule_of(table, 4);
  const schedule::Schedule all_forward =
      schedule::generate_gpipe({.num_micro_batches = 4, .stage_layers = {4}});
  const std::size_t one = bytes_of(plan_memory(table, one_by_one, schedule::Rank{0}, request), "activations");
  EXPECT_EQ(bytes_of(plan_memory(table, all_forward, schedule::Rank{0}, request), "activations"), 4 * one);
}

TEST(RankMemory, OfAStageHasItsSlotsWithTheirMessages) {
  constexpr std::size_t kDepth = 4;
  const describe::ModelDescription model = describe::describe_bert(describe::preset("bert-mini"));
  const schedule::Schedule schedule = schedule::generate_one_forward_one_backward(
      {.depth = kDepth, .num_micro_batches = 8, .stage_layers = {1}, .has_tied_parameters = true});
  const batch::Capacity capacity{.rows = 512, .sequences = 4, .labels = {64}, .max_length = 128};
  const std::size_t rows = 4 * 512 * 256;  // bytes of [T, D]
  std::vector<std::size_t> slots;
  for (std::size_t i = 0; i < kDepth; ++i) {
    const schedule::Rank rank = schedule::Rank::at(i);
    const ParameterTable table(model, held_layers(schedule, rank));
    const ActivationSlots of_rank(schedule, rank);
    const TrainingRequest::Stage& stage = of_rank.request().stages.front();
    slots.push_back(stage.num_slots);
    EXPECT_EQ(stage.sends_output, i + 1 < kDepth);
    tensor::MemoryPlan plan(Device::Cpu);
    const Activations slot =
        plan_training_memory(model, capacity, of_rank.request(), plan).stages.front().front();
    EXPECT_EQ(slot.embedding.z_TD.num_bytes(),
              i == 0 ? rows : 4U);  // an empty view has a shape of one element
    EXPECT_EQ(slot.x_TD[i].num_bytes(), rows);
    EXPECT_EQ(slot.dx_TD.num_bytes(), rows);
    EXPECT_EQ(slot.heads.size(), i + 1 == kDepth ? 1U : 0U);
    EXPECT_EQ(bytes_of(plan_memory(table, schedule, rank, {.capacity = capacity}), "activations"),
              bytes_of(plan.layout(), "activations"));
  }
  // The first rank has as many micro-batches under way as there are stages. The last has one at work, one
  // whose gradient may still be on its way, and one whose message may have come.
  EXPECT_EQ(slots.front(), 4U);
  EXPECT_EQ(slots.back(), 3U);
}

}  // namespace
}  // namespace plenum::memory
