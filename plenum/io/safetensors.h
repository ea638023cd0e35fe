#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

/// A tensor of floats by name and shape.
struct FloatsShape {
  std::string name;
  std::vector<std::int64_t> sizes;

  std::uint64_t num_bytes() const;
};

/// Where everything lies in a safetensors file of floats, which follows from names and shapes alone: the file
/// that the reference writer makes (tensors by name, header padded to 8 bytes with spaces) with the metadata
/// {"format": "pt"}, which transformers asks for.
class SafetensorsLayout {
 public:
  explicit SafetensorsLayout(std::vector<FloatsShape> tensors);

  /// The first bytes of the file.
  const std::string& header() const { return header_; }
  /// Of the whole file.
  std::uint64_t num_bytes() const { return num_bytes_; }
  /// Of a tensor's first byte in the file. Throws InternalError if there is none of the name.
  std::uint64_t begin_of(std::string_view name) const;

 private:
  std::string header_;
  std::uint64_t num_bytes_ = 0;
  std::map<std::string, std::uint64_t, std::less<>> begin_by_name_;
};

/// Floats to be written under a name; borrows the values.
struct NamedFloats {
  std::string name;
  std::vector<std::int64_t> sizes;
  std::span<const float> values;
};

/// Hands `sink` the bytes of such a file in order, tensor by tensor without a copy.
void write_safetensors(std::vector<NamedFloats> tensors, base::FunctionRef<void(std::string_view)> sink);

/// "[128, 768]".
std::string format_sizes(std::span<const std::int64_t> sizes);

}  // namespace plenum::io
