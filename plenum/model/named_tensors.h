#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/base/function_ref.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/io/safetensors.h"
#include "plenum/model/flat_pieces.h"
#include "plenum/tensor/host_window.h"

namespace plenum::model {

/// The tensors of a flat buffer under their names, as write_safetensors takes them. Borrows `values_N`.
std::vector<io::NamedFloats> named_tensors(const describe::ParameterTable& table,
                                           std::span<const float> values_N);

/// Of which parameters of a table a flat buffer has values.
using IsNamed = base::FunctionRef<bool(const describe::Parameter&)>;
inline constexpr auto kEveryParameter = [](const describe::Parameter&) { return true; };

/// Names, each with `prefix` before it, and shapes alone.
std::vector<io::FloatsShape> named_shapes(const describe::ParameterTable& table, std::string_view prefix = "",
                                          IsNamed is_named = kEveryParameter);

/// Hands `write` what there are pieces for of every parameter of the table that is named, each with its place
/// in a file of that layout, in the order of the file. `window`: needed where the buffer lies on a GPU.
void write_named_tensors(const io::SafetensorsLayout& layout, const describe::ParameterTable& table,
                         const FlatPieces& values_N, const tensor::HostWindow* window,
                         std::string_view prefix,
                         base::FunctionRef<void(std::uint64_t, std::span<const float>)> write,
                         IsNamed is_named = kEveryParameter);

/// The part of a flat buffer that holds one parameter.
std::span<float> elements_of(const describe::Parameter& parameter, std::span<float> values_N);

/// Reads one parameter into its place. Throws UserError with both shapes if they differ.
void read_parameter(const io::SafetensorsFile& file, const io::SafetensorsTensor& tensor,
                    const describe::Parameter& parameter, std::span<float> values_N);

/// Reads of every parameter of the table that is named what there are pieces for, each under its name with
/// `prefix` before it; gaps between them stay as they are. Throws UserError naming a tensor that the file
/// lacks or has in another shape. `window`: needed where the buffer lies on a GPU.
void read_named_tensors(const io::SafetensorsFile& file, const describe::ParameterTable& table,
                        const FlatPieces& values_N, const tensor::HostWindow* window,
                        std::string_view prefix = "", IsNamed is_named = kEveryParameter);

}  // namespace plenum::model
