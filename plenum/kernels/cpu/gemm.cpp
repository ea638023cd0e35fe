#include "plenum/kernels/cpu/gemm.h"

#include <algorithm>
#include <array>

#include "plenum/base/check.h"
#include "plenum/kernels/cpu/for_vectors.h"
#include "plenum/kernels/cpu/gemm_pack.h"
#include "plenum/kernels/cpu/gemm_panels.h"
#include "plenum/kernels/cpu/gemm_tile.h"
#include "plenum/kernels/cpu/vector.h"

namespace plenum::kernels::cpu {
namespace {

// A block of B, kDepth x kBlockColumns, is packed once and stays in the second-level cache while all rows of
// A pass by it, a strip of kTileRows at a time, which stays in the first.
constexpr std::int64_t kDepth = workspace::kGemmDepth;
/// Rows of a transposed A that are packed together.
constexpr std::int64_t kHeight = 16 * kTileRows;
static_assert(kHeight <= workspace::kGemmRows);

/// A strip of at most kTileRows rows of A as the tiles read it.
struct Strip {
  std::array<const float*, kTileRows> rows;
  bool is_packed = false;
};

/// Computes a tile that is as many registers wide as its columns take.
template <std::int64_t kRegisters>
void compute_tile_of(const Strip& strip, const float* b, std::int64_t depth, const TileTarget& target) {
  if constexpr (kRegisters > 1) {
    if (target.columns <= (kRegisters - 1) * kRegisterFloats) {
      return compute_tile_of<kRegisters - 1>(strip, b, depth, target);
    }
  }
  if (strip.is_packed) return compute_tile<kRegisters, kTileRows>(strip.rows, b, depth, target);
  compute_tile<kRegisters, 1>(strip.rows, b, depth, target);
}

/// Applies the epilogue to a tile.
void finish_tile(const Gemm& args, std::int64_t row_begin, std::int64_t rows, std::int64_t column_begin,
                 std::int64_t columns) {
  const GemmEpilogue& epilogue = args.epilogue;
  for (std::int64_t row = row_begin; row < row_begin + rows; ++row) {
    const std::int64_t offset = row * args.c_stride;
    for_vectors(column_begin, column_begin + columns, [&](std::int64_t column, auto lanes) {
      Vec value = load_first(args.c + offset + column, lanes);
      if (epilogue.bias != nullptr) value += load_first(epilogue.bias + column, lanes);
      if (epilogue.gelu_input != nullptr) {
        value *= gelu_derivative(load_first(epilogue.gelu_input + offset + column, lanes));
      }
      store_first(args.c + offset + column, value, lanes);
      if (epilogue.gelu != nullptr) store_first(epilogue.gelu + offset + column, gelu(value), lanes);
    });
  }
}

/// One product on one thread.
class BlockedGemm {
 public:
  BlockedGemm(const Gemm& args, std::span<std::byte> scratch)
      : args_(args),
        packed_b_(reinterpret_cast<float*>(scratch.data())),
        packed_a_(packed_b_ + kDepth * kBlockColumns),
        has_epilogue_(args.epilogue.bias != nullptr || args.epilogue.gelu != nullptr ||
                      args.epilogue.gelu_input != nullptr) {
    base::check(scratch.size() >= gemm_scratch_bytes(),
                "a matrix product needs {} bytes of scratch: {} given", gemm_scratch_bytes(), scratch.size());
    base::check(reinterpret_cast<std::uintptr_t>(scratch.data()) % kRegisterBytes == 0,
                "the scratch of a matrix product is not aligned to {} bytes", kRegisterBytes);
  }

  void run() {
    const Pieces widths(args_.n, kBlockColumns, kTileColumns);
    const Pieces depths(args_.k, kDepth, 1);
    const std::int64_t num_depths = std::max<std::int64_t>(1, depths.count());  // an empty sum is one too
    for (std::int64_t w = 0; w < widths.count(); ++w) {
      for (std::int64_t d = 0; d < num_depths; ++d) {
        block_ = {.k_begin = depths.begin(d),
                  .depth = depths.length(d),
                  .column_begin = widths.begin(w),
                  .columns = widths.length(w)};
        is_first_ = d == 0;
        is_last_ = d + 1 == num_depths;
        pack_b(args_.b, block_, packed_b_);
        pass_rows();
      }
    }
  }

 private:
  void pass_rows() {
    if (args_.a.is_transposed) {
      for (std::int64_t row = 0; row < args_.m; row += kHeight)
        pass_packed_rows(row, std::min(kHeight, args_.m - row));
      return;
    }
    for (std::int64_t row = 0; row < args_.m; row += kTileRows) {
      const std::int64_t rows = std::min(kTileRows, args_.m - row);
      Strip strip = {.rows = {}, .is_packed = false};
      for (std::int64_t i = 0; i < kTileRows; ++i) {
        strip.rows[i] = args_.a.data + (row + std::min(i, rows - 1)) * args_.a.stride + block_.k_begin;
      }
      pass_strip(strip, row, rows);
    }
  }

  void pass_packed_rows(std::int64_t begin, std::int64_t height) {
    pack_transposed_a(args_.a,
                      {.row_begin = begin, .rows = height, .k_begin = block_.k_begin, .depth = block_.depth},
                      packed_a_);
    for (std::int64_t done = 0; done < height; done += kTileRows) {
      Strip strip = {.rows = {}, .is_packed = true};
      for (std::int64_t i = 0; i < kTileRows; ++i) strip.rows[i] = packed_a_ + done * block_.depth + i;
      pass_strip(strip, begin + done, std::min(kTileRows, height - done));
    }
  }

  void pass_strip(const Strip& strip, std::int64_t row, std::int64_t rows) {
    for (std::int64_t done = 0; done < block_.columns; done += kTileColumns) {
      const std::int64_t column = block_.column_begin + done;
      const TileTarget target = {.c = args_.c + row * args_.c_stride + column,
                                 .stride = args_.c_stride,
                                 .rows = rows,
                                 .columns = std::min(kTileColumns, block_.columns - done),
                                 .alpha = args_.alpha,
                                 .is_added = !is_first_ || args_.accumulate == Accumulate::Yes};
      compute_tile_of<kTileRegisters>(strip, packed_b_ + done * block_.depth, block_.depth, target);
      if (is_last_ && has_epilogue_) finish_tile(args_, row, rows, column, target.columns);
    }
  }

  const Gemm& args_;
  float* packed_b_;
  float* packed_a_;
  bool has_epilogue_;
  BlockOfB block_;
  bool is_first_ = true;
  bool is_last_ = true;
};

/// The product restricted to a panel of C.
Gemm panel_of(const Gemm& args, std::int64_t row, std::int64_t rows, std::int64_t column,
              std::int64_t columns) {
  Gemm panel = args;
  panel.m = rows;
  panel.n = columns;
  panel.a.data += row * (args.a.is_transposed ? 1 : args.a.stride);
  panel.b.data += column * (args.b.is_transposed ? args.b.stride : 1);
  const std::int64_t offset = row * args.c_stride + column;
  panel.c += offset;
  if (panel.epilogue.bias != nullptr) panel.epilogue.bias += column;
  if (panel.epilogue.gelu_input != nullptr) panel.epilogue.gelu_input += offset;
  if (panel.epilogue.gelu != nullptr) panel.epilogue.gelu += offset;
  return panel;
}

}  // namespace

void gemm(const Gemm& args, std::span<std::byte> scratch) {
  if (args.m == 0 || args.n == 0) return;
  BlockedGemm(args, scratch).run();
}

void parallel_gemm(const tensor::Stream& stream, const Gemm& args) {
  const Panels panels = panels_of(args.m, args.n, stream.pool().num_threads());
  const auto count = static_cast<std::size_t>(panels.count());
  stream.pool().run(count, [&](std::size_t task, std::size_t thread) {
    const std::int64_t r = static_cast<std::int64_t>(task) % panels.rows.count();
    const std::int64_t c = static_cast<std::int64_t>(task) / panels.rows.count();
    gemm(panel_of(args, panels.rows.begin(r), panels.rows.length(r), panels.columns.begin(c),
                  panels.columns.length(c)),
         stream.scratch(thread));
  });
}

}  // namespace plenum::kernels::cpu
