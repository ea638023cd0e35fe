#include "plenum/kernels/cpu/soap_step.h"

#include <algorithm>
#include <cmath>

#include "plenum/kernels/cpu/flat_parts.h"
#include "plenum/kernels/cpu/for_vectors.h"
#include "plenum/kernels/cpu/gemm.h"
#include "plenum/kernels/cpu/orthonormalise.h"
#include "plenum/kernels/cpu/vector.h"
#include "plenum/kernels/soap_matrix.h"

// R rows and C columns of a matrix, B matrices of a group.

namespace plenum::kernels::cpu {
namespace {

double scalar(const SoapStep& args, StepScalar which) {
  return args.scalars_C.data<double>()[index_of(which)];
}

/// Calls body(i, lanes) for vectors that cover so many elements, on the stream's threads.
template <typename Body>
void for_elements(const tensor::Stream& stream, std::int64_t count, Body body) {
  const FlatParts parts(count);
  stream.pool().run(parts.num_parts, [&](std::size_t part, std::size_t) {
    const std::int64_t begin = static_cast<std::int64_t>(part) * parts.size;
    for_vectors(begin, std::min(begin + parts.size, count), body);
  });
}

/// C [m, n] = A B.
struct Product {
  std::int64_t m, n, k;
  GemmOperand a, b;
  float* c;
};
void multiply(const tensor::Stream& stream, const Product& args) {
  parallel_gemm(
      stream,
      {.m = args.m, .n = args.n, .k = args.k, .a = args.a, .b = args.b, .c = args.c, .c_stride = args.n});
}

/// A step of one group.
class GroupStep {
 public:
  GroupStep(const tensor::Stream& stream, const SoapStep& args, const SoapGroup& group)
      : stream_(stream),
        args_(args),
        group_(group),
        R_(group.matrices.rows),
        C_(group.matrices.columns),
        size_(R_ * C_),
        kept_(static_cast<float>(args.beta)),
        rest_(static_cast<float>(1 - args.beta)),
        num_steps_(scalar(args, StepScalar::NumUpdates) - 1) {}

  void begin_bases() const {
    for (const SoapSide& side : {group_.rows, group_.columns}) {
      if (!side) continue;
      std::fill_n(side.bases_BNN, group_.matrices.count * side.N * side.N, 0.0F);
      for (std::int64_t i = 0; i < group_.matrices.count; ++i) {
        for (std::int64_t j = 0; j < side.N; ++j) side.basis(i)[j * side.N + j] = 1;
      }
    }
  }

  void run() const {
    for (std::int64_t i = 0; i < group_.matrices.count; ++i) {
      take_gradient(i);
      update_factors(i);
      if (num_steps_ > 0) update_first_moment(i);
    }
    for (int iteration = 0; iteration < args_.num_iterations; ++iteration) {
      iterate(group_.rows);
      iterate(group_.columns);
    }
    for (std::int64_t i = 0; i < group_.matrices.count && num_steps_ > 0; ++i) update(i);
  }

 private:
  float* at(const tensor::TensorView& flat, std::int64_t index) const {
    return flat.data<float>() + group_.matrices.begin_of(index);
  }

  void take_gradient(std::int64_t index) const {
    const float* const gradient = args_.gradient_N.data<float>() + group_.matrices.begin_of(index);
    const auto scale = static_cast<float>(scalar(args_, StepScalar::GradientScale));
    for_elements(stream_, size_, [&](std::int64_t i, auto lanes) {
      store_first(group_.gradient_RC + i, load_first(gradient + i, lanes) * scale, lanes);
    });
  }

  void average(float* kept, const float* added, std::int64_t count) const {
    for_elements(stream_, count, [&](std::int64_t i, auto lanes) {
      store_first(kept + i, load_first(kept + i, lanes) * kept_ + load_first(added + i, lanes) * rest_,
                  lanes);
    });
  }

  void update_factors(std::int64_t index) const {
    const GemmOperand gradient = {.data = group_.gradient_RC, .stride = C_};
    const GemmOperand transposed = {.data = group_.gradient_RC, .stride = C_, .is_transposed = true};
    if (group_.rows) {
      multiply(stream_, {R_, R_, C_, gradient, transposed, group_.squares_BNN});
      average(group_.rows.factor(index), group_.squares_BNN, R_ * R_);
    }
    if (group_.columns) {
      multiply(stream_, {C_, C_, R_, transposed, gradient, group_.squares_BNN});
      average(group_.columns.factor(index), group_.squares_BNN, C_ * C_);
    }
  }

  void update_first_moment(std::int64_t index) const {
    average(at(args_.first_moment_N, index), group_.gradient_RC, size_);
  }

  void iterate(const SoapSide& side) const {
    if (!side) return;
    const std::int64_t count = group_.matrices.count;
    const std::int64_t N = side.N;
    for (std::int64_t i = 0; i < count; ++i) {
      float* const iterated = group_.squares_BNN + i * N * N;
      multiply(
          stream_,
          {N, N, N, {.data = side.basis(i), .stride = N}, {.data = side.factor(i), .stride = N}, iterated});
      const float shift = shift_of(side.factor(i), N);
      for_elements(stream_, N * N, [&](std::int64_t at, auto lanes) {
        const Vec shifted = load_first(iterated + at, lanes) + load_first(side.basis(i) + at, lanes) * shift;
        store_first(iterated + at, shifted, lanes);
      });
    }
    orthonormalise(stream_, {.x_BNN = {group_.squares_BNN, tensor::Shape{count, N, N}}});
    for_elements(stream_, count * N * N, [&](std::int64_t i, auto lanes) {
      store_first(side.bases_BNN + i, load_first(group_.squares_BNN + i, lanes), lanes);
    });
  }

  static float shift_of(const float* factor_NN, std::int64_t N) {
    float trace = 0;
    for (std::int64_t i = 0; i < N; ++i) trace += factor_NN[i * N + i];
    return trace > 0 ? kSoapShift * trace / static_cast<float>(N) : 1.0F;
  }

  /// x or, in `to`, P x Q^T; with is_back P^T x Q. `between` is overwritten.
  const float* rotate(std::int64_t index, const float* x, float* between, float* to, bool is_back) const {
    if (group_.rows) {
      float* const result = group_.columns ? between : to;
      multiply(stream_, {R_,
                         C_,
                         R_,
                         {.data = group_.rows.basis(index), .stride = R_, .is_transposed = is_back},
                         {.data = x, .stride = C_},
                         result});
      x = result;
    }
    if (group_.columns) {
      multiply(stream_, {R_,
                         C_,
                         C_,
                         {.data = x, .stride = C_},
                         {.data = group_.columns.basis(index), .stride = C_, .is_transposed = !is_back},
                         to});
      x = to;
    }
    return x;
  }

  void update(std::int64_t index) const {
    take_gradient(index);
    const float* const gradient = rotate(index, group_.gradient_RC, group_.first_RC, group_.second_RC, false);
    const float* const moment =
        rotate(index, at(args_.first_moment_N, index), group_.first_RC, group_.third_RC, false);
    make_direction(index, gradient, moment);
    update_weight(index, rotate(index, group_.second_RC, group_.first_RC, group_.third_RC, true));
  }

  /// Leaves U in second_RC.
  void make_direction(std::int64_t index, const float* gradient, const float* moment) const {
    const double correction = 1 - std::pow(args_.beta, num_steps_);
    const auto first_factor = static_cast<float>(1 / correction);
    const auto root_factor = static_cast<float>(1 / std::sqrt(correction));
    const auto epsilon = static_cast<float>(args_.epsilon);
    float* const second = at(args_.second_moment_N, index);
    for_elements(stream_, size_, [&](std::int64_t i, auto lanes) {
      const Vec g = load_first(gradient + i, lanes);
      const Vec v = load_first(second + i, lanes) * kept_ + g * g * rest_;
      store_first(second + i, v, lanes);
      Vec root;
      for (std::size_t lane = 0; lane < kLanes; ++lane) root[lane] = std::sqrt(v[lane]);
      const Vec direction = load_first(moment + i, lanes) * first_factor / (root * root_factor + epsilon);
      store_first(group_.second_RC + i, direction, lanes);
    });
  }

  void update_weight(std::int64_t index, const float* direction) const {
    const auto rate = static_cast<float>(scalar(args_, StepScalar::LearningRate));
    const float decay = group_.matrices.is_decayed ? static_cast<float>(args_.decay) : 0.0F;
    float* const weight = at(args_.weight_N, index);
    for_elements(stream_, size_, [&](std::int64_t i, auto lanes) {
      const Vec before = load_first(weight + i, lanes);
      store_first(weight + i, before - (load_first(direction + i, lanes) + before * decay) * rate, lanes);
    });
  }

  const tensor::Stream& stream_;
  const SoapStep& args_;
  const SoapGroup& group_;
  std::int64_t R_, C_, size_;
  float kept_, rest_;
  double num_steps_;  ///< that change weights, with this one
};

}  // namespace

void soap_step(const tensor::Stream& stream, const SoapStep& args) {
  const bool is_skipped = scalar(args, StepScalar::IsSkipped) > 0;
  std::int64_t state_begin = 0;
  for (const FlatMatrices& matrices : args.groups) {
    const SoapGroup group(tensor::Device::Cpu, args, matrices, state_begin);
    state_begin = group.place.end();
    const GroupStep step(stream, args, group);
    if (args.is_first) step.begin_bases();
    if (!is_skipped) step.run();
  }
}

}  // namespace plenum::kernels::cpu
