#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plenum/describe/objective.h"

namespace plenum::describe {

// A model as data, by the names that its tensors have in Hugging Face files. Parameter table, names, FLOPs,
// kept activations, scratch and factors follow from it; nothing else lists a model's tensors. An architecture
// is a function that makes one: describe_bert().

/// A rank's place among those that hold a model together, each a slice of its tensors: tensor parallelism.
struct TensorParallel {
  std::size_t index = 0;
  std::size_t size = 1;

  bool is_divided() const { return size > 1; }
  friend bool operator==(const TensorParallel&, const TensorParallel&) = default;
};

/// What such a rank holds of a tensor: so many entries of the divided dimension as the shape says, from
/// `begin` on.
struct Slice {
  std::int64_t begin = 0;
  std::int64_t whole = 0;  ///< entries over all ranks

  friend bool operator==(const Slice&, const Slice&) = default;
};

/// y = x W^T + b.
struct LinearMap {
  std::string weight;  ///< name; of a tied map that of the table that it shares
  std::string bias;    ///< name; empty: it has none
  std::int64_t in_width = 0;
  std::int64_t out_width = 0;
  /// So many matrices of equal height that one tensor holds, one below the other, as queries, keys and values
  /// may. Curvature sees each of them alone.
  std::int64_t num_parts = 1;
  /// The dimension of the weight that tensor parallelism divides; none: replicated. The bias is divided where
  /// the output is (dimension 0).
  std::optional<std::size_t> split_dim = std::nullopt;
  std::optional<Slice> slice = std::nullopt;  ///< of that dimension; none: all of it
  bool is_tied = false;  ///< its weight is the word table: a parameter, but none of its own
  bool is_decayed = true;
  double deviation = 0.02;  ///< of the normal numbers that its weight begins with

  bool has_bias() const { return !bias.empty(); }
  std::int64_t num_weights() const { return in_width * out_width; }
};

/// Layer norm.
struct Norm {
  std::string weight;
  std::string bias;  ///< empty: it has none
  std::int64_t width = 0;

  bool has_bias() const { return !bias.empty(); }
};

/// A table of rows that tokens look up.
struct Table {
  std::string weight;
  std::int64_t num_rows = 0;
  std::int64_t width = 0;
  std::optional<std::size_t> split_dim = std::nullopt;
  std::optional<Slice> slice = std::nullopt;            ///< of that dimension; none: all of it
  std::optional<std::int64_t> zero_row = std::nullopt;  ///< of the whole table: begins as zeros, as padding's
  bool is_decayed = true;
  double deviation = 0.02;

  /// Over all ranks.
  std::int64_t whole_rows() const { return slice && split_dim == std::size_t{0} ? slice->whole : num_rows; }
};

/// The sum of a token's rows of the tables, normalised.
struct Embedding {
  Table words;
  std::optional<Table> positions = std::nullopt;
  std::optional<Table> segments = std::nullopt;
  std::optional<Norm> norm = std::nullopt;

  /// Those there are, in the order above.
  std::vector<const Table*> tables() const;
};

/// Where a sublayer's norm stands: x + f(norm(x)), or norm(x + f(x)).
enum class NormPosition : std::uint8_t { Pre, Post };

struct Attention {
  std::int64_t num_heads = 0;
  std::int64_t first_head = 0;  ///< of the model that is head 0 here, where ranks divide the heads
  std::int64_t head_width = 0;
  /// A query reads the keys at most so far away, to both sides; none: all of its sequence.
  std::optional<std::int64_t> window = std::nullopt;
  std::vector<LinearMap> projections;  ///< to queries, keys and values, one map or several: they lie together
  LinearMap output;
  std::optional<Norm> norm = std::nullopt;

  std::int64_t width() const { return num_heads * head_width; }
  /// Of queries, keys and values together.
  std::int64_t projected_width() const;
};

enum class MlpKind : std::uint8_t {
  Gelu,   ///< W2 gelu(W1 x)
  Geglu,  ///< W2 (gelu(u) * g), where W1 x is u above g
};

struct Mlp {
  MlpKind kind = MlpKind::Gelu;
  LinearMap in;
  LinearMap out;
  std::optional<Norm> norm = std::nullopt;
};

/// Attention, then the MLP, each with a residual around it.
struct Layer {
  NormPosition norm_position = NormPosition::Post;
  Attention attention;
  Mlp mlp;

  /// In the order of forward.
  std::vector<const LinearMap*> maps() const;
};

enum class HeadActivation : std::uint8_t { Gelu, Tanh };

/// From the rows that an objective reads to its logits: output(dropout(norm(activation(transform(x))))).
struct Head {
  Objective objective;
  std::optional<LinearMap> transform = std::nullopt;  ///< none: nor is there an activation or a norm
  HeadActivation activation = HeadActivation::Gelu;
  std::optional<Norm> norm = std::nullopt;
  double dropout = 0;  ///< of what the output map reads, in training
  LinearMap output;

  /// In the order of forward.
  std::vector<const LinearMap*> maps() const;
};

/// How tensors may also be called in a file.
struct FileNames {
  /// What stands before the names of all that is not of a head, and files of the model without heads leave
  /// out: there names begin with one of these.
  std::string prefix = {};
  std::vector<std::string> bare_beginnings = {};
  /// Endings that older files have, and what they are today.
  std::vector<std::pair<std::string, std::string>> old_endings = {};
  /// Names of tensors that are copies of another: either may stand in a file, or both.
  std::vector<std::pair<std::string, std::string>> copies = {};
  /// Endings of what is no parameter.
  std::vector<std::string> buffer_endings = {};
  /// Beginnings of heads for other purposes, which a file may have and the model does without.
  std::vector<std::string> spare_beginnings = {};
};

struct ModelDescription {
  std::int64_t width = 0;
  Embedding embedding;
  std::vector<Layer> layers;
  std::optional<Norm> final_norm = std::nullopt;  ///< behind the last layer
  std::vector<Head> heads;                        ///< one for each objective
  double norm_epsilon = 1e-12;
  double hidden_dropout = 0;
  double attention_dropout = 0;
  FileNames file_names = {};
  TensorParallel tensor_parallel = {};  ///< of the rank whose slices these are

  std::int64_t vocabulary() const { return embedding.words.whole_rows(); }
  /// By the order of heads, which all counts and lists by objective follow.
  std::vector<Objective> objectives() const;
  /// How many lists of rows of the last layer's output are read, all of them `objectives` of a micro-batch:
  /// one by each head. Without heads there is one, of rows that are wanted themselves.
  std::size_t num_row_lists() const { return heads.empty() ? 1 : heads.size(); }
};

/// The matrices of a layer whose gradients have Kronecker factors, in the order of forward: one for each part
/// of its maps. A has in_width rows, B out_width.
struct FactorShape {
  std::int64_t in_width = 0;
  std::int64_t out_width = 0;

  friend bool operator==(const FactorShape&, const FactorShape&) = default;
};
std::vector<FactorShape> factor_shapes(const Layer& layer);

/// Pairs of a query and a key that attention of such a window computes in a sequence of this length.
std::int64_t attended_pairs(std::int64_t length, std::optional<std::int64_t> window);

}  // namespace plenum::describe
