#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "plenum/base/philox.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/describe/model_config.h"
#include "plenum/describe/parameter_table.h"

#include "tests/reference/activation.h"
#include "tests/reference/attention.h"
#include "tests/reference/class_loss.h"
#include "tests/reference/embedding.h"
#include "tests/reference/group_loss.h"
#include "tests/reference/layer_norm.h"
#include "tests/reference/linear.h"
#include "tests/reference/rows.h"
#include "tests/reference/squared_loss.h"
#include "tests/reference/vocabulary_loss.h"

namespace plenum::reference {

/// BERT's losses, put together from the references of its ops.
class Bert {
 public:
  struct Losses {
    double masked = 0;  ///< sums
    double next_sentence = 0;
    double task = 0;  ///< in place of the others
    std::vector<double> logits_MV;
  };

  Bert(const describe::ModelConfig& config, const describe::ParameterTable& table, base::PhiloxKey key)
      : config_(config), table_(table), key_(key) {}

  Losses run(const std::vector<double>& flat, const batch::MicroBatch& batch) const {
    std::vector<double> x =
        drop(batch, 0, kernels::DropoutSite::Embedding,
             norm(flat, "bert.embeddings.LayerNorm",
                  embedding_sum(batch.ids, batch.positions, batch.segments,
                                get(flat, "bert.embeddings.word_embeddings.weight"),
                                get(flat, "bert.embeddings.position_embeddings.weight"),
                                get(flat, "bert.embeddings.token_type_embeddings.weight"), width())));
    for (std::size_t layer = 0; layer < static_cast<std::size_t>(config_.num_layers); ++layer) {
      x = encoder_layer(flat, batch, layer, x);
    }

    Losses losses;
    if (config_.task) {
      losses.task = task_loss(*config_.task, flat, batch, x);
      return losses;
    }
    const std::string head = "cls.predictions.";
    std::vector<double> h =
        map(flat, head + "transform.dense", gather_rows(x, batch.objective(0).rows, width()));
    for (double& value : h) value = gelu(value);
    const VocabularyLoss loss{.masked = batch.objective(0).rows.size(),
                              .width = width(),
                              .vocabulary = static_cast<std::size_t>(config_.vocabulary),
                              .h_MD = norm(flat, head + "transform.LayerNorm", h),
                              .w_VD = get(flat, "bert.embeddings.word_embeddings.weight"),
                              .b_V = get(flat, head + "bias"),
                              .label_M = batch.objective(0).labels};
    losses.masked = loss.total_loss();
    for (std::size_t row = 0; row < loss.masked; ++row) {
      for (std::size_t word = 0; word < loss.vocabulary; ++word) {
        losses.logits_MV.push_back(loss.logit(row, word));
      }
    }
    if (config_.has_next_sentence) {
      std::vector<double> pooled = map(flat, "bert.pooler.dense", gather_rows(x, batch.starts, width()));
      for (double& value : pooled) value = std::tanh(value);
      losses.next_sentence = class_loss(map(flat, "cls.seq_relationship", pooled), batch.objective(1).labels);
    }
    return losses;
  }

 private:
  double task_loss(const describe::Task& task, const std::vector<double>& flat,
                   const batch::MicroBatch& batch, const std::vector<double>& x) const {
    using describe::TaskKind;
    const auto& [rows, labels] = batch.objective(0);
    const bool is_of_answers = task.kind == TaskKind::QuestionAnswering;
    std::vector<double> y = gather_rows(x, rows, width());
    if (!is_of_answers && task.kind != TaskKind::TokenClassification) {
      y = map(flat, "bert.pooler.dense", y);
      for (double& value : y) value = std::tanh(value);
    }
    if (!is_of_answers) {
      std::vector<std::int64_t> samples;
      std::vector<std::int32_t> positions;
      for (const std::int32_t row : rows) {
        samples.push_back(batch.row_samples[static_cast<std::size_t>(row)]);
        positions.push_back(batch.positions[static_cast<std::size_t>(row)]);
      }
      kernels::Dropout dropped = dropout(0, kernels::DropoutSite::HeadInput);
      if (task.dropout) dropped.threshold = kernels::dropout_threshold(*task.dropout);
      y = drop_rows(dropped, y, samples, positions);
    }
    const std::vector<double> logits = map(flat, is_of_answers ? "qa_outputs" : "classifier", y);
    if (task.kind == TaskKind::Regression) return squared_loss(logits, labels);
    if (!is_of_answers && task.kind != TaskKind::MultipleChoice) return class_loss(logits, labels);
    double sum = 0;
    for (const double loss : group_losses(logits, labels)) sum += loss;
    return sum;
  }

  std::size_t width() const { return static_cast<std::size_t>(config_.width); }

  std::vector<double> get(const std::vector<double>& flat, const std::string& name) const {
    const describe::Parameter& parameter = table_[table_.index_of(name)];
    return {flat.begin() + parameter.begin, flat.begin() + parameter.end()};
  }
  std::vector<double> map(const std::vector<double>& flat, const std::string& name,
                          const std::vector<double>& x) const {
    const std::vector<double> bias = get(flat, name + ".bias");
    const std::vector<double> weight = get(flat, name + ".weight");
    const std::size_t D = weight.size() / bias.size();
    return linear({.T = x.size() / D, .D = D, .E = bias.size()}, x, weight, bias);
  }
  std::vector<double> norm(const std::vector<double>& flat, const std::string& name,
                           const std::vector<double>& z) const {
    return layer_norm(z, get(flat, name + ".weight"), get(flat, name + ".bias"), config_.layer_norm_epsilon)
        .y;
  }
  kernels::Dropout dropout(std::size_t layer, kernels::DropoutSite site) const {
    const bool is_attention = site == kernels::DropoutSite::AttentionWeights;
    const double rate = is_attention ? config_.attention_dropout : config_.hidden_dropout;
    return {.threshold = kernels::dropout_threshold(rate),
            .key = key_,
            .layer = static_cast<std::uint32_t>(layer),
            .site = site};
  }
  std::vector<double> drop(const batch::MicroBatch& batch, std::size_t layer, kernels::DropoutSite site,
                           const std::vector<double>& x) const {
    return drop_rows(dropout(layer, site), x, batch.row_samples, batch.positions);
  }
  static std::vector<double> plus(std::vector<double> a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
  }

  std::vector<double> encoder_layer(const std::vector<double>& flat, const batch::MicroBatch& batch,
                                    std::size_t layer, const std::vector<double>& x) const {
    const std::string name = "bert.encoder.layer." + std::to_string(layer) + ".";
    std::vector<double> qkv(3 * x.size());
    std::size_t part = 0;
    for (const char* which : {"query", "key", "value"}) {
      const std::vector<double> projected = map(flat, name + "attention.self." + which, x);
      for (std::size_t i = 0; i < x.size(); ++i) {
        qkv[(i / width() * 3 + part) * width() + i % width()] = projected[i];
      }
      ++part;
    }
    const std::vector<double> context = attention({.rows = x.size() / width(),
                                                   .heads = static_cast<std::size_t>(config_.num_heads),
                                                   .width = static_cast<std::size_t>(config_.head_width()),
                                                   .starts = batch.starts,
                                                   .lengths = batch.lengths,
                                                   .samples = batch.samples},
                                                  qkv, dropout(layer, kernels::DropoutSite::AttentionWeights))
                                            .context;
    const std::vector<double> y = norm(flat, name + "attention.output.LayerNorm",
                                       plus(x, drop(batch, layer, kernels::DropoutSite::AttentionOutput,
                                                    map(flat, name + "attention.output.dense", context))));
    std::vector<double> inner = map(flat, name + "intermediate.dense", y);
    for (double& value : inner) value = gelu(value);
    return norm(flat, name + "output.LayerNorm",
                plus(y, drop(batch, layer, kernels::DropoutSite::MlpOutput,
                             map(flat, name + "output.dense", inner))));
  }

  const describe::ModelConfig& config_;
  const describe::ParameterTable& table_;
  base::PhiloxKey key_;
};

}  // namespace plenum::reference
