#include "plenum/optim/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "plenum/base/thread_pool.h"
#include "plenum/describe/bert.h"
#include "plenum/memory/hidden_matrices.h"
#include "plenum/optim/layer_decay.h"
#include "plenum/tensor/arena.h"

#include "tests/reference/optimizer_step.h"
#include "tests/support/read_golden.h"

namespace plenum::optim {
namespace {

/// The optimizer of a tiny BERT, whose weights, gradients and moments are zero but for what a test writes.
class OptimizerTest : public testing::Test {
 protected:
  OptimizerTest() : OptimizerTest(config()) {}
  explicit OptimizerTest(const describe::ModelConfig& config) : table_(describe::describe_bert(config)) {}

  static describe::ModelConfig config() {
    describe::ModelConfig config;
    config.vocabulary = 20;
    config.width = 4;
    config.num_layers = 1;
    config.num_heads = 1;
    config.mlp_width = 8;
    config.max_positions = 5;
    return config;
  }

  OptimizerBuffers buffers() {
    const auto view = [](std::vector<float>& values) {
      return tensor::TensorView(values.data(), tensor::Shape{static_cast<std::int64_t>(values.size())});
    };
    return {.weights_N = view(weights_),
            .compute_weights_N = view(weights_),
            .gradients_N = view(gradients_),
            .first_moments_S = view(first_moments_),
            .second_moments_S = view(second_moments_)};
  }

  const describe::Head& head() const { return table_.model().heads.front(); }
  std::size_t transform_weight() const { return table_.index_of(head().transform->weight); }
  std::span<float> weights(std::size_t parameter) {
    return std::span(weights_).subspan(static_cast<std::size_t>(table_[parameter].begin),
                                       static_cast<std::size_t>(table_[parameter].num_elements()));
  }
  std::span<float> gradients(std::size_t parameter) {
    return std::span(gradients_)
        .subspan(static_cast<std::size_t>(table_[parameter].begin),
                 static_cast<std::size_t>(table_[parameter].num_elements()));
  }

  static void assign(std::span<float> to, const std::vector<float>& from) {
    std::copy(from.begin(), from.end(), to.begin());
  }

  describe::ParameterTable table_;
  describe::ParameterShard shard_{table_};
  std::size_t size_ = static_cast<std::size_t>(table_.num_elements());
  std::vector<float> weights_ = std::vector<float>(size_);
  std::vector<float> gradients_ = std::vector<float>(size_);
  std::vector<float> first_moments_ = std::vector<float>(size_);
  std::vector<float> second_moments_ = std::vector<float>(size_);
  /// One step, with the squares of all gradients counted in two parts.
  void step(Optimizer& optimizer, double learning_rate, std::uint64_t step_index = 0) {
    const tensor::TensorView scalars_C(scalars_.data(),
                                       tensor::Shape{static_cast<std::int64_t>(kernels::kNumStepScalars)});
    scalars_[kernels::index_of(kernels::StepScalar::LearningRate)] = learning_rate;
    scalars_[kernels::index_of(kernels::StepScalar::GradientSquares)] = 0;
    const std::int64_t middle = table_[transform_weight()].begin;
    optimizer.add_squares(stream_, {0, middle}, scalars_C);
    optimizer.add_squares(stream_, {middle, table_.num_elements()}, scalars_C);
    optimizer.decide(stream_, scalars_C);
    optimizer.step(stream_, scalars_C, {{}, base::LayerId::at(table_.model().layers.size())}, step_index);
  }

  /// Some steps on three matrices of a layer and on a number of a head.
  void expect_golden_matrices(Optimizer& optimizer, const nlohmann::json& golden, double tolerance) {
    const describe::Layer& layer = table_.model().layers[0];
    const std::array<std::size_t, 3> matrices = {table_.index_of(layer.attention.projections[1].weight),
                                                 table_.index_of(layer.mlp.in.weight),
                                                 table_.index_of(layer.mlp.out.weight)};
    for (std::size_t i = 0; i < matrices.size(); ++i) assign(weights(matrices[i]), golden.at("begin")[i]);
    float& other = weights(transform_weight())[3];
    other = 2;
    gradients(transform_weight())[3] = 0.5F;
    for (std::size_t step = 0; step < golden.at("gradients").size(); ++step) {
      for (std::size_t i = 0; i < matrices.size(); ++i)
        assign(gradients(matrices[i]), golden.at("gradients")[step][i]);
      this->step(optimizer, golden.at("lr"), step);
      for (std::size_t i = 0; i < matrices.size(); ++i) {
        const std::vector<double> expected = golden.at("weights")[step][i];
        for (std::size_t j = 0; j < expected.size(); ++j) {
          EXPECT_NEAR(weights(matrices[i])[j], expected[j], tolerance) << "step " << step << " matrix " << i;
        }
      }
      if (step > 0) continue;
      EXPECT_NEAR(other, 2 - 0.02 * (1 + 0.1 * 2), 1e-6) << "of a head: by AdamW";
    }
  }

  std::array<double, kernels::kNumStepScalars> scalars_{};
  base::ThreadPool pool_{1};
  tensor::Arena scratch_{std::size_t{2} << 20};
  tensor::Stream stream_{
      pool_, scratch_.view({.offset = 0, .dtype = tensor::DType::Byte, .shape = {std::int64_t{2} << 20}})
                 .span<std::byte>()};
};

TEST_F(OptimizerTest, FollowsPyTorchForTenSteps) {
  const nlohmann::json golden = test::read_golden("optimizer.json").at("adamw");
  const nlohmann::json& hyper = golden.at("hyper");
  Optimizer optimizer({.kind = OptimizerKind::AdamW,
                       .beta1 = hyper.at("beta1"),
                       .beta2 = hyper.at("beta2"),
                       .epsilon = hyper.at("epsilon").get<double>(),
                       .decay = hyper.at("decay"),
                       .clip_norm = 0},
                      table_, shard_, buffers());
  const std::array<std::size_t, 2> tensors = {transform_weight(), table_.index_of(head().output.bias)};
  for (std::size_t i = 0; i < 2; ++i) assign(weights(tensors[i]), golden.at("begin")[i]);
  for (std::size_t step = 0; step < golden.at("gradients").size(); ++step) {
    for (std::size_t i = 0; i < 2; ++i) assign(gradients(tensors[i]), golden.at("gradients")[step][i]);
    this->step(optimizer, hyper.at("lr"));
    for (std::size_t i = 0; i < 2; ++i) {
      const std::vector<double> expected = golden.at("weights")[step][i];
      for (std::size_t j = 0; j < expected.size(); ++j) {
        EXPECT_NEAR(weights(tensors[i])[j], expected[j], 1e-6) << "step " << step << " tensor " << i;
      }
    }
  }
}

/// The same of two layers and a next-sentence head.
class LayerDecayTest : public OptimizerTest {
 protected:
  static describe::ModelConfig deeper() {
    describe::ModelConfig config = OptimizerTest::config();
    config.num_layers = 2;
    config.has_next_sentence = true;
    return config;
  }

  LayerDecayTest() : OptimizerTest(deeper()) {}
};

TEST_F(LayerDecayTest, FollowsPyTorchWithAGroupForEachLayer) {
  const nlohmann::json golden = test::read_golden("optimizer.json").at("layer_decay");
  Optimizer optimizer({.kind = OptimizerKind::AdamW,
                       .decay = golden.at("decay"),
                       .layer_decay = golden.at("layer_decay"),
                       .clip_norm = 0},
                      table_, shard_, buffers());
  ASSERT_EQ(golden.at("num_layers"), table_.model().layers.size());
  std::vector<std::size_t> tensors;
  for (const std::string name : golden.at("names")) tensors.push_back(table_.index_of(name));
  for (std::size_t i = 0; i < tensors.size(); ++i) assign(weights(tensors[i]), golden.at("begin")[i]);
  for (std::size_t step = 0; step < golden.at("gradients").size(); ++step) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      assign(gradients(tensors[i]), golden.at("gradients")[step][i]);
    this->step(optimizer, golden.at("lr"));
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const std::vector<double> expected = golden.at("weights")[step][i];
      for (std::size_t j = 0; j < expected.size(); ++j) {
        EXPECT_NEAR(weights(tensors[i])[j], expected[j], 1e-6)
            << "step " << step << " " << table_[tensors[i]].name;
      }
    }
  }
}

TEST_F(LayerDecayTest, MultipliesTheRateOfEveryParameter) {
  for (const OptimizerKind kind : {OptimizerKind::AdamW, OptimizerKind::BertAdam, OptimizerKind::Lamb}) {
    const auto moved = [&](double layer_decay) {
      for (std::size_t i = 0; i < size_; ++i) {
        weights_[i] = 1;
        gradients_[i] = std::sin(static_cast<float>(i)) + 2;
      }
      std::ranges::fill(first_moments_, 0.0F);
      std::ranges::fill(second_moments_, 0.0F);
      scalars_ = {};
      Optimizer optimizer({.kind = kind, .layer_decay = layer_decay, .clip_norm = 0}, table_, shard_,
                          buffers());
      step(optimizer, 0.1);
      return weights_;
    };
    const std::vector<float> even = moved(1);
    const std::vector<float> decayed = moved(0.5);
    for (const describe::Parameter& parameter : table_.parameters()) {
      const double factor = parameter.name.starts_with("bert.embeddings.")        ? 0.125
                            : parameter.name.starts_with("bert.encoder.layer.0.") ? 0.25
                            : parameter.name.starts_with("bert.encoder.layer.1.") ? 0.5
                                                                                  : 1;
      for (std::int64_t i = parameter.begin; i < parameter.end(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        ASSERT_GT(1 - even[at], 0.01) << parameter.name;
        EXPECT_NEAR(1 - decayed[at], factor * (1 - even[at]), 1e-6) << parameter.name;
      }
    }
  }
}

TEST(RateFactor, IsThatOfTheWholeModelInEveryStageOfAPipeline) {
  describe::ModelConfig config;
  config.num_layers = 3;
  const describe::ModelDescription model = describe::describe_bert(config);
  const describe::ParameterTable whole(model);
  for (std::size_t layer = 0; layer < 3; ++layer) {
    const describe::ParameterTable stage(model, {{base::LayerId::at(layer), base::LayerId::at(layer + 1)}});
    for (const describe::Parameter& parameter : stage.parameters()) {
      EXPECT_EQ(rate_factor(parameter, stage, 0.7), rate_factor(whole.at(parameter.name), whole, 0.7))
          << parameter.name << " in the stage of layer " << layer;
    }
  }
  EXPECT_EQ(rate_factor(whole.at(model.embedding.words.weight), whole, 0.5), 0.0625F);
}

TEST_F(OptimizerTest, MuonFollowsPyTorchOnTheMatricesOfLayersAndAdamWOnTheRest) {
  const nlohmann::json golden = test::read_golden("optimizer.json").at("muon");
  std::vector<float> room(static_cast<std::size_t>(
      workspace::newton_schulz_room(tensor::Device::Cpu, memory::hidden_matrices(table_))));
  OptimizerBuffers given = buffers();
  given.muon.room = {room.data(), tensor::Shape{std::ssize(room)}};
  Optimizer optimizer({.kind = OptimizerKind::Muon,
                       .muon_momentum = golden.at("momentum"),
                       .decay = golden.at("decay"),
                       .clip_norm = 0},
                      table_, shard_, given);
  expect_golden_matrices(optimizer, golden, 2e-6);
}

TEST_F(OptimizerTest, SoapFollowsPyTorchOnTheMatricesOfLayersAndAdamWOnTheRest) {
  const nlohmann::json golden = test::read_golden("optimizer.json").at("soap");
  const SoapOptions soap{.beta = golden.at("beta"), .every = golden.at("every"), .limit = golden.at("limit")};
  const std::vector<workspace::FlatMatrices> matrices = memory::hidden_matrices(table_);
  std::vector<float> state(static_cast<std::size_t>(workspace::soap_state_elements(matrices, soap.limit)));
  std::vector<float> room(
      static_cast<std::size_t>(workspace::soap_room_elements(tensor::Device::Cpu, matrices, soap.limit)));
  OptimizerBuffers given = buffers();
  given.soap = {.state = {state.data(), tensor::Shape{std::ssize(state)}},
                .room = {room.data(), tensor::Shape{std::ssize(room)}}};
  Optimizer optimizer(
      {.kind = OptimizerKind::Soap, .soap = soap, .decay = golden.at("decay"), .clip_norm = 0}, table_,
      shard_, given);
  expect_golden_matrices(optimizer, golden, 2e-5);
}

TEST_F(OptimizerTest, NamesWhatSoapKeepsByItsMatrices) {
  const std::vector<SoapTensor> tensors = soap_tensors(table_, memory::hidden_matrices(table_), {.limit = 4});
  // Four square matrices have two sides, the others one, and each a factor and a basis.
  EXPECT_EQ(tensors.size(), 2U * (4 * 2 + 2));
  std::int64_t elements = 0;
  std::set<std::string> names;
  for (const SoapTensor& tensor : tensors) {
    elements += tensor.size * tensor.size;
    names.insert(tensor.name);
  }
  EXPECT_EQ(elements, workspace::soap_state_elements(memory::hidden_matrices(table_), 4));
  EXPECT_EQ(names.size(), tensors.size());
  EXPECT_TRUE(names.contains("soap.basis_columns." + table_.model().layers[0].mlp.in.weight));
}

TEST_F(OptimizerTest, OfTheOriginalBertDoesNotCorrectBias) {
  Optimizer optimizer({.kind = OptimizerKind::BertAdam, .decay = 0.5, .clip_norm = 0}, table_, shard_,
                      buffers());
  float& weight = weights(transform_weight())[3];
  weight = 2;
  gradients(transform_weight())[3] = 0.5F;
  step(optimizer, 0.1);
  // g = 0.5: m = 0.05, v = 0.00025.
  const double expected = 2 - 0.1 * (0.05 / (std::sqrt(0.00025) + 1e-6) + 0.5 * 2);
  EXPECT_NEAR(weight, expected, 1e-6);
}

TEST_F(OptimizerTest, GivesQueriesKeysAndValuesTheirOwnRatio) {
  const std::vector<describe::LinearMap>& maps = table_.model().layers[0].attention.projections;
  const std::vector<std::size_t> tensors = {table_.index_of(maps[0].weight), table_.index_of(maps[1].weight),
                                            table_.index_of(maps[2].weight), table_.index_of(maps[0].bias),
                                            table_.index_of(head().output.weight)};
  std::vector<reference::OptimizedTensor> expected;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::span<float> w = weights(tensors[i]);
    const std::span<float> g = gradients(tensors[i]);
    for (std::size_t j = 0; j < w.size(); ++j) {
      w[j] = static_cast<float>(i + 1) * std::sin(static_cast<float>(j + i));
      g[j] = std::cos(static_cast<float>(3 * j + i));
    }
    expected.push_back({{w.begin(), w.end()},
                        {g.begin(), g.end()},
                        std::vector<double>(w.size()),
                        std::vector<double>(w.size())});
  }
  const OptimizerOptions options{.kind = OptimizerKind::Lamb, .decay = 0.02, .clip_norm = 0};
  Optimizer optimizer(options, table_, shard_, buffers());
  for (std::uint64_t update = 1; update <= 5; ++update) {
    step(optimizer, 0.1);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const bool is_decayed = table_[tensors[i]].is_decayed;
      reference::lamb_step(
          expected[i],
          {0.1, 0.9, 0.999, 1e-6, is_decayed ? 0.02 : 0, 1 - std::pow(0.9, static_cast<double>(update)),
           1 - std::pow(0.999, static_cast<double>(update)), 1},
          is_decayed);
      for (std::size_t j = 0; j < expected[i].weight.size(); ++j) {
        EXPECT_NEAR(weights(tensors[i])[j], expected[i].weight[j], 1e-5)
            << "tensor " << i << " update " << update;
      }
    }
  }
}

TEST_F(OptimizerTest, ClipsByTheNormOfTheWholeGradient) {
  Optimizer optimizer({.kind = OptimizerKind::BertAdam, .decay = 0, .clip_norm = 2}, table_, shard_,
                      buffers());
  gradients(transform_weight())[3] = 8;
  step(optimizer, 0.1);
  EXPECT_NEAR(first_moments_[static_cast<std::size_t>(table_[transform_weight()].begin) + 3], 0.1 * 2, 1e-6);
  EXPECT_EQ(scalars_[kernels::index_of(kernels::StepScalar::GradientNorm)], 8);
}

TEST(DefaultEpsilon, IsThatOfTheAuthors) {
  EXPECT_EQ(default_epsilon(OptimizerKind::AdamW), 1e-8);
  EXPECT_EQ(default_epsilon(OptimizerKind::BertAdam), 1e-6);
  EXPECT_EQ(default_epsilon(OptimizerKind::Lamb), 1e-6);
}

}  // namespace
}  // namespace plenum::optim
