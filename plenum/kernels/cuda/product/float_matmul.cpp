#include "plenum/kernels/cuda/product/float_matmul.h"

#include <array>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <cublasLt.h>

#include "plenum/kernels/check_scratch.h"
#include "plenum/kernels/cuda/product/lt_matmul.h"

namespace plenum::kernels::cuda {
namespace {

/// What the choice of an algorithm depends on.
using Kind = std::array<std::int64_t, 14>;

cublasComputeType_t compute_type(FloatPrecision precision) {
  return precision == FloatPrecision::Full ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_FAST_TF32;
}

/// The library and its choices, of one stream.
struct FloatLibrary {
  FloatLibrary() { check_lt(cublasLtCreate(&handle), "start"); }
  ~FloatLibrary() { cublasLtDestroy(handle); }
  FloatLibrary(const FloatLibrary&) = delete;
  FloatLibrary& operator=(const FloatLibrary&) = delete;

  cublasLtHandle_t handle = nullptr;
  std::map<Kind, cublasLtMatmulAlgo_t> algorithms = {};
};

/// A row-major matrix, which the library sees as its transpose, or several at equal distances.
void describe(cublasLtMatrixLayout_t layout, std::int64_t rows, std::int64_t columns,
              const FloatOperand& operand, std::int64_t num_products) {
  if (operand.is_transposed) std::swap(rows, columns);
  check_lt(cublasLtMatrixLayoutInit(layout, CUDA_R_32F, static_cast<std::uint64_t>(columns),
                                    static_cast<std::uint64_t>(rows), operand.stride),
           "describe a matrix");
  if (num_products == 1) return;
  const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, auto value) {
    check_lt(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof(value)),
             "describe matrices side by side");
  };
  set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(num_products));
  set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, operand.batch_stride);
}

/// Of all matrices that lie so.
std::int64_t alignment_of(const FloatOperand& operand) {
  constexpr std::uint64_t kFull = 16;
  const std::uint64_t distance = static_cast<std::uint64_t>(operand.batch_stride) * sizeof(float);
  const std::uint64_t address = reinterpret_cast<std::uint64_t>(operand.data) | distance | kFull;
  return static_cast<std::int64_t>(address & (~address + 1));
}

/// The product as cuBLASLt describes it. Its matrices are column-major: the transposes of ours, so the
/// factors change places.
class FloatProduct {
 public:
  FloatProduct(const tensor::Stream& stream, const FloatMatmul& args)
      : args_(args), c_{.data = args.c, .stride = args.c_stride, .batch_stride = args.c_batch_stride} {
    check_lt(cublasLtMatmulDescInit(&product_, compute_type(args.precision), CUDA_R_32F),
             "describe a product");
    set_operation(CUBLASLT_MATMUL_DESC_TRANSA, args.b);
    set_operation(CUBLASLT_MATMUL_DESC_TRANSB, args.a);
    if (stream.cuda().partition()) {
      const std::int32_t count = stream.cuda().num_multiprocessors();
      check_lt(cublasLtMatmulDescSetAttribute(&product_, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &count,
                                              sizeof(count)),
               "describe a product");
    }
    describe(&first_, args.k, args.n, args.b, args.num_products);
    describe(&second_, args.m, args.k, args.a, args.num_products);
    describe(&third_, args.m, args.n, c_, args.num_products);
  }

  Kind kind() const {
    return {args_.m,
            args_.n,
            args_.k,
            args_.a.stride,
            args_.b.stride,
            args_.c_stride,
            (args_.a.is_transposed ? 1 : 0) + (args_.b.is_transposed ? 2 : 0) +
                (args_.accumulate == Accumulate::Yes ? 4 : 0) +
                (args_.precision == FloatPrecision::Reduced ? 8 : 0),
            alignment_of(args_.a),
            alignment_of(args_.b),
            alignment_of(c_),
            args_.num_products,
            args_.a.batch_stride,
            args_.b.batch_stride,
            args_.c_batch_stride};
  }

  /// Algorithms of a fixed order of summation, in the order in which the library expects them to be fast.
  std::vector<cublasLtMatmulAlgo_t> candidates(cublasLtHandle_t library) {
    cublasLtMatmulPreferenceOpaque_t preference{};
    check_lt(cublasLtMatmulPreferenceInit(&preference), "describe what algorithms are wanted");
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      check_lt(cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof(value)),
               "describe what algorithms are wanted");
    };
    constexpr std::uint32_t kFixedOrder =
        CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace::kMatmulWorkspaceBytes});
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, kFixedOrder);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(alignment_of(args_.b)));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(alignment_of(args_.a)));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(alignment_of(c_)));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(alignment_of(c_)));
    constexpr int kMost = 8;
    std::array<cublasLtMatmulHeuristicResult_t, kMost> found{};
    int num_found = 0;
    check_lt(cublasLtMatmulAlgoGetHeuristic(library, &product_, &first_, &second_, &third_, &third_,
                                            &preference, kMost, found.data(), &num_found),
             "find an algorithm for a product of fp32");
    std::vector<cublasLtMatmulAlgo_t> algorithms;
    for (const cublasLtMatmulHeuristicResult_t& one :
         std::span(found).first(static_cast<std::size_t>(num_found))) {
      if (one.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(one.algo);
    }
    return algorithms;
  }

  cublasStatus_t run(const tensor::Stream& stream, cublasLtHandle_t library,
                     const cublasLtMatmulAlgo_t& algorithm) {
    const float beta = args_.accumulate == Accumulate::Yes ? 1 : 0;
    return cublasLtMatmul(library, &product_, &args_.alpha, args_.b.data, &first_, args_.a.data, &second_,
                          &beta, args_.c, &third_, args_.c, &third_, &algorithm, stream.scratch().data(),
                          workspace::kMatmulWorkspaceBytes, stream.cuda().handle());
  }

 private:
  void set_operation(cublasLtMatmulDescAttributes_t attribute, const FloatOperand& operand) {
    const cublasOperation_t operation = operand.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    check_lt(cublasLtMatmulDescSetAttribute(&product_, attribute, &operation, sizeof(operation)),
             "describe a product");
  }

  FloatMatmul args_;
  FloatOperand c_;
  cublasLtMatmulDescOpaque_t product_{};
  cublasLtMatrixLayoutOpaque_t first_{};   ///< ours: B
  cublasLtMatrixLayoutOpaque_t second_{};  ///< ours: A
  cublasLtMatrixLayoutOpaque_t third_{};   ///< ours: C
};

}  // namespace

void float_matmul(const tensor::Stream& stream, const FloatMatmul& args) {
  check_scratch(stream, workspace::kMatmulWorkspaceBytes);
  auto& library = stream.cuda().state<FloatLibrary>();
  FloatProduct product(stream, args);
  const Kind kind = product.kind();
  if (const auto found = library.algorithms.find(kind); found != library.algorithms.end()) {
    check_lt(product.run(stream, library.handle, found->second), "multiply matrices of fp32");
    return;
  }
  for (const cublasLtMatmulAlgo_t& algorithm : product.candidates(library.handle)) {
    // Some are proposed for a part of a GPU that start on a whole one alone: then nothing has been done.
    if (product.run(stream, library.handle, algorithm) != CUBLAS_STATUS_SUCCESS) {
      static_cast<void>(cudaGetLastError());
      continue;
    }
    library.algorithms.emplace(kind, algorithm);
    return;
  }
  tensor::check_cuda_before("multiply matrices of fp32");
  base::check(false, "cuBLASLt has no algorithm for a product of fp32: {}x{}x{}", args.m, args.n, args.k);
}

}  // namespace plenum::kernels::cuda
