#include <algorithm>

#include "plenum/kernels/cuda/device/bfloat16_data.h"
#include "plenum/kernels/cuda/device/row_block.cuh"
#include "plenum/kernels/cuda/rows/table_gradient.h"
#include "plenum/tensor/cuda_check.h"

namespace plenum::kernels::cuda {
namespace {

constexpr int kRowsInFlight = 4;
constexpr int kSumsInFlight = 8;

struct Table {
  const std::int32_t* entry_G;
  const std::int32_t* start_G;
  const std::int32_t* row_R;
  float* dtable;
  int num_groups;
  int first_entry;  ///< that is row 0 of dtable
  int num_entries;  ///< rows of dtable

  /// The row of dtable that is a group's entry; kNowhere where it has none.
  __device__ std::int32_t row_of(int group) const;
};

struct Arguments {
  Table tables[kNumTables];
  const __nv_bfloat16* dz_TD;
  float* sums;            ///< of each table's pieces the head, then the tail: rows of D
  OpenTableGroup* opens;  ///< of each table's pieces
  int pieces_of_table;
  int width;

  __device__ std::int64_t piece() const { return std::int64_t{blockIdx.y} * pieces_of_table + blockIdx.x; }
  __device__ float* head(std::int64_t piece) const { return sums + piece * 2 * width; }
  __device__ float* tail(std::int64_t piece) const { return head(piece) + width; }
};

/// The last group that begins at or before a place of the list. Groups without rows lie behind all others.
__device__ int group_at(const Table& table, int place) {
  int low = 0;
  int high = table.num_groups;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (table.start_G[middle] <= place ? low : high) = middle;
  }
  return low;
}

/// What becomes of the sum behind a place of the list: nothing yet, what the head or the tail of the piece
/// holds, or (if it is not negative) what is added to an entry.
using Destination = std::int32_t;
constexpr Destination kGoesOn = -1;
constexpr Destination kHead = -2;
constexpr Destination kTail = -3;
constexpr Destination kNowhere = -4;  ///< the entry lies elsewhere: what was summed is dropped
static_assert(kNowhere != OpenTableGroup::kNone);

__device__ std::int32_t Table::row_of(int group) const {
  const std::int32_t row = entry_G[group] - first_entry;
  return row >= 0 && row < num_entries ? row : kNowhere;
}

/// The places of a piece.
struct Places {
  std::int32_t row[kTablePieceRows];
  Destination destination[kTablePieceRows];
};

// Each thread looks up the groups of its own places: all of them at the same time.
__device__ void find_places(const Table& table, int begin, int end, Places& places, OpenTableGroup& open) {
  for (int i = static_cast<int>(threadIdx.x); begin + i < end; i += static_cast<int>(blockDim.x)) {
    const int behind = begin + i + 1;
    const int group = group_at(table, begin + i);
    const int group_end = table.start_G[group + 1];
    const bool began_before = table.start_G[group] < begin;
    const bool is_tail = behind == end && behind < group_end && !began_before;
    places.row[i] = table.row_R[begin + i];
    if (behind < group_end && behind < end) {
      places.destination[i] = kGoesOn;
    } else if (began_before) {
      places.destination[i] = kHead;
    } else {
      places.destination[i] = is_tail ? kTail : table.row_of(group);
    }
    if (behind == end) {
      const std::int32_t row = is_tail ? table.row_of(group) : kNowhere;
      open = {row == kNowhere ? OpenTableGroup::kNone : row, (group_end - 1) / kTablePieceRows};
    }
  }
}

template <bool kIsAligned, int kMaxThreads>
__global__ void __launch_bounds__(kMaxThreads) sum_pieces(const Arguments args) {
  __shared__ Places places;
  const Table& table = args.tables[blockIdx.y];
  const int width = args.width;
  const int column = static_cast<int>(threadIdx.x) * kVectorWidth;
  const std::int64_t piece = args.piece();
  const int begin = static_cast<int>(blockIdx.x) * kTablePieceRows;
  const int end = min(begin + kTablePieceRows, table.num_groups > 0 ? table.start_G[table.num_groups] : 0);
  if (begin >= end) {
    if (threadIdx.x == 0) args.opens[piece] = {OpenTableGroup::kNone, 0};
    return;
  }
  find_places(table, begin, end, places, args.opens[piece]);
  __syncthreads();

  FloatVector sum{};
  for (int batch = 0; batch < end - begin; batch += kRowsInFlight) {
    // The rows, and what lies at the entries that their sums are added to, all in flight at once.
    PackedVector rows[kRowsInFlight] = {};
    FloatVector before[kRowsInFlight] = {};
#pragma unroll
    for (int i = 0; i < kRowsInFlight; ++i) {
      if (begin + batch + i >= end) continue;
      const std::int64_t row = places.row[batch + i];
      const std::int64_t entry = places.destination[batch + i];
      rows[i] = load_packed<kIsAligned>(args.dz_TD + row * width, column, width);
      if (entry >= 0) before[i] = load_vector<kIsAligned>(table.dtable + entry * width, column, width);
    }
#pragma unroll
    for (int i = 0; i < kRowsInFlight; ++i) {
      if (begin + batch + i >= end) continue;
      sum = sum_of(sum, unpack(rows[i]));
      const Destination destination = places.destination[batch + i];
      if (destination == kGoesOn) continue;
      if (destination == kNowhere) {
        sum = {};
        continue;
      }
      float* const to = destination == kHead   ? args.head(piece)
                        : destination == kTail ? args.tail(piece)
                                               : table.dtable + std::int64_t{destination} * width;
      store_vector<kIsAligned>(to, column, width, sum_of(before[i], sum));
      sum = {};
    }
  }
}

// Adds what the groups that go over a cut left in each piece, in the order of the pieces.
template <bool kIsAligned, int kMaxThreads>
__global__ void __launch_bounds__(kMaxThreads) add_open_groups(const Arguments args) {
  const std::int64_t piece = args.piece();
  const OpenTableGroup open = args.opens[piece];
  if (open.entry == OpenTableGroup::kNone) return;
  const int width = args.width;
  const int column = static_cast<int>(threadIdx.x) * kVectorWidth;
  FloatVector sum = load_vector<kIsAligned>(args.tail(piece), column, width);
  const std::int64_t last = piece + open.last_piece - blockIdx.x;
  for (std::int64_t first = piece + 1; first <= last; first += kSumsInFlight) {
    FloatVector heads[kSumsInFlight] = {};
#pragma unroll
    for (int i = 0; i < kSumsInFlight; ++i) {
      if (first + i <= last) heads[i] = load_vector<kIsAligned>(args.head(first + i), column, width);
    }
#pragma unroll
    for (int i = 0; i < kSumsInFlight; ++i) sum = sum_of(sum, heads[i]);
  }
  float* const gradient = args.tables[blockIdx.y].dtable + std::int64_t{open.entry} * width;
  store_vector<kIsAligned>(gradient, column, width,
                           sum_of(load_vector<kIsAligned>(gradient, column, width), sum));
}

}  // namespace

void add_table_gradients(const tensor::Stream& stream, tensor::ConstTensorView dz_TD,
                         const std::array<TableGradient, kNumTables>& tables) {
  const std::int64_t num_rows = dz_TD.size(0);
  const std::int64_t width = dz_TD.size(1);
  if (num_rows == 0) return;
  const auto pieces_of_table = static_cast<int>(num_table_pieces(num_rows));
  auto* const sums = reinterpret_cast<float*>(stream.scratch().data());
  Arguments arguments = {
      .tables = {},
      .dz_TD = bfloat16_data(dz_TD),
      .sums = sums,
      .opens = reinterpret_cast<OpenTableGroup*>(sums + kNumTables * pieces_of_table * 2 * width),
      .pieces_of_table = pieces_of_table,
      .width = static_cast<int>(width)};
  for (std::size_t t = 0; t < kNumTables; ++t) {
    const auto& [groups, dtable, first_entry] = tables[t];
    if (groups.num_groups() == 0) continue;
    base::check(groups.row_R.num_elements() <= num_rows, "more rows in groups than there are: {} of {}",
                groups.row_R.num_elements(), num_rows);
    arguments.tables[t] = {.entry_G = groups.entry_G.data<std::int32_t>(),
                           .start_G = groups.start_G.data<std::int32_t>(),
                           .row_R = groups.row_R.data<std::int32_t>(),
                           .dtable = dtable.data<float>(),
                           .num_groups = static_cast<int>(groups.num_groups()),
                           .first_entry = static_cast<int>(first_entry),
                           .num_entries = static_cast<int>(dtable.size(0))};
  }
  const bool is_aligned =
      are_rows_aligned(width, dz_TD, tables[0].dtable, tables[1].dtable, tables[2].dtable);
  const int num_threads = threads_of_row(width);
  const dim3 grid(static_cast<unsigned>(pieces_of_table), kNumTables);
  const cudaStream_t queue = stream.cuda().handle();
  for_row_variant(is_aligned, num_threads, [&](auto aligned, auto max_threads) {
    sum_pieces<aligned(), max_threads()><<<grid, num_threads, 0, queue>>>(arguments);
    add_open_groups<aligned(), max_threads()><<<grid, num_threads, 0, queue>>>(arguments);
  });
  tensor::check_cuda(cudaGetLastError(), "start the gradients of the embedding's tables");
}

}  // namespace plenum::kernels::cuda
