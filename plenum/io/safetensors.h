#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/base/function_ref.h"
#include "plenum/io/file.h"

namespace plenum::io {

/// How a safetensors file stores elements, by the format's own name ("F32", "BF16") and size.
struct SafetensorsType {
  std::string_view name;
  std::uint32_t bits = 0;
};

/// A tensor of a safetensors file: row-major, without strides.
struct SafetensorsTensor {
  std::string name;
  SafetensorsType type;
  std::vector<std::int64_t> sizes;  ///< none: one element
  std::uint64_t num_elements = 0;
  std::uint64_t begin = 0;  ///< of its bytes behind the header
  std::uint64_t end = 0;
};

/// A safetensors file, mapped for reading. The whole header is checked before anything is read: offsets cover
/// the file without hole or overlap, sizes match shapes, no name stands twice.
class SafetensorsFile {
 public:
  /// Throws UserError naming file and tensor.
  explicit SafetensorsFile(std::string path);

  const std::string& path() const { return path_; }
  /// In order of their place in the file.
  const std::vector<SafetensorsTensor>& tensors() const { return tensors_; }
  /// Null if there is none.
  const SafetensorsTensor* find(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  /// The elements as the file stores them.
  std::span<const std::byte> bytes(const SafetensorsTensor& tensor) const;
  /// Overwrites `values`, one for each element, converted to the nearest float from F64, F32, F16, BF16 or
  /// I64. Throws UserError for another type.
  void read(const SafetensorsTensor& tensor, std::span<float> values) const;
  /// The same for some of the elements, from `first` on.
  void read(const SafetensorsTensor& tensor, std::size_t first, std::span<float> values) const;

 private:
  void place_tensors(std::uint64_t data_bytes);

  std::string path_;
  MappedFile file_;
  std::uint64_t data_begin_ = 0;
  std::map<std::string, std::string> metadata_;
  std::vector<SafetensorsTensor> tensors_;
  std::map<std::string_view, std::size_t> index_by_name_;
};

/// Floats to be written under a name; borrows the values.
struct NamedFloats {
  std::string name;
  std::vector<std::int64_t> sizes;
  std::span<const float> values;
  std::vector<std::span<const float>> rest = {};  ///< behind them, where they lie in several parts

  std::uint64_t num_bytes() const;
};

/// Hands `sink` the bytes of a safetensors file, tensor by tensor without a copy: the bytes that the
/// reference writer makes (tensors by name, header padded to 8 bytes with spaces) with the metadata
/// {"format": "pt"}, which transformers asks for.
void write_safetensors(std::vector<NamedFloats> tensors, base::FunctionRef<void(std::string_view)> sink);
/// The same for values that only `read` can read: it hands them to a function, in order, in one or more
/// pieces.
using ReadFloats =
    base::FunctionRef<void(std::span<const float>, base::FunctionRef<void(std::span<const float>)>)>;
void write_safetensors(std::vector<NamedFloats> tensors, base::FunctionRef<void(std::string_view)> sink,
                       ReadFloats read);

/// "[128, 768]".
std::string format_sizes(std::span<const std::int64_t> sizes);

}  // namespace plenum::io
