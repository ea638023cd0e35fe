#pragma once

#include <string>
#include <string_view>

#include "plenum/describe/model_config.h"

namespace plenum::model {

/// The model that a Hugging Face config.json describes, with its task if architectures name the class of one;
/// what it leaves out has BertConfig's defaults. Throws UserError with `source`, key and value for what is no
/// BERT as published: another model type, activation or position embedding, decoders, an output embedding of
/// its own.
describe::ModelConfig parse_hugging_face_config(std::string_view text, const std::string& source);

/// That of `directory`/config.json.
describe::ModelConfig read_hugging_face_config(const std::string& directory);

/// A config.json as transformers 5 writes it; the architecture is that of the model's task, without one
/// BertForPreTraining if it has a next-sentence head, else BertForMaskedLM.
std::string print_hugging_face_config(const describe::ModelConfig& config);

}  // namespace plenum::model
