#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plenum/data/batches/dataset_sequences.h"
#include "plenum/data/corpus/dataset.h"
#include "plenum/train/training_data.h"

namespace plenum::train {

/// A dataset that plenum prepare made, for pre-training.
class PreparedData final : public TrainingData {
 public:
  /// Throws UserError as data::Dataset and data::DatasetSequences do.
  explicit PreparedData(const std::string& directory);
  PreparedData(const PreparedData&) = delete;
  PreparedData& operator=(const PreparedData&) = delete;

  const data::Dataset& dataset() const { return dataset_; }

  const data::SequenceSource& training() const override { return training_; }
  const data::SequenceSource* held_out() const override { return held_out_ ? &*held_out_ : nullptr; }
  std::string name() const override { return dataset_.directory(); }
  std::string held_out_advice() const override { return "prepare it with --holdout 1%"; }
  std::string fingerprint() const override { return dataset_.description().fingerprint; }
  std::vector<bool> shards_here() const override;
  void require_unchanged(const Note& note) const override;
  describe::ModelConfig fitted(describe::ModelConfig model, const std::string& init) const override;
  std::vector<std::pair<std::string, std::string>> tokenizer_files() const override;

 private:
  data::Dataset dataset_;
  data::DatasetSequences training_;
  std::optional<data::DatasetSequences> held_out_;
};

}  // namespace plenum::train
