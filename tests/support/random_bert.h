#pragma once

#include <string>

#include "plenum/describe/model_config.h"

namespace plenum::test {

/// Writes a Hugging Face directory of a BERT with random weights and a tokenizer of `vocabulary`, the text of
/// a vocab.txt, whose number of tokens is the model's. Returns it.
std::string write_random_bert(const std::string& directory, const std::string& vocabulary,
                              describe::ModelConfig config, std::uint64_t seed = 1);

}  // namespace plenum::test
