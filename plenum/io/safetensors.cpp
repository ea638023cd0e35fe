#include "plenum/io/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "plenum/base/check.h"

namespace plenum::io {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
constexpr std::uint64_t kHeaderAlignment = 8;
constexpr const char* kMetadataKey = "__metadata__";

// Every type of the format, so that a file may hold tensors that nobody asks for.
constexpr std::array<SafetensorsType, 22> kTypes = {{
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
    {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
    {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64},
}};

/// Parses a header and refuses what the format does not allow: keys that stand twice, deeper objects.
class HeaderParser {
 public:
  explicit HeaderParser(const std::string& path) : path_(path) {}

  json run(std::string_view text) {
    const auto notice = [this](int depth, json::parse_event_t event, json& parsed) {
      note(depth, event, parsed);
      return true;
    };
    try {
      json header = json::parse(text, notice);
      base::require(header.is_object(), "{}: the header is not a JSON object", path_);
      return header;
    } catch (const json::exception&) {  // also a number that no type holds
      base::fail("{}: the header is not JSON; the file is damaged or no safetensors file", path_);
    }
  }

 private:
  // Depths as the parser counts them: of tensor names, and of the keys of one tensor.
  static constexpr int kNameDepth = 1;
  static constexpr int kFieldDepth = 2;

  void note(int depth, json::parse_event_t event, const json& parsed) {
    if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) {
      base::require(depth <= kFieldDepth, "{}: the header is nested too deeply", path_);
      if (depth == kNameDepth) fields_.clear();
    } else if (event == json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      const bool is_new = (depth == kNameDepth ? names_ : fields_).insert(key).second;
      base::require(is_new, "{}: the header has a key twice: {}", path_, key);
    }
  }

  const std::string& path_;
  std::set<std::string> names_;
  std::set<std::string> fields_;
};

/// The description of one tensor in a header.
class TensorParser {
 public:
  TensorParser(const std::string& path, const std::string& name) : path_(path), name_(name) {}

  SafetensorsTensor run(const json& description) const {
    base::require(description.is_object() && description.size() == 3,
                  "{}: the description of a tensor must have dtype, shape and data_offsets: {}", path_,
                  name_);
    SafetensorsTensor tensor{.name = name_, .type = type(field(description, "dtype")), .sizes = {}};
    const std::vector<std::uint64_t> sizes = numbers(description, "shape");
    tensor.sizes.assign(sizes.begin(), sizes.end());
    tensor.num_elements = product(sizes);
    const std::vector<std::uint64_t> offsets = numbers(description, "data_offsets");
    base::require(offsets.size() == 2 && offsets[0] <= offsets[1],
                  "{}: data_offsets must be a beginning and an end: {} of tensor {}", path_,
                  field(description, "data_offsets").dump(), name_);
    tensor.begin = offsets[0];
    tensor.end = offsets[1];
    std::uint64_t bits = 0;
    const bool is_bounded = !__builtin_mul_overflow(tensor.num_elements, tensor.type.bits, &bits);
    base::require(is_bounded && bits % 8 == 0 && bits / 8 == tensor.end - tensor.begin,
                  "{}: the bytes of tensor {} do not match its shape: {} bytes for {} of {}", path_, name_,
                  tensor.end - tensor.begin, tensor.type.name, format_sizes(tensor.sizes));
    return tensor;
  }

 private:
  const json& field(const json& description, const char* key) const {
    const auto found = description.find(key);
    base::require(found != description.end(), "{}: tensor {} has no {}", path_, name_, key);
    return *found;
  }

  SafetensorsType type(const json& name) const {
    const auto found = std::find_if(kTypes.begin(), kTypes.end(), [&](const SafetensorsType& type) {
      return name.is_string() && name.get_ref<const std::string&>() == type.name;
    });
    base::require(found != kTypes.end(), "{}: tensor {} has an unknown dtype: {}", path_, name_, name.dump());
    return *found;
  }

  /// A list of whole numbers from 0 that a signed number holds.
  std::vector<std::uint64_t> numbers(const json& description, const char* key) const {
    const json& list = field(description, key);
    base::require(list.is_array(), "{}: {} of tensor {} is not a list", path_, key, name_);
    std::vector<std::uint64_t> values;
    for (const json& element : list) {
      base::require(element.is_number_unsigned() && std::in_range<std::int64_t>(element.get<std::uint64_t>()),
                    "{}: {} of tensor {} must be whole numbers from 0: {}", path_, key, name_,
                    element.dump());
      values.push_back(element.get<std::uint64_t>());
    }
    return values;
  }

  std::uint64_t product(const std::vector<std::uint64_t>& sizes) const {
    std::uint64_t elements = 1;
    for (const std::uint64_t size : sizes) {
      base::require(!__builtin_mul_overflow(elements, size, &elements),
                    "{}: tensor {} has more elements than can be counted", path_, name_);
    }
    return elements;
  }

  const std::string& path_;
  const std::string& name_;
};

std::map<std::string, std::string> parse_metadata(const json& object, const std::string& path) {
  std::map<std::string, std::string> metadata;
  base::require(object.is_object(), "{}: {} must be an object of texts", path, kMetadataKey);
  for (const auto& [key, value] : object.items()) {
    base::require(value.is_string(), "{}: {} must be an object of texts: {} is {}", path, kMetadataKey, key,
                  value.dump());
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

/// IEEE 754 binary16, widened without rounding.
float widen_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t fraction = half & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal: the fraction counts steps of 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  constexpr std::uint32_t kBiasDifference = 127 - 15;
  const std::uint32_t widened = exponent == 0x1f ? 0xffu : exponent + kBiasDifference;
  return std::bit_cast<float>(sign | widened << 23 | fraction << 13);
}

float widen_bfloat(std::uint16_t bfloat) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bfloat) << 16);
}

/// Loads elements one by one: what a header of odd length precedes is not aligned.
template <typename Stored, typename Convert>
void convert_elements(std::span<const std::byte> bytes, std::span<float> values, Convert convert) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    values[i] = convert(stored);
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(std::string path) : path_(std::move(path)), file_(path_) {
  const std::span<const std::byte> all = file_.bytes();
  base::require(all.size() >= kLengthBytes, "{}: the file is too short for a safetensors file: {} bytes",
                path_, all.size());
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, all.data(), kLengthBytes);
  base::require(header_bytes <= kMaxHeaderBytes && header_bytes <= all.size() - kLengthBytes,
                "{}: the header does not fit; the file is cut or no safetensors file: {} bytes", path_,
                header_bytes);
  data_begin_ = kLengthBytes + header_bytes;
  const std::string_view text(reinterpret_cast<const char*>(all.data()) + kLengthBytes, header_bytes);
  base::require(text.starts_with('{'), "{}: the header does not begin with {{; this is no safetensors file",
                path_);
  const json header = HeaderParser(path_).run(text);
  for (const auto& [name, description] : header.items()) {
    if (name == kMetadataKey) {
      metadata_ = parse_metadata(description, path_);
    } else {
      tensors_.push_back(TensorParser(path_, name).run(description));
    }
  }
  place_tensors(all.size() - data_begin_);
}

/// Orders the tensors by place and checks that they cover `data_bytes` one after the other.
void SafetensorsFile::place_tensors(std::uint64_t data_bytes) {
  std::sort(tensors_.begin(), tensors_.end(), [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::uint64_t expected = 0;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const SafetensorsTensor& tensor = tensors_[i];
    base::require(tensor.begin == expected, "{}: tensor {} must begin where the one before ends, at {}: {}",
                  path_, tensor.name, expected, tensor.begin);
    expected = tensor.end;
    index_by_name_.emplace(tensor.name, i);
  }
  base::require(expected == data_bytes,
                "{}: the file must hold {} bytes behind its header and holds {}; it is cut or damaged", path_,
                expected, data_bytes);
}

const SafetensorsTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_by_name_.find(name);
  return found == index_by_name_.end() ? nullptr : &tensors_[found->second];
}

std::span<const std::byte> SafetensorsFile::bytes(const SafetensorsTensor& tensor) const {
  return file_.bytes().subspan(data_begin_ + tensor.begin, tensor.end - tensor.begin);
}

void SafetensorsFile::read(const SafetensorsTensor& tensor, std::span<float> values) const {
  base::check(values.size() == tensor.num_elements, "room for {} elements of tensor {}, which has {}",
              values.size(), tensor.name, tensor.num_elements);
  read(tensor, 0, values);
}

void SafetensorsFile::read(const SafetensorsTensor& tensor, std::size_t first,
                           std::span<float> values) const {
  base::check(first <= tensor.num_elements && values.size() <= tensor.num_elements - first,
              "no elements {} to {} of tensor {}, which has {}", first, first + values.size(), tensor.name,
              tensor.num_elements);
  const std::size_t element_bytes = tensor.type.bits / 8;
  const std::span<const std::byte> stored =
      bytes(tensor).subspan(first * element_bytes, values.size() * element_bytes);
  const std::string_view type = tensor.type.name;
  if (type == "F32") {
    if (!values.empty()) std::memcpy(values.data(), stored.data(), stored.size());
  } else if (type == "F16") {
    convert_elements<std::uint16_t>(stored, values, widen_half);
  } else if (type == "BF16") {
    convert_elements<std::uint16_t>(stored, values, widen_bfloat);
  } else if (type == "F64") {
    convert_elements<double>(stored, values, [](double value) { return static_cast<float>(value); });
  } else if (type == "I64") {
    convert_elements<std::int64_t>(stored, values,
                                   [](std::int64_t value) { return static_cast<float>(value); });
  } else {
    base::fail("{}: tensor {} has dtype {}; F32, F16, BF16, F64 and I64 can be read", path_, tensor.name,
               type);
  }
}

std::uint64_t FloatsShape::num_bytes() const {
  std::uint64_t bytes = sizeof(float);
  for (const std::int64_t size : sizes) bytes *= static_cast<std::uint64_t>(size);
  return bytes;
}

SafetensorsLayout::SafetensorsLayout(std::vector<FloatsShape> tensors) {
  // The reference writer orders by alignment of the type first; here all have the same.
  std::ranges::sort(tensors, {}, &FloatsShape::name);
  nlohmann::ordered_json::object_t header;
  header.emplace_back(kMetadataKey, nlohmann::ordered_json{{"format", "pt"}});
  std::uint64_t offset = 0;
  for (const FloatsShape& tensor : tensors) {
    const std::uint64_t end = offset + tensor.num_bytes();
    header.emplace_back(
        tensor.name,
        nlohmann::ordered_json{{"dtype", "F32"}, {"shape", tensor.sizes}, {"data_offsets", {offset, end}}});
    begin_by_name_.emplace(tensor.name, offset);
    offset = end;
  }
  header_.assign(kLengthBytes, '\0');
  header_ += nlohmann::ordered_json(std::move(header)).dump();
  header_.resize((header_.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
  const std::uint64_t header_bytes = header_.size() - kLengthBytes;
  std::memcpy(header_.data(), &header_bytes, kLengthBytes);
  num_bytes_ = header_.size() + offset;
}

std::uint64_t SafetensorsLayout::begin_of(std::string_view name) const {
  const auto found = begin_by_name_.find(name);
  base::check(found != begin_by_name_.end(), "a file has no tensor {}", name);
  return header_.size() + found->second;
}

void write_safetensors(std::vector<NamedFloats> tensors, base::FunctionRef<void(std::string_view)> sink) {
  std::ranges::sort(tensors, {}, &NamedFloats::name);
  std::vector<FloatsShape> shapes;
  for (const NamedFloats& tensor : tensors) {
    base::check(
        shapes.emplace_back(FloatsShape{tensor.name, tensor.sizes}).num_bytes() == tensor.values.size_bytes(),
        "tensor {} of {} has {} values", tensor.name, format_sizes(tensor.sizes), tensor.values.size());
  }
  sink(SafetensorsLayout(std::move(shapes)).header());
  for (const NamedFloats& tensor : tensors)
    sink({reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size_bytes()});
}

std::string format_sizes(std::span<const std::int64_t> sizes) {
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

}  // namespace plenum::io
