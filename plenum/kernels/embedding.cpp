#include "plenum/kernels/embedding.h"

#include <algorithm>

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/check_row_identities.h"
#include "plenum/kernels/check_scratch.h"
#include "plenum/kernels/cpu/embedding.h"
#include "plenum/kernels/cuda/rows/embedding.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {
namespace {

// An index outside its table would read other memory, so every one is looked at; that costs nothing beside
// the rows of the tables.
void check_ids(std::string_view name, tensor::Device device, tensor::ConstTensorView id_T,
               std::int64_t num_rows, tensor::ConstTensorView table) {
  check_argument(name, id_T, tensor::DType::Int32, {num_rows});
  if (device == tensor::Device::Cuda) return;  // the host does not see the ids
  const auto ids = id_T.span<std::int32_t>();
  if (ids.empty()) return;
  const auto [least, greatest] = std::minmax_element(ids.begin(), ids.end());
  base::check(*least >= 0 && *greatest < table.size(0),
              "{} is outside its table of {} entries: least {}, greatest {}", name, table.size(0), *least,
              *greatest);
}

void check_table(std::string_view name, tensor::ConstTensorView table, tensor::DType dtype,
                 std::int64_t width) {
  base::check(table.shape().num_dims() == 2, "{} must be a matrix: {}", name, to_string(table.shape()));
  check_argument(name, table, dtype, {table.size(0), width});
}

void check_groups(std::string_view name, tensor::Device device, const RowGroups& groups,
                  tensor::ConstTensorView dtable, std::int64_t num_rows, const RowSlice& slice = {}) {
  const std::int64_t num_groups = groups.num_groups();
  if (num_groups == 0) return;
  check_argument(name, groups.entry_G, tensor::DType::Int32, {num_groups});
  check_argument(name, groups.start_G, tensor::DType::Int32, {num_groups + 1});
  check_argument(name, groups.row_R, tensor::DType::Int32, groups.row_R.shape());
  if (device == tensor::Device::Cuda) return;  // the host does not see the groups
  const auto starts = groups.start_G.span<std::int32_t>();
  base::check(starts.front() == 0 && starts.back() == groups.row_R.num_elements(),
              "{} must give the rows of each entry: from {} to {} of {} rows", name, starts.front(),
              starts.back(), groups.row_R.num_elements());
  const auto is_outside = [](std::span<const std::int32_t> values, std::int64_t bound) {
    return std::any_of(values.begin(), values.end(), [&](std::int32_t i) { return i < 0 || i >= bound; });
  };
  const std::int64_t num_entries = slice.whole_rows(dtable.size(0));
  base::check(!is_outside(groups.entry_G.span<std::int32_t>(), num_entries),
              "{} has an entry outside its table of {}", name, num_entries);
  base::check(!is_outside(groups.row_R.span<std::int32_t>(), num_rows), "{} has a row outside {} rows", name,
              num_rows);
}

}  // namespace

void embedding_forward(const tensor::Stream& stream, const EmbeddingForward& args) {
  const tensor::Shape& shape = args.y_TD.shape();
  const tensor::DType dtype = stream.precision().of(tensor::Role::Activation);
  const tensor::DType weight_dtype = stream.precision().of(tensor::Role::Weight);
  base::check(shape.num_dims() == 2 && shape[1] > 0, "y_TD must be rows of a width: {}", to_string(shape));
  if (args.looked_up_TD) {
    check_argument("looked_up_TD", args.looked_up_TD, dtype, shape);
  } else {
    check_table("word_VD", args.word_VD, weight_dtype, shape[1]);
    check_ids("id_T", stream.device(), args.id_T, shape[0], args.word_VD);
  }
  check_table("position_PD", args.position_PD, weight_dtype, shape[1]);
  check_table("segment_GD", args.segment_GD, weight_dtype, shape[1]);
  check_ids("position_T", stream.device(), args.position_T, shape[0], args.position_PD);
  check_ids("segment_T", stream.device(), args.segment_T, shape[0], args.segment_GD);
  check_argument("gamma_D", args.gamma_D, {shape[1]});
  check_argument("beta_D", args.beta_D, {shape[1]});
  check_argument("z_TD", args.z_TD, dtype, shape);
  check_argument("y_TD", args.y_TD, dtype, shape);
  check_argument("mean_T", args.mean_T, {shape[0]});
  check_argument("inverse_deviation_T", args.inverse_deviation_T, {shape[0]});
  check_row_identities(args.dropout, args.rows, shape[0]);
  check_scratch(stream, embedding_scratch_bytes(stream.device(), shape[0], shape[1]));
  dispatch<&cpu::embedding_forward, &cuda::embedding_forward>(stream, args);
}

void embedding_backward(const tensor::Stream& stream, const EmbeddingBackward& args) {
  const tensor::Shape& shape = args.z_TD.shape();
  const tensor::DType dtype = stream.precision().of(tensor::Role::Activation);
  base::check(shape.num_dims() == 2 && shape[1] > 0, "z_TD must be rows of a width: {}", to_string(shape));
  check_argument("dy_TD", args.dy_TD, dtype, shape);
  check_argument("z_TD", args.z_TD, dtype, shape);
  check_argument("mean_T", args.mean_T, {shape[0]});
  check_argument("inverse_deviation_T", args.inverse_deviation_T, {shape[0]});
  check_argument("gamma_D", args.gamma_D, {shape[1]});
  check_argument("dz_TD", args.dz_TD, dtype, shape);
  check_table("dword_VD", args.dword_VD, tensor::DType::Float32, shape[1]);
  check_table("dposition_PD", args.dposition_PD, tensor::DType::Float32, shape[1]);
  check_table("dsegment_GD", args.dsegment_GD, tensor::DType::Float32, shape[1]);
  check_groups("by_word", stream.device(), args.by_word, args.dword_VD, shape[0], args.words);
  check_groups("by_position", stream.device(), args.by_position, args.dposition_PD, shape[0]);
  check_groups("by_segment", stream.device(), args.by_segment, args.dsegment_GD, shape[0]);
  check_argument("dgamma_D", args.dgamma_D, {shape[1]});
  check_argument("dbeta_D", args.dbeta_D, {shape[1]});
  check_row_identities(args.dropout, args.rows, shape[0]);
  check_scratch(stream, embedding_scratch_bytes(stream.device(), shape[0], shape[1]));
  dispatch<&cpu::embedding_backward, &cuda::embedding_backward>(stream, args);
}

}  // namespace plenum::kernels
