#include "plenum/kernels/cuda/product/lt_matmul.h"

#include <algorithm>
#include <bit>
#include <initializer_list>

#include <fmt/format.h>

namespace plenum::kernels::cuda {
namespace {

/// What Hopper's copies of tiles need. More would keep choices apart that are the same.
constexpr std::uint64_t kFullAlignment = 16;

/// No sums whose order is decided while they run: each in one piece, or in pieces that lie in the workspace
/// in fp32 and are added by a second kernel.
constexpr std::uint32_t kFixedOrder = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;

cudaDataType_t library_type(tensor::DType dtype) {
  return dtype == tensor::DType::Float32 ? CUDA_R_32F : CUDA_R_16BF;
}

/// The largest power of two up to kFullAlignment that divides all of these.
std::uint32_t common_alignment(std::initializer_list<std::uint64_t> places) {
  std::uint64_t bits = kFullAlignment;
  for (const std::uint64_t place : places) bits |= place;
  return std::uint32_t{1} << std::countr_zero(bits);
}

std::uint32_t alignment_of(const Matmul& args) {
  const auto address = [](const void* data) { return reinterpret_cast<std::uint64_t>(data); };
  const auto bytes = [](std::int64_t stride, tensor::DType dtype) {
    return static_cast<std::uint64_t>(stride) * size_of(dtype);
  };
  return common_alignment(
      {address(args.a.data), bytes(args.a.stride, tensor::DType::BFloat16), address(args.b.data),
       bytes(args.b.stride, tensor::DType::BFloat16), address(args.c), bytes(args.c_stride, args.c_dtype),
       address(args.bias), bytes(args.a.batch_stride, tensor::DType::BFloat16),
       bytes(args.b.batch_stride, tensor::DType::BFloat16), bytes(args.c_batch_stride, args.c_dtype)});
}

/// Rounded up to a multiple of an eighth of the power of two below.
std::int64_t size_class(std::int64_t size) {
  const std::int64_t step = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(size))) / 8);
  return (size + step - 1) / step * step;
}

template <typename Value>
void set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  check_lt(cublasLtMatmulDescSetAttribute(product, attribute, &value, sizeof(value)), "describe a product");
}

template <typename Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
         const Value& value) {
  check_lt(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)),
           "describe what algorithms are wanted");
}

/// A row-major matrix of `rows` and `columns`, which the library sees as its transpose.
void describe(cublasLtMatrixLayout_t layout, tensor::DType dtype, std::int64_t rows, std::int64_t columns,
              std::int64_t stride) {
  check_lt(cublasLtMatrixLayoutInit(layout, library_type(dtype), static_cast<std::uint64_t>(columns),
                                    static_cast<std::uint64_t>(rows), stride),
           "describe a matrix");
}

void describe(cublasLtMatrixLayout_t layout, const MatmulOperand& operand, std::int64_t rows,
              std::int64_t columns) {
  if (operand.is_transposed) std::swap(rows, columns);
  describe(layout, tensor::DType::BFloat16, rows, columns, operand.stride);
}

/// As many matrices as there are products, at equal distances.
void describe_batch(cublasLtMatrixLayout_t layout, std::int64_t count, std::int64_t stride) {
  const auto number = static_cast<std::int32_t>(count);
  check_lt(
      cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &number, sizeof(number)),
      "describe several matrices");
  check_lt(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                            sizeof(stride)),
           "describe several matrices");
}

/// The library takes pointers that are not to const even to what it only reads.
template <typename Opaque>
Opaque* opaque(const Opaque& description) {
  return const_cast<Opaque*>(&description);
}

cublasOperation_t operation(const MatmulOperand& operand) {
  return operand.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

}  // namespace

LtMatmul::LtMatmul(const Matmul& args) : args_(args), alignment_(alignment_of(args)) {
  check_lt(cublasLtMatmulDescInit(&product_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describe a product");
  set(&product_, CUBLASLT_MATMUL_DESC_TRANSA, operation(args.b));
  set(&product_, CUBLASLT_MATMUL_DESC_TRANSB, operation(args.a));
  describe(&first_, args.b, args.k, args.n);
  describe(&second_, args.a, args.m, args.k);
  describe(&third_, args.c_dtype, args.m, args.n, args.c_stride);
  if (args.num_multiprocessors != 0)
    set(&product_, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, std::int32_t{args.num_multiprocessors});
  if (args.num_products > 1) {
    describe_batch(&first_, args.num_products, args.b.batch_stride);
    describe_batch(&second_, args.num_products, args.a.batch_stride);
    describe_batch(&third_, args.num_products, args.c_batch_stride);
  }
  if (args.bias != nullptr) {
    set(&product_, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(&product_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, args.bias);
  }
}

std::string LtMatmul::kind() const {
  const auto order = [](const MatmulOperand& operand) { return operand.is_transposed ? 't' : 'n'; };
  std::string text =
      fmt::format("{}x{}x{} {}{} {}", size_class(args_.m), size_class(args_.n), size_class(args_.k),
                  order(args_.a), order(args_.b), dtype_name(args_.c_dtype));
  if (args_.accumulate == Accumulate::Yes) text += " accumulate";
  if (args_.bias != nullptr) text += " bias";
  if (args_.num_multiprocessors != 0) text += fmt::format(" on{}", args_.num_multiprocessors);
  if (args_.num_products > 1) text += fmt::format(" batch{}", args_.num_products);
  if (alignment_ != kFullAlignment) text += fmt::format(" align{}", alignment_);
  return text;
}

std::vector<cublasLtMatmulAlgo_t> LtMatmul::candidates(cublasLtHandle_t library, std::size_t workspace_bytes,
                                                       int count) const {
  cublasLtMatmulPreferenceOpaque_t preference{};
  check_lt(cublasLtMatmulPreferenceInit(&preference), "describe what algorithms are wanted");
  set(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_bytes});
  set(&preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, kFixedOrder);
  for (const auto which :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(&preference, which, alignment_);
  }
  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<std::size_t>(count));
  int num_found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      library, opaque(product_), opaque(first_), opaque(second_), opaque(third_), opaque(third_), &preference,
      count, found.data(), &num_found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return {};
  check_lt(status, "find algorithms for a product");
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (const cublasLtMatmulHeuristicResult_t& one :
       std::span(found).first(static_cast<std::size_t>(num_found))) {
    if (one.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(one.algo);
  }
  return algorithms;
}

bool LtMatmul::suits(cublasLtHandle_t library, const cublasLtMatmulAlgo_t& algorithm,
                     std::size_t workspace_bytes) const {
  cublasLtMatmulHeuristicResult_t found{};
  const cublasStatus_t status =
      cublasLtMatmulAlgoCheck(library, opaque(product_), opaque(first_), opaque(second_), opaque(third_),
                              opaque(third_), &algorithm, &found);
  return status == CUBLAS_STATUS_SUCCESS && found.state == CUBLAS_STATUS_SUCCESS &&
         found.workspaceSize <= workspace_bytes;
}

bool LtMatmul::run(cublasLtHandle_t library, const cublasLtMatmulAlgo_t& algorithm, void* result,
                   std::span<std::byte> workspace, CUstream_st* queue) const {
  constexpr float kOne = 1;
  const float beta = args_.accumulate == Accumulate::Yes ? 1 : 0;
  const cublasStatus_t status = cublasLtMatmul(
      library, opaque(product_), &kOne, args_.b.data, opaque(first_), args_.a.data, opaque(second_), &beta,
      result, opaque(third_), result, opaque(third_), &algorithm, workspace.data(), workspace.size(), queue);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return false;
  check_lt(status, "multiply matrices");
  return true;
}

}  // namespace plenum::kernels::cuda
