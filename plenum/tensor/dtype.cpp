#include "plenum/tensor/dtype.h"

#include <array>

namespace plenum::tensor {
namespace {

struct DTypeTraits {
  std::size_t size;
  std::string_view name;
};
constexpr std::array<DTypeTraits, 6> kTraits = {
    {{4, "float32"}, {8, "float64"}, {8, "int64"}, {1, "byte"}, {4, "int32"}, {2, "bfloat16"}}};

}  // namespace

std::size_t size_of(DType dtype) {
  return kTraits[static_cast<std::size_t>(dtype)].size;
}

std::string_view dtype_name(DType dtype) {
  return kTraits[static_cast<std::size_t>(dtype)].name;
}

}  // namespace plenum::tensor
