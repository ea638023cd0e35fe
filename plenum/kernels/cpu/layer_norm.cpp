#include "plenum/kernels/cpu/layer_norm.h"

#include <algorithm>

#include "plenum/kernels/cpu/layer_norm_gradient.h"
#include "plenum/kernels/cpu/layer_norm_row.h"
#include "plenum/kernels/cpu/row_dropout.h"
#include "plenum/kernels/cpu/row_tasks.h"

namespace plenum::kernels::cpu {
namespace {

// z = residual + x. z may be either.
void add_row(const float* x, const float* residual, float* z, std::int64_t width) {
  for_vectors(0, width, [&](std::int64_t i, auto n) {
    store_first(z + i, load_first(residual + i, n) + load_first(x + i, n), n);
  });
}

template <typename Void>
auto data_or_null(const tensor::BasicTensorView<Void>& view) {
  return view ? view.template data<float>() : nullptr;
}

}  // namespace

void layer_norm_forward(const tensor::Stream& stream, const LayerNormForward& args) {
  const std::int64_t width = args.x_TD.size(1);
  const RowDropout dropout(args.dropout, args.rows, width);
  const float* const x_TD = args.x_TD.data<float>();
  const float* const residual_TD = data_or_null(args.residual_TD);
  const float* const gamma = args.gamma_D.data<float>();
  const float* const beta = args.beta_D.data<float>();
  float* const y_TD = args.y_TD.data<float>();
  float* const z_TD = args.z_TD ? args.z_TD.data<float>() : y_TD;
  float* const mean_T = data_or_null(args.mean_T);
  float* const inverse_deviation_T = data_or_null(args.inverse_deviation_T);

  for_each_row(stream, args.x_TD.size(0), [&](std::int64_t row, std::size_t thread) {
    const float* const x = x_TD + row * width;
    float* const z = z_TD + row * width;
    std::uint8_t* const buffer = RowDropout::buffer(stream, thread);
    if (dropout.is_on() && residual_TD != nullptr) {
      dropout.apply_and_add(row, x, residual_TD + row * width, z, buffer);
    } else if (dropout.is_on()) {
      dropout.apply(row, x, z, buffer);
    } else if (residual_TD != nullptr) {
      add_row(x, residual_TD + row * width, z, width);
    } else if (x != z) {
      std::copy(x, x + width, z);
    }
    const RowMoments moments = row_moments(z, width, args.epsilon);
    normalise_row(z, moments, gamma, beta, y_TD + row * width, width);
    if (mean_T != nullptr) mean_T[row] = moments.mean;
    if (inverse_deviation_T != nullptr) inverse_deviation_T[row] = moments.inverse_deviation;
  });
}

void layer_norm_backward(const tensor::Stream& stream, const LayerNormBackward& args) {
  const std::int64_t width = args.z_TD.size(1);
  const RowDropout dropout(args.dropout, args.rows, width);
  const float* const dy_TD = args.dy_TD.data<float>();
  const float* const z_TD = args.z_TD.data<float>();
  const float* const mean_T = args.mean_T.data<float>();
  const float* const inverse_deviation_T = args.inverse_deviation_T.data<float>();
  const float* const gamma = args.gamma_D.data<float>();
  float* const dz_TD = args.dz_TD.data<float>();
  float* const dx_TD = data_or_null(args.dx_TD);
  float* const db = data_or_null(args.db_D);

  const LayerNormGradient gradient(stream, args.z_TD.size(0), width);
  gradient.for_each_row([&](std::int64_t row, const LayerNormGradient::Sums& sums, std::size_t thread) {
    const std::int64_t begin = row * width;
    layer_norm_row_backward(dy_TD + begin, z_TD + begin, {mean_T[row], inverse_deviation_T[row]}, gamma,
                            dz_TD + begin, sums.dgamma, sums.dbeta, width);
    const float* dx = dz_TD + begin;
    if (dropout.is_on()) {
      dropout.apply(row, dz_TD + begin, dx_TD + begin, RowDropout::buffer(stream, thread));
      dx = dx_TD + begin;
    }
    if (db != nullptr) add_row(dx, sums.db, sums.db, width);
  });
  gradient.add_to(args.dgamma_D.data<float>(), args.dbeta_D.data<float>(), db);
}

}  // namespace plenum::kernels::cpu
