#include "plenum/train/sentence_vectors.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <numeric>
#include <vector>

#include "plenum/base/check.h"
#include "plenum/data/corpus/ordered_pipeline.h"
#include "plenum/data/text/text_parser.h"
#include "plenum/describe/bert.h"
#include "plenum/io/numpy_file.h"
#include "plenum/memory/forward_memory.h"
#include "plenum/tensor/cuda_device.h"
#include "plenum/train/gpu_micro_batch.h"

namespace plenum::train {
namespace {

using data::TokenId;

// Reader (a thread) -> blocks of text -> tokenizing (threads) -> window -> micro-batches -> vectors -> file.
// A window is some texts that follow each other; they are sorted by length, computed, and written in order.

constexpr std::size_t kBlockBytes = std::size_t{1} << 18;
constexpr std::int64_t kWindowMicroBatches = 32;
constexpr std::size_t kWindowTexts = 1 << 15;  // whose vectors wait in memory
constexpr std::int64_t kCpuMicroBatchTokens = 4096;
constexpr std::size_t kMostTokenizers = 16;
constexpr std::int64_t kLeastLength = 3;  // [CLS], a token, [SEP]

/// The texts of a block: what follows the last end is the beginning of one that goes on in the next.
struct TokenizedTexts {
  std::vector<TokenId> ids;
  std::vector<std::size_t> ends;
  std::uint64_t file_bytes_done = 0;
  std::uint64_t num_replaced = 0;
};

class TextTokenizer final : public data::TextSink {
 public:
  TextTokenizer(const std::vector<data::SourceFile>& files, const data::TextOptions& options,
                const data::Tokenizer& tokenizer)
      : parser_(files, options), encoder_(tokenizer) {}

  void tokenize(const data::TextBlock& block, TokenizedTexts& texts) {
    texts_ = &texts;
    texts.ids.clear();
    texts.ends.clear();
    texts.file_bytes_done = block.file_bytes_done;
    texts.num_replaced = parser_.parse(block, *this).places;
  }

  void sentence(std::string_view text, data::SentencePart) override { encoder_.encode(text, texts_->ids); }
  void end_document() override { texts_->ends.push_back(texts_->ids.size()); }

 private:
  data::TextParser parser_;
  data::Encoder encoder_;
  TokenizedTexts* texts_ = nullptr;
};

/// Texts in order, as the model reads them: [CLS] … [SEP].
class Window {
 public:
  Window(const data::SpecialTokens& special, std::int64_t max_length, VectorReport& report)
      : special_(special), max_length_(static_cast<std::size_t>(max_length)), report_(report) {
    clear();
  }

  std::size_t size() const { return begins_.size() - 1; }
  std::int64_t num_tokens() const { return static_cast<std::int64_t>(begins_.back()); }
  std::span<const TokenId> text(std::size_t index) const {
    return std::span(ids_).subspan(begins_[index], begins_[index + 1] - begins_[index]);
  }

  /// Adds to the text that is open.
  void append(std::span<const TokenId> ids) {
    if (ids.empty()) return;
    if (open_length() == 0) ids_.push_back(special_.cls);
    const std::size_t room = max_length_ - 1 - open_length();
    is_cut_ = is_cut_ || ids.size() > room;
    const auto taken = ids.first(std::min(room, ids.size()));
    ids_.insert(ids_.end(), taken.begin(), taken.end());
  }
  void end_text() {
    if (open_length() == 0) {
      ids_.push_back(special_.cls);
      ++report_.num_empty;
    }
    ids_.push_back(special_.sep);
    begins_.push_back(ids_.size());
    report_.num_truncated += is_cut_;
    is_cut_ = false;
  }
  bool has_open_text() const { return open_length() > 0; }

  /// Forgets all texts but the one that is open.
  void clear() {
    if (!begins_.empty())
      ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(begins_.back()));
    begins_ = {0};
  }

  /// From the longest to the shortest, the first of equals first.
  std::vector<std::size_t> by_length() const {
    std::vector<std::size_t> order(size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return text(i).size(); });
    return order;
  }

 private:
  std::size_t open_length() const { return ids_.size() - begins_.back(); }

  const data::SpecialTokens& special_;
  std::size_t max_length_;
  VectorReport& report_;
  std::vector<TokenId> ids_;
  std::vector<std::size_t> begins_;  ///< of each text, and of the one that is open
  bool is_cut_ = false;              ///< the open one
};

/// Texts of a window end to end, and which rows make up their vectors.
batch::MicroBatch lay_texts_out(const Window& window, std::span<const std::size_t> texts, Pooling pooling) {
  batch::MicroBatch batch;
  batch::ObjectiveRows& read = batch.objectives.emplace_back();
  for (const std::size_t index : texts) {
    const std::span<const TokenId> ids = window.text(index);
    const auto start = static_cast<std::int32_t>(batch.ids.size());
    const auto length = static_cast<std::int32_t>(ids.size());
    const auto sequence = static_cast<std::int32_t>(batch.starts.size());
    batch.ids.insert(batch.ids.end(), ids.begin(), ids.end());
    for (std::int32_t position = 0; position < length; ++position) {
      batch.positions.push_back(position);
      if (position > 0 && pooling == Pooling::Cls) continue;
      read.rows.push_back(start + position);
      read.labels.push_back(sequence);
    }
    batch.starts.push_back(start);
    batch.lengths.push_back(length);
    batch.samples.push_back(sequence);
  }
  batch.num_rows = static_cast<std::int64_t>(batch.ids.size());
  batch.segments.assign(batch.ids.size(), 0);
  batch.row_samples.assign(batch.ids.size(), 0);  // of dropout, which there is none of
  return batch;
}

batch::Capacity capacity_for(std::int64_t rows, const VectorOptions& options, std::int64_t max_length) {
  batch::Capacity capacity{.rows = rows, .sequences = rows / 2, .max_length = max_length};
  capacity.labels.front() = options.pooling == Pooling::Mean ? capacity.rows : capacity.sequences;
  return capacity;
}

batch::Capacity settle_capacity(const ModelSource& source, const VectorOptions& options,
                                std::int64_t max_length, tensor::Device device) {
  std::int64_t rows = options.micro_batch_tokens.value_or(kCpuMicroBatchTokens);
  base::require(!options.micro_batch_tokens || rows >= max_length,
                "micro-batch-tokens must be at least max-length: {} is below {}", rows, max_length);
  if (!options.micro_batch_tokens && device == tensor::Device::Cuda) {
    const describe::ParameterTable table(describe::describe_bert_encoder(source.config));
    rows = gpu_micro_batch_tokens(tensor::cuda_device_info(), max_length, [&](std::int64_t tokens) {
      tensor::MemoryPlan sizes(device);
      memory::plan_encoder_memory(table, capacity_for(tokens, options, max_length), 1, sizes);
      return sizes.layout().num_bytes();
    });
  }
  return capacity_for(std::max(rows, max_length), options, max_length);
}

/// Computes windows, and writes their vectors.
class VectorWriter {
 public:
  VectorWriter(model::SentenceEncoder& encoder, const batch::Capacity& capacity, const VectorOptions& options,
               std::size_t width, io::NumpyFile& file)
      : encoder_(encoder), capacity_(capacity), options_(options), width_(width), file_(file) {}

  void write(const Window& window) {
    vectors_.resize(window.size() * width_);
    const std::vector<std::size_t> order = window.by_length();
    for (std::span<const std::size_t> rest = order; !rest.empty();) {
      const std::span<const std::size_t> texts = rest.first(num_fitting(window, rest));
      rest = rest.subspan(texts.size());
      if (under_way_.size() == model::SentenceEncoder::most_under_way()) finish_one();
      under_way_.push_back({texts, lay_texts_out(window, texts, options_.pooling)});
      encoder_.begin(under_way_.back().batch,
                     options_.has_unit_length ? kernels::UnitLength::Yes : kernels::UnitLength::No);
    }
    while (!under_way_.empty()) finish_one();
    file_.append(vectors_);
  }

 private:
  struct UnderWay {
    std::span<const std::size_t> texts;
    batch::MicroBatch batch;
  };

  std::size_t num_fitting(const Window& window, std::span<const std::size_t> texts) const {
    const std::size_t most = std::min(texts.size(), static_cast<std::size_t>(capacity_.sequences));
    std::int64_t rows = 0;
    for (std::size_t count = 0; count < most; ++count) {
      rows += static_cast<std::int64_t>(window.text(texts[count]).size());
      if (rows > capacity_.rows) return count;
    }
    return most;
  }

  void finish_one() {
    const std::span<const float> vectors_SD = encoder_.finish();
    const std::span<const std::size_t> texts = under_way_.front().texts;
    for (std::size_t s = 0; s < texts.size(); ++s) {
      std::ranges::copy(vectors_SD.subspan(s * width_, width_),
                        vectors_.begin() + static_cast<std::ptrdiff_t>(texts[s] * width_));
    }
    under_way_.pop_front();
  }

  model::SentenceEncoder& encoder_;
  const batch::Capacity& capacity_;
  const VectorOptions& options_;
  std::size_t width_;
  io::NumpyFile& file_;
  std::deque<UnderWay> under_way_;  // whose elements stay where they are
  std::vector<float> vectors_;      ///< of a window, in its order
};

/// Reads all texts, and hands windows of them on.
template <typename Consume>
void for_each_window(const std::vector<data::SourceFile>& files, const data::TextOptions& text,
                     const data::Tokenizer& tokenizer, std::size_t num_tokenizers, std::int64_t window_tokens,
                     Window& window, VectorReport& report, base::Progress& progress, Consume consume) {
  data::TextReader reader(files, text);
  data::OrderedPipeline<data::TextBlock, TokenizedTexts> pipeline(num_tokenizers);
  const auto take = [&](const TokenizedTexts& texts) {
    const std::span<const TokenId> ids(texts.ids);
    std::size_t begin = 0;
    for (const std::size_t end : texts.ends) {
      window.append(ids.subspan(begin, end - begin));
      window.end_text();
      begin = end;
      if (window.size() < kWindowTexts && window.num_tokens() < window_tokens) continue;
      consume();
      window.clear();
    }
    window.append(ids.subspan(begin));
    report.num_replaced += texts.num_replaced;
    progress.advance_to(texts.file_bytes_done);
  };
  pipeline.run([&](data::TextBlock& block) { return reader.next(block); },
               [&] {
                 return [worker = std::make_shared<TextTokenizer>(files, text, tokenizer)](
                            const data::TextBlock& block, TokenizedTexts& texts) {
                   worker->tokenize(block, texts);
                 };
               },
               take);
  base::check(!window.has_open_text(), "the last text does not end");
  if (window.size() > 0) consume();
}

}  // namespace

void VectorOptions::add_to(base::OptionTable& table) {
  table.add(
      "input", input, "FILE",
      "Texts: a line each of .txt, or the text of each record of .jsonl, .csv or .tsv; also .gz or .zst");
  table.add("output", output, "FILE",
            "The NumPy file to write: float32, a row for each text, in their order");
  table.add("text-field", text_field, "NAME", "Which field of JSON objects, or column, has the text");
  table.add_choice("invalid-utf8", invalid,
                   {{"refuse", data::InvalidTextRule::Refuse}, {"replace", data::InvalidTextRule::Replace}},
                   "Stop at bytes that are not UTF-8, or replace and count them");
  table.add_choice("pooling", pooling, {{"mean", Pooling::Mean}, {"cls", Pooling::Cls}},
                   "The mean of a text's tokens, or the row of [CLS]");
  table.add("normalize", has_unit_length, "Divide every vector by its length: dot products are cosines");
  table.add("max-length", max_length, kLeastLength, std::int64_t{1} << 30,
            "Truncate texts to so many tokens; the model's maximum if not given");
  table.add("micro-batch-tokens", micro_batch_tokens, kLeastLength, std::int64_t{1} << 30,
            "Tokens of a micro-batch; what fills the device if not given");
}

VectorReport write_sentence_vectors(const ModelSource& source, const VectorOptions& options,
                                    std::size_t num_threads, tensor::Device device,
                                    base::Progress& progress) {
  const auto begin = std::chrono::steady_clock::now();
  const data::SourceFiles sources = data::list_source_files({options.input});
  for (const std::string& remark : sources.remarks()) progress.warn(remark);
  const data::TextOptions text{.documents = data::DocumentRule::Line,
                               .invalid = options.invalid,
                               .text_field = options.text_field,
                               .block_bytes = kBlockBytes};
  const data::Tokenizer tokenizer = load_tokenizer(source);
  const std::int64_t max_length = options.max_length.value_or(source.config.max_positions);
  base::require(max_length <= source.config.max_positions,
                "max-length must be at most what the model takes: {} is above {}", max_length,
                source.config.max_positions);
  io::NumpyFile file(options.output, static_cast<std::size_t>(source.config.width));
  const batch::Capacity capacity = settle_capacity(source, options, max_length, device);
  const auto encoder = load_encoder(source, capacity, num_threads, device);
  VectorReport report{.max_length = max_length, .width = source.config.width};
  Window window(tokenizer.vocabulary().special(), max_length, report);
  VectorWriter writer(*encoder, capacity, options, static_cast<std::size_t>(report.width), file);
  progress.begin("embedding", "bytes", sources.total_bytes());
  for_each_window(sources.files, text, tokenizer, std::min(num_threads, kMostTokenizers),
                  kWindowMicroBatches * capacity.rows, window, report, progress, [&] {
                    report.num_tokens += static_cast<std::uint64_t>(window.num_tokens());
                    writer.write(window);
                  });
  progress.end();
  data::require_unchanged(sources.files);
  base::require(file.num_rows() > 0, "{} has no text", options.input);
  file.commit();
  report.num_texts = file.num_rows();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

}  // namespace plenum::train
