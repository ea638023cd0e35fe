#include "plenum/train/mask_filling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plenum/base/check.h"
#include "plenum/batch/capacity.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/data/text/utf8.h"
#include "plenum/trace/printable.h"

namespace plenum::train {
namespace {

using data::TokenId;

/// A micro-batch of one sequence: [CLS] text [SEP].
batch::MicroBatch encode(std::string_view text, const data::Tokenizer& tokenizer, data::Encoder& encoder,
                         std::int64_t max_length) {
  base::require(data::is_utf8(text), "a text is not UTF-8; convert it, for instance by {}: '{}'",
                data::conversion_command(text), trace::excerpt(text));
  const data::SpecialTokens& special = tokenizer.vocabulary().special();
  std::vector<TokenId> ids = {special.cls};
  encoder.encode(text, ids);
  ids.push_back(special.sep);
  const std::size_t length = ids.size();
  base::require(length <= static_cast<std::size_t>(max_length),
                "a text has {} tokens and the model takes {} at most: '{}'", length, max_length,
                trace::excerpt(text));
  batch::MicroBatch batch;
  batch.num_rows = static_cast<std::int64_t>(length);
  batch.ids.assign(ids.begin(), ids.end());
  batch.segments.assign(length, 0);
  batch.positions.resize(length);
  std::iota(batch.positions.begin(), batch.positions.end(), 0);
  batch.row_samples.assign(length, 0);
  batch.starts = {0};
  batch.lengths = {static_cast<std::int32_t>(length)};
  batch.samples = {0};
  batch::ObjectiveRows& masks = batch.objectives.emplace_back();
  for (std::size_t row = 0; row < length; ++row) {
    if (ids[row] == special.mask) masks.rows.push_back(static_cast<std::int32_t>(row));
  }
  base::require(!masks.rows.empty(), "a text has no [MASK] to fill: '{}'", trace::excerpt(text));
  masks.labels.assign(masks.rows.size(), 0);
  return batch;
}

batch::Capacity capacity_of(const std::vector<batch::MicroBatch>& texts) {
  batch::Capacity capacity{.sequences = 1};
  for (const batch::MicroBatch& text : texts) {
    capacity.rows = std::max(capacity.rows, text.num_rows);
    std::int64_t& masked = capacity.labels.front();
    masked = std::max(masked, text.work().labels.front());
  }
  capacity.max_length = capacity.rows;
  return capacity;
}

data::Tokenizer tokenizer_for_masks(const ModelSource& source) {
  require_masked_tokens(source);
  return load_tokenizer(source);
}

bool is_special(TokenId id, const data::SpecialTokens& special) {
  return id == special.pad || id == special.unknown || id == special.cls || id == special.sep ||
         id == special.mask;
}

}  // namespace

MaskFilling::MaskFilling(const ModelSource& source, const std::vector<std::string>& texts,
                         std::size_t num_threads, tensor::Device device, const Note& note)
    : tokenizer_(tokenizer_for_masks(source)) {
  data::Encoder encoder(tokenizer_);
  for (const std::string& text : texts) {
    texts_.push_back(encode(text, tokenizer_, encoder, source.config.max_positions));
  }
  model_ = load_model(source, capacity_of(texts_), num_threads, device, note);
}

std::vector<std::vector<Guess>> MaskFilling::guesses(std::size_t text_index, std::size_t top) {
  const batch::MicroBatch& text = texts_[text_index];
  const std::vector<float> logits_MV = model_->logits(text);
  const std::size_t num_masks = text.objectives.front().rows.size();
  const std::size_t width = logits_MV.size() / num_masks;
  std::vector<std::vector<Guess>> guesses;
  for (std::size_t i = 0; i < num_masks; ++i) {
    guesses.push_back(best(std::span(logits_MV).subspan(i * width, width), top));
  }
  return guesses;
}

std::vector<Guess> MaskFilling::best(std::span<const float> logits_V, std::size_t top) const {
  const double greatest = *std::max_element(logits_V.begin(), logits_V.end());
  double total = 0;
  for (const float logit : logits_V) total += std::exp(logit - greatest);
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < static_cast<TokenId>(tokenizer_.vocabulary().size()); ++id) {
    if (!is_special(id, tokenizer_.vocabulary().special())) ids.push_back(id);
  }
  const std::size_t count = std::min(top, ids.size());
  const auto logit_of = [&](TokenId id) { return logits_V[static_cast<std::size_t>(id)]; };
  std::partial_sort(
      ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count), ids.end(),
      [&](TokenId a, TokenId b) { return logit_of(a) != logit_of(b) ? logit_of(a) > logit_of(b) : a < b; });
  std::vector<Guess> guesses;
  for (std::size_t i = 0; i < count; ++i) {
    guesses.push_back({tokenizer_.vocabulary().token(ids[i]), std::exp(logit_of(ids[i]) - greatest) / total});
  }
  return guesses;
}

}  // namespace plenum::train
