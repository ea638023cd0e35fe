#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plenum/base/function_ref.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/io/safetensors.h"
#include "plenum/model/flat_pieces.h"
#include "plenum/optim/optimizer_kind.h"
#include "plenum/tensor/host_window.h"

namespace plenum::train {

/// Which process writes a tensor that an optimizer keeps.
enum class StateWriter : bool { Other, This };

/// What an optimizer keeps beside moments, borrowed: a tensor of its own. All processes list the same.
struct StateTensor {
  std::string name;
  std::vector<std::int64_t> sizes;
  std::span<float> values;  ///< of all; none where only other processes have it
  StateWriter writer = StateWriter::This;
};

/// The flat buffers of a model in training, borrowed, wherever their pieces lie. Tensors are found by name,
/// so any layout of the table and any division over ranks can read what another wrote. Of what is written all
/// processes together must have every element once; of what is read there may be some pieces only, and
/// without moments (both empty) only weights are.
struct CheckpointTensors {
  const describe::ParameterTable& table;
  model::FlatPieces weights;
  model::FlatPieces first_moments;
  model::FlatPieces second_moments;
  optim::OptimizerKind optimizer = optim::OptimizerKind::AdamW;  ///< says which parameters have them
  std::vector<StateTensor> states = {};
  const tensor::HostWindow* window = nullptr;  ///< where the buffers lie on a GPU: how the host reaches them
};

/// The files of a checkpoint that hold tensors. Where each byte of them lies follows from the parameter table
/// alone, so processes write their parts without a word to each other.
class TensorFiles {
 public:
  static constexpr const char* kWeightsName = "model.safetensors";
  static constexpr const char* kOptimizerName = "optimizer.safetensors";
  static constexpr std::array<const char*, 2> kNames = {kWeightsName, kOptimizerName};

  /// Of the whole model, with the tensors that these have.
  explicit TensorFiles(const CheckpointTensors& tensors);

  /// Makes them in a directory, in full size. For one process, before any writes.
  void make(const std::string& directory) const;

  /// What was written, for the record: numbers that add up over processes.
  using Tally = std::vector<std::uint64_t>;
  enum class Headers : bool { No, Yes };
  /// Writes what there are pieces for; one process writes headers, too. All of it
  /// is on the disk when this returns. Calls `on_part` after each part, a tensor at most. Throws UserError: a
  /// full disk above all.
  Tally write(const std::string& directory, const CheckpointTensors& tensors, Headers headers,
              base::FunctionRef<void()> on_part) const;

  /// Adds `name`, `bytes` and `checksums` of each file to a list. Throws InternalError unless the tally, of
  /// all processes, has every byte.
  void add_records(const Tally& tally, nlohmann::json& list) const;

 private:
  std::array<io::SafetensorsLayout, 2> layouts_;  ///< in the order of kNames
};

/// Overwrites `tensors` with those of a checkpoint's directory. Throws UserError if it is of a model of other
/// shapes.
void read_tensors(const std::string& directory, const CheckpointTensors& tensors);

}  // namespace plenum::train
