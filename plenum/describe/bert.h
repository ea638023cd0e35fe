#pragma once

#include "plenum/describe/model_config.h"
#include "plenum/describe/model_description.h"

namespace plenum::describe {

/// A BERT (Devlin et al., 2019) as Hugging Face's BertForMaskedLM, or BertForPreTraining where it has a
/// next-sentence head; with a task as BertForSequenceClassification, BertForTokenClassification,
/// BertForQuestionAnswering or BertForMultipleChoice. Throws UserError for a configuration that is not valid.
ModelDescription describe_bert(const ModelConfig& config);

/// The same without heads, whatever files have of them: what the last layer gives is wanted itself.
ModelDescription describe_bert_encoder(const ModelConfig& config);

}  // namespace plenum::describe
