#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plenum/describe/model_config.h"
#include "plenum/describe/parameter_table.h"

#include "tests/support/golden_tensors.h"
#include "tests/support/test_sequences.h"

namespace plenum::test {

/// What Hugging Face computes for a tiny BERT (tools/make_bert_golden.py): "gradient:<name>", "masked_logits"
/// and so on.
class BertGolden : public GoldenTensors {
 public:
  BertGolden() : GoldenTensors("bert.safetensors") {}

  static describe::ModelConfig config() {
    return {.vocabulary = 97,
            .width = 32,
            .num_layers = 2,
            .num_heads = 4,
            .mlp_width = 64,
            .max_positions = 24,
            .hidden_dropout = 0,
            .attention_dropout = 0,
            .has_next_sentence = true};
  }

  /// Overwrites flat buffers with the initial weights.
  void read_weights(const describe::ParameterTable& table, std::span<float> flat) const {
    for (const describe::Parameter& parameter : table.parameters())
      read_parameter("weight:" + parameter.name, parameter, flat);
  }

  std::vector<TestSequence> sequences() const {
    const auto ids = read<std::int32_t>("ids");
    const auto segments = read<std::int32_t>("segments");
    const auto rows = read<std::int32_t>("masked_rows");
    const auto labels = read<std::int32_t>("masked_labels");
    const auto next_sentence = read<std::int32_t>("next_sentence_labels");
    std::vector<TestSequence> sequences;
    std::int32_t start = 0;
    for (const std::int32_t length : read<std::int32_t>("lengths")) {
      TestSequence& sequence = sequences.emplace_back();
      sequence.next_sentence_label = next_sentence[sequences.size() - 1];
      sequence.ids.assign(ids.begin() + start, ids.begin() + start + length);
      sequence.segments.assign(segments.begin() + start, segments.begin() + start + length);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i] < start || rows[i] >= start + length) continue;
        sequence.masked_positions.push_back(rows[i] - start);
        sequence.masked_labels.push_back(labels[i]);
      }
      start += length;
    }
    return sequences;
  }
};

}  // namespace plenum::test
