#include "plenum/train/checkpoint_tensors.h"

#include <functional>
#include <span>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plenum/base/check.h"
#include "plenum/io/block_sums.h"
#include "plenum/io/placed_file.h"
#include "plenum/model/named_tensors.h"

namespace plenum::train {
namespace {

constexpr std::string_view kFirstMoments = "exp_avg.";
constexpr std::string_view kSecondMoments = "exp_avg_sq.";

/// Whether a parameter has a second moment.
auto has_second_moment(optim::OptimizerKind optimizer) {
  return [optimizer](const describe::Parameter& parameter) {
    return optim::has_second_moment(optimizer, parameter);
  };
}

std::vector<io::FloatsShape> optimizer_shapes(const CheckpointTensors& tensors) {
  std::vector<io::FloatsShape> shapes = model::named_shapes(tensors.table, kFirstMoments);
  for (io::FloatsShape& shape :
       model::named_shapes(tensors.table, kSecondMoments, has_second_moment(tensors.optimizer)))
    shapes.push_back(std::move(shape));
  for (const StateTensor& state : tensors.states) shapes.push_back({state.name, state.sizes});
  return shapes;
}

void write_states(const io::SafetensorsLayout& layout, const CheckpointTensors& tensors,
                  base::FunctionRef<void(std::uint64_t, std::span<const float>)> write) {
  for (const StateTensor& state : tensors.states) {
    if (state.writer != StateWriter::This) continue;
    std::uint64_t offset = layout.begin_of(state.name);
    const auto take = [&](std::span<const float> values) {
      write(offset, values);
      offset += values.size_bytes();
    };
    tensors.window == nullptr ? take(state.values) : tensors.window->read(state.values, take);
  }
}

void read_states(const io::SafetensorsFile& file, const CheckpointTensors& tensors) {
  for (const StateTensor& state : tensors.states) {
    if (state.values.empty()) continue;
    const io::SafetensorsTensor* const tensor = file.find(state.name);
    base::require(tensor != nullptr && tensor->sizes == state.sizes,
                  "{}: tensor {} is missing or has another shape than {}", file.path(), state.name,
                  io::format_sizes(state.sizes));
    const auto read = [&](std::size_t first, std::span<float> values) { file.read(*tensor, first, values); };
    tensors.window == nullptr ? read(0, state.values) : tensors.window->write(state.values, read);
  }
}

std::string path_of(const std::string& directory, const char* name) {
  return fmt::format("{}/{}", directory, name);
}

}  // namespace

TensorFiles::TensorFiles(const CheckpointTensors& tensors)
    : layouts_{io::SafetensorsLayout(model::named_shapes(tensors.table)),
               io::SafetensorsLayout(optimizer_shapes(tensors))} {}

void TensorFiles::make(const std::string& directory) const {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    io::PlacedFile::make(path_of(directory, kNames[i]), layouts_[i].num_bytes());
}

TensorFiles::Tally TensorFiles::write(const std::string& directory, const CheckpointTensors& tensors,
                                      Headers headers, base::FunctionRef<void()> on_part) const {
  struct Part {
    const model::FlatPieces& pieces;
    std::string_view prefix;
    std::function<bool(const describe::Parameter&)> is_named = model::kEveryParameter;
  };
  const std::array<std::vector<Part>, 2> parts = {
      {{{tensors.weights, ""}},
       {{tensors.first_moments, kFirstMoments},
        {tensors.second_moments, kSecondMoments, has_second_moment(tensors.optimizer)}}}};
  Tally tally;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    io::PlacedFile file(path_of(directory, kNames[i]));
    base::require(file.size_bytes() == layouts_[i].num_bytes(),
                  "cannot write {}: it has {} bytes here and not {}; is its file system the same everywhere?",
                  path_of(directory, kNames[i]), file.size_bytes(), layouts_[i].num_bytes());
    if (headers == Headers::Yes) file.write(0, layouts_[i].header());
    const auto write = [&](std::uint64_t offset, std::span<const float> values) {
      file.write(offset, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
      on_part();
    };
    for (const Part& part : parts[i])
      model::write_named_tensors(layouts_[i], tensors.table, part.pieces, tensors.window, part.prefix, write,
                                 part.is_named);
    if (kNames[i] == kOptimizerName) write_states(layouts_[i], tensors, write);
    file.sync();
    on_part();
    tally.push_back(file.written_bytes());
    tally.insert(tally.end(), file.sums().values().begin(), file.sums().values().end());
  }
  return tally;
}

void TensorFiles::add_records(const Tally& tally, nlohmann::json& list) const {
  auto next = tally.begin();
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const std::uint64_t num_bytes = layouts_[i].num_bytes();
    base::check(*next == num_bytes, "processes wrote {} of the {} bytes of {}", *next, num_bytes, kNames[i]);
    ++next;
    nlohmann::json checksums = nlohmann::json::array();
    const std::size_t num_blocks = io::BlockSums(num_bytes).values().size();
    for (std::size_t block = 0; block < num_blocks; ++block)
      checksums.push_back(io::format_block_sum(*next++));
    list.push_back({{"name", kNames[i]}, {"bytes", num_bytes}, {"checksums", std::move(checksums)}});
  }
}

void read_tensors(const std::string& directory, const CheckpointTensors& tensors) {
  const io::SafetensorsFile weights(path_of(directory, TensorFiles::kWeightsName));
  model::read_named_tensors(weights, tensors.table, tensors.weights, tensors.window);
  const bool has_moments = !tensors.first_moments.is_empty() || !tensors.second_moments.is_empty();
  if (!has_moments && tensors.states.empty()) return;
  const io::SafetensorsFile optimizer(path_of(directory, TensorFiles::kOptimizerName));
  model::read_named_tensors(optimizer, tensors.table, tensors.first_moments, tensors.window, kFirstMoments);
  model::read_named_tensors(optimizer, tensors.table, tensors.second_moments, tensors.window, kSecondMoments,
                            has_second_moment(tensors.optimizer));
  read_states(optimizer, tensors);
}

}  // namespace plenum::train
