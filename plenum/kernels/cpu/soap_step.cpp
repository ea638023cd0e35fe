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

/// What a step works on beside factors and bases; what a part of it does not need is left out.
struct FlatBuffers {
  const double* scalars = nullptr;
  const float* gradient = nullptr;
  float* first_moment = nullptr;
  float* second_moment = nullptr;
  double beta = 0;
  double epsilon = 0;

  double scalar(StepScalar which) const { return scalars[index_of(which)]; }
  bool is_skipped() const { return scalar(StepScalar::IsSkipped) > 0; }
  /// Updates that change weights, with this one: all but the first.
  double num_steps() const { return scalar(StepScalar::NumUpdates) - 1; }
};

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

float shift_of(const float* factor_NN, std::int64_t N) {
  float trace = 0;
  for (std::int64_t i = 0; i < N; ++i) trace += factor_NN[i * N + i];
  return trace > 0 ? kSoapShift * trace / static_cast<float>(N) : 1.0F;
}

/// P (F + s I).
void multiply_basis(const tensor::Stream& stream, std::int64_t N, const float* factor, const float* basis,
                    float* iterated) {
  multiply(stream, {N, N, N, {.data = basis, .stride = N}, {.data = factor, .stride = N}, iterated});
  const float shift = shift_of(factor, N);
  for_elements(stream, N * N, [&](std::int64_t at, auto lanes) {
    const Vec shifted = load_first(iterated + at, lanes) + load_first(basis + at, lanes) * shift;
    store_first(iterated + at, shifted, lanes);
  });
}

void copy(const tensor::Stream& stream, std::int64_t count, const float* from, float* to) {
  for_elements(stream, count,
               [&](std::int64_t i, auto lanes) { store_first(to + i, load_first(from + i, lanes), lanes); });
}

/// One iteration of bases, each by its factor. `room_BNN` is overwritten.
void iterate_bases(const tensor::Stream& stream, std::int64_t count, std::int64_t N, const float* factors_BNN,
                   float* bases_BNN, float* room_BNN) {
  for (std::int64_t i = 0; i < count; ++i)
    multiply_basis(stream, N, factors_BNN + i * N * N, bases_BNN + i * N * N, room_BNN + i * N * N);
  orthonormalise(stream, {.x_BNN = {room_BNN, tensor::Shape{count, N, N}}});
  copy(stream, count * N * N, room_BNN, bases_BNN);
}

/// Some steps of an iteration of one basis.
void iterate_in_steps(const tensor::Stream& stream, const SoapBasis& args) {
  const std::int64_t N = args.basis_NN.size(0);
  auto* const basis = args.basis_NN.data<float>();
  auto* const iterate = args.iterate_NN.data<float>();
  if (args.first_step == 0 && args.end_step > 0) {
    multiply_basis(stream, N, args.factor_NN.data<float>(), basis, args.room.data<float>());
    copy(stream, N * N, args.room.data<float>(), iterate);
  }
  const std::int64_t last = num_soap_basis_steps(N) - 1;
  orthonormalise_steps(stream, {.x_BNN = {iterate, tensor::Shape{1, N, N}}},
                       std::clamp<std::int64_t>(args.first_step, 1, last) - 1,
                       std::clamp<std::int64_t>(args.end_step, 1, last) - 1);
  if (args.first_step <= last && last < args.end_step) copy(stream, N * N, iterate, basis);
}

void update_weight(const tensor::Stream& stream, const FlatMatrices& matrices, float rate, double decay,
                   const float* direction, float* weight) {
  const float kept_decay = matrices.is_decayed ? static_cast<float>(decay) : 0.0F;
  for_elements(stream, matrices.num_elements(), [&](std::int64_t i, auto lanes) {
    const Vec before = load_first(weight + i, lanes);
    store_first(weight + i, before - (load_first(direction + i, lanes) + before * kept_decay) * rate, lanes);
  });
}

/// A step of one group.
class GroupStep {
 public:
  GroupStep(const tensor::Stream& stream, const FlatBuffers& flat, const SoapGroup& group)
      : stream_(stream),
        flat_(flat),
        group_(group),
        R_(group.matrices.rows),
        C_(group.matrices.columns),
        size_(R_ * C_),
        kept_(static_cast<float>(flat.beta)),
        rest_(static_cast<float>(1 - flat.beta)) {}

  void begin_bases() const {
    for (const SoapSide& side : {group_.rows, group_.columns}) {
      if (!side) continue;
      std::fill_n(side.bases_BNN, group_.matrices.count * side.N * side.N, 0.0F);
      for (std::int64_t i = 0; i < group_.matrices.count; ++i) {
        for (std::int64_t j = 0; j < side.N; ++j) side.basis(i)[j * side.N + j] = 1;
      }
    }
  }

  void update_factors() const {
    for (std::int64_t i = 0; i < group_.matrices.count; ++i) {
      take_gradient(i);
      update_factors(i);
    }
  }

  void iterate() const {
    for (const SoapSide& side : {group_.rows, group_.columns}) {
      if (!side) continue;
      iterate_bases(stream_, group_.matrices.count, side.N, side.factors_BNN, side.bases_BNN,
                    group_.squares_BNN);
    }
  }

  void update_first_moment(std::int64_t index) const {
    take_gradient(index);
    average(flat_.first_moment + group_.matrices.begin_of(index), group_.gradient_RC, size_);
  }

  /// Updates both moments of a matrix and returns the direction U of its update, which lies in the room.
  const float* direction(std::int64_t index) const {
    update_first_moment(index);
    const float* const gradient = rotate(index, group_.gradient_RC, group_.first_RC, group_.second_RC, false);
    const float* const moment = rotate(index, flat_.first_moment + group_.matrices.begin_of(index),
                                       group_.first_RC, group_.third_RC, false);
    make_direction(index, gradient, moment);
    return rotate(index, group_.second_RC, group_.first_RC, group_.third_RC, true);
  }

 private:
  void take_gradient(std::int64_t index) const {
    const float* const gradient = flat_.gradient + group_.matrices.begin_of(index);
    const auto scale = static_cast<float>(flat_.scalar(StepScalar::GradientScale));
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

  /// Leaves U in second_RC.
  void make_direction(std::int64_t index, const float* gradient, const float* moment) const {
    const double correction = 1 - std::pow(flat_.beta, flat_.num_steps());
    const auto first_factor = static_cast<float>(1 / correction);
    const auto root_factor = static_cast<float>(1 / std::sqrt(correction));
    const auto epsilon = static_cast<float>(flat_.epsilon);
    float* const second = flat_.second_moment + group_.matrices.begin_of(index);
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

  const tensor::Stream& stream_;
  const FlatBuffers& flat_;
  const SoapGroup& group_;
  std::int64_t R_, C_, size_;
  float kept_, rest_;
};

/// Calls visit(group) for groups of matrices with their part of the state.
template <typename Args, typename Visit>
void for_groups(const Args& args, Visit visit) {
  std::int64_t state_begin = 0;
  for (const FlatMatrices& matrices : args.groups) {
    const SoapGroup group(tensor::Device::Cpu, args, matrices, state_begin);
    state_begin = group.place.end();
    visit(group);
  }
}

template <typename Args>
FlatBuffers with_moments(const Args& args) {
  return {.scalars = args.scalars_C.template data<double>(),
          .gradient = args.gradient_N.template data<float>(),
          .first_moment = args.first_moment_N.template data<float>(),
          .second_moment = args.second_moment_N.template data<float>(),
          .beta = args.beta,
          .epsilon = args.epsilon};
}

/// Follows the gradients in the factors, and iterates bases where that is asked for, unless the step is
/// skipped.
template <typename Args>
void follow(const GroupStep& step, const FlatBuffers& flat, const Args& args) {
  if (args.is_first) step.begin_bases();
  if (flat.is_skipped()) return;
  step.update_factors();
  for (int iteration = 0; iteration < args.num_iterations; ++iteration) step.iterate();
}

}  // namespace

void soap_step(const tensor::Stream& stream, const SoapStep& args) {
  const FlatBuffers flat = with_moments(args);
  const auto rate = static_cast<float>(flat.scalar(StepScalar::LearningRate));
  for_groups(args, [&](const SoapGroup& group) {
    const GroupStep step(stream, flat, group);
    follow(step, flat, args);
    if (flat.is_skipped() || flat.num_steps() <= 0) return;
    for (std::int64_t i = 0; i < group.matrices.count; ++i) {
      update_weight(stream, group.matrices, rate, args.decay, step.direction(i),
                    args.weight_N.data<float>() + group.matrices.begin_of(i));
    }
  });
}

void soap_factors(const tensor::Stream& stream, const SoapFactors& args) {
  const FlatBuffers flat = {
      .scalars = args.scalars_C.data<double>(), .gradient = args.gradient_N.data<float>(), .beta = args.beta};
  for_groups(args, [&](const SoapGroup& group) { follow(GroupStep(stream, flat, group), flat, args); });
}

void soap_basis(const tensor::Stream& stream, const SoapBasis& args) {
  if (args.scalars_C && FlatBuffers{.scalars = args.scalars_C.data<double>()}.is_skipped()) return;
  if (args.iterate_NN) return iterate_in_steps(stream, args);
  iterate_bases(stream, 1, args.basis_NN.size(0), args.factor_NN.data<float>(), args.basis_NN.data<float>(),
                args.room.data<float>());
}

void soap_directions(const tensor::Stream& stream, const SoapDirections& args) {
  const FlatBuffers flat = with_moments(args);
  if (flat.is_skipped() || flat.num_steps() <= 0) return;
  for_groups(args, [&](const SoapGroup& group) {
    const GroupStep step(stream, flat, group);
    for (std::int64_t i = 0; i < group.matrices.count; ++i) {
      std::copy_n(step.direction(i), group.matrices.num_elements(),
                  args.gradient_N.data<float>() + group.matrices.begin_of(i));
    }
  });
  for (const FlatMatrices& matrices : args.others) {
    const SoapGroup group(tensor::Device::Cpu, args, matrices, 0);
    const GroupStep step(stream, flat, group);
    for (std::int64_t i = 0; i < matrices.count; ++i) step.update_first_moment(i);
  }
}

void soap_weights(const tensor::Stream& stream, const SoapWeights& args) {
  const FlatBuffers flat = {.scalars = args.scalars_C.data<double>()};
  if (flat.is_skipped() || flat.num_steps() <= 0) return;
  const auto rate = static_cast<float>(flat.scalar(StepScalar::LearningRate));
  for (const FlatMatrices& matrices : args.groups) {
    for (std::int64_t i = 0; i < matrices.count; ++i) {
      update_weight(stream, matrices, rate, args.decay, args.direction_N.data<float>() + matrices.begin_of(i),
                    args.weight_N.data<float>() + matrices.begin_of(i));
    }
  }
}

}  // namespace plenum::kernels::cpu
