#include "plenum/describe/bert.h"

#include <fmt/format.h>

namespace plenum::describe {
namespace {

/// Makes the parts of one model.
class BertParts {
 public:
  explicit BertParts(const ModelConfig& config) : config_(config) {}

  Embedding embedding() const {
    const auto table = [&](std::string_view name, std::int64_t num_rows) {
      return Table{.weight = fmt::format("bert.embeddings.{}_embeddings.weight", name),
                   .num_rows = num_rows,
                   .width = config_.width,
                   .deviation = config_.initializer_range};
    };
    Embedding embedding{.words = table("word", config_.vocabulary),
                        .positions = table("position", config_.max_positions),
                        .segments = table("token_type", config_.num_segments),
                        .norm = norm("bert.embeddings.LayerNorm")};
    embedding.words.split_dim = 0;
    embedding.words.zero_row = config_.pad_id;
    return embedding;
  }

  Layer layer(std::int64_t index) const {
    const std::string prefix = fmt::format("bert.encoder.layer.{}.", index);
    const std::int64_t D = config_.width;
    const std::int64_t F = config_.mlp_width;
    return {.norm_position = NormPosition::Post,
            .attention = {.num_heads = config_.num_heads,
                          .head_width = config_.head_width(),
                          .projections = {map(prefix + "attention.self.query", D, D, 0),
                                          map(prefix + "attention.self.key", D, D, 0),
                                          map(prefix + "attention.self.value", D, D, 0)},
                          .output = map(prefix + "attention.output.dense", D, D, 1),
                          .norm = norm(prefix + "attention.output.LayerNorm")},
            .mlp = {.kind = MlpKind::Gelu,
                    .in = map(prefix + "intermediate.dense", D, F, 0),
                    .out = map(prefix + "output.dense", F, D, 1),
                    .norm = norm(prefix + "output.LayerNorm")}};
  }

  Head masked_token_head(const Table& words) const {
    return {.objective = masked_token_objective(config_.vocabulary),
            .transform = map("cls.predictions.transform.dense", config_.width, config_.width),
            .activation = HeadActivation::Gelu,
            .norm = norm("cls.predictions.transform.LayerNorm"),
            .output = {.weight = words.weight,
                       .bias = "cls.predictions.bias",
                       .in_width = config_.width,
                       .out_width = config_.vocabulary,
                       .split_dim = 0,
                       .is_tied = true}};
  }

  Head next_sentence_head() const {
    const Objective objective = next_sentence_objective();
    return {.objective = objective,
            .transform = map("bert.pooler.dense", config_.width, config_.width),
            .activation = HeadActivation::Tanh,
            .output = map("cls.seq_relationship", config_.width, objective.num_classes)};
  }

  Head task_head(const Task& task) const {
    const bool is_of_answers = task.kind == TaskKind::QuestionAnswering;
    const bool is_of_tokens = is_of_answers || task.kind == TaskKind::TokenClassification;
    Head head{.objective = task_objective(task),
              .activation = HeadActivation::Tanh,
              .dropout = is_of_answers ? 0 : task.dropout.value_or(config_.hidden_dropout),
              .output = map(is_of_answers ? "qa_outputs" : "classifier", config_.width, num_outputs(task))};
    if (!is_of_tokens) head.transform = map("bert.pooler.dense", config_.width, config_.width);
    return head;
  }

 private:
  LinearMap map(const std::string& name, std::int64_t in_width, std::int64_t out_width,
                std::optional<std::size_t> split_dim = {}) const {
    return {.weight = name + ".weight",
            .bias = name + ".bias",
            .in_width = in_width,
            .out_width = out_width,
            .split_dim = split_dim,
            .deviation = config_.initializer_range};
  }
  Norm norm(const std::string& name) const {
    return {.weight = name + ".weight", .bias = name + ".bias", .width = config_.width};
  }

  const ModelConfig& config_;
};

FileNames file_names() {
  return {.prefix = "bert.",
          .bare_beginnings = {"embeddings.", "encoder.", "pooler."},
          .old_endings = {{"LayerNorm.gamma", "LayerNorm.weight"}, {"LayerNorm.beta", "LayerNorm.bias"}},
          .buffer_endings = {"embeddings.position_ids", "embeddings.token_type_ids"},
          .spare_beginnings = {"bert.pooler.", "cls.seq_relationship.", "classifier.", "qa_outputs."}};
}

ModelDescription encoder_of(const ModelConfig& config, const BertParts& parts) {
  ModelDescription model{.width = config.width,
                         .embedding = parts.embedding(),
                         .layers = {},
                         .heads = {},
                         .norm_epsilon = config.layer_norm_epsilon,
                         .hidden_dropout = config.hidden_dropout,
                         .attention_dropout = config.attention_dropout,
                         .file_names = file_names()};
  for (std::int64_t i = 0; i < config.num_layers; ++i) model.layers.push_back(parts.layer(i));
  return model;
}

void add_pretraining_heads(const ModelConfig& config, const BertParts& parts, ModelDescription& model) {
  model.heads.push_back(parts.masked_token_head(model.embedding.words));
  if (config.has_next_sentence) model.heads.push_back(parts.next_sentence_head());
  const LinearMap& decoder = model.heads.front().output;
  model.file_names.copies = {{"cls.predictions.decoder.weight", decoder.weight},
                             {"cls.predictions.decoder.bias", decoder.bias}};
}

/// A model without heads of pre-training may be made of one that has them.
void spare_pretraining_heads(ModelDescription& model) {
  model.file_names.spare_beginnings.emplace_back("cls.");
}

}  // namespace

ModelDescription describe_bert(const ModelConfig& config) {
  require_valid(config);
  const BertParts parts(config);
  ModelDescription model = encoder_of(config, parts);
  if (config.task) {
    model.heads.push_back(parts.task_head(*config.task));
    spare_pretraining_heads(model);
  } else {
    add_pretraining_heads(config, parts, model);
  }
  return model;
}

ModelDescription describe_bert_encoder(const ModelConfig& config) {
  require_valid(config);
  ModelDescription model = encoder_of(config, BertParts(config));
  spare_pretraining_heads(model);
  return model;
}

}  // namespace plenum::describe
