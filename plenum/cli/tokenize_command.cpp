#include <algorithm>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include <unistd.h>

#include "plenum/base/check.h"
#include "plenum/base/machine.h"
#include "plenum/cli/command.h"
#include "plenum/cli/line_stream.h"
#include "plenum/data/text/utf8.h"
#include "plenum/data/tokenizer/tokenizer.h"
#include "plenum/trace/printable.h"

namespace plenum::cli {
namespace {

/// Each token as it is printed, with a space behind it.
class PrintedTokens {
 public:
  PrintedTokens(const data::Vocabulary& vocabulary, bool as_pieces) {
    for (std::size_t id = 0; id < vocabulary.size(); ++id) {
      begins_.push_back(text_.size());
      text_ += as_pieces ? vocabulary.tokens()[id] : std::to_string(id);
      text_ += ' ';
      longest_ = std::max(longest_, text_.size() - begins_.back());
    }
    begins_.push_back(text_.size());
    text_.append(kCopied, ' ');
  }

  /// Appends one line.
  void append_line(std::span<const data::TokenId> ids, std::string& output) const {
    const std::size_t begin = output.size();
    output.resize(begin + ids.size() * longest_ + kCopied);
    char* at = output.data() + begin;
    for (const data::TokenId id : ids) {
      const auto index = static_cast<std::size_t>(id);
      const std::size_t size = begins_[index + 1] - begins_[index];
      // A copy of fixed size is two instructions; what it writes too much is overwritten by the next.
      if (size <= kCopied) {
        std::memcpy(at, text_.data() + begins_[index], kCopied);
      } else {
        std::memcpy(at, text_.data() + begins_[index], size);
      }
      at += size;
    }
    if (!ids.empty()) --at;
    *at++ = '\n';
    output.resize(static_cast<std::size_t>(at - output.data()));
  }

 private:
  static constexpr std::size_t kCopied = 16;

  std::string text_;  ///< the tokens end to end, and room to copy too much
  std::vector<std::size_t> begins_;
  std::size_t longest_ = 0;
};

/// Encodes lines; one per thread.
class LineEncoder {
 public:
  LineEncoder(const data::Tokenizer& tokenizer, data::AddedTokens added_tokens, const PrintedTokens& printed)
      : encoder_(tokenizer, added_tokens), printed_(&printed) {}

  void encode(std::string_view lines, std::string& output) {
    while (!lines.empty()) {
      const std::size_t end = std::min(lines.find('\n'), lines.size());
      const std::string_view line = lines.substr(0, end);
      base::require(data::is_utf8(line), "a line is not UTF-8; convert the text, for instance by {}: '{}'",
                    data::conversion_command(line), trace::excerpt(line));
      ids_.clear();
      encoder_.encode(line, ids_);
      printed_->append_line(ids_, output);
      lines.remove_prefix(std::min(end + 1, lines.size()));
    }
  }

 private:
  data::Encoder encoder_;
  const PrintedTokens* printed_;
  std::vector<data::TokenId> ids_;
};

class TokenizeCommand final : public Command {
 public:
  std::string name() const override { return "tokenize"; }
  std::string summary() const override {
    return "Turn lines of standard input into the token ids of Hugging Face";
  }

  std::vector<base::OptionTable> tables() override {
    base::OptionTable table("tokenize");
    table.add("vocab", vocab_, "FILE",
              "Use the vocabulary in this vocab.txt (see --cased) or tokenizer.json");
    table.add("tokenizer", tokenizer_, "DIR", "Use the tokenizer of this Hugging Face directory or dataset");
    table.add("cased", cased_, "Keep case and accents (with --vocab)");
    table.add("tokens", tokens_, "Print tokens instead of ids");
    table.add("plain-text", plain_text_, "Treat [SEP] and other special tokens in the text as plain text");
    table.add("threads", threads_, 1, 1024, "Number of threads (default: all cores)");
    return {std::move(table)};
  }

  int run() override {
    base::require(vocab_.empty() != tokenizer_.empty(), "give either --vocab FILE or --tokenizer DIR");
    base::require(!cased_ || tokenizer_.empty(), "--cased is for --vocab; {} states its own rules",
                  tokenizer_);
    const data::NormalizerRules rules{.strip_accents = std::nullopt, .lowercase = !cased_};
    const data::Tokenizer tokenizer = data::Tokenizer::load(vocab_.empty() ? tokenizer_ : vocab_, rules);
    const PrintedTokens printed(tokenizer.vocabulary(), tokens_);
    const auto added = plain_text_ ? data::AddedTokens::PlainText : data::AddedTokens::Match;

    std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves is noticed by write()
    transform_lines(STDIN_FILENO, STDOUT_FILENO, static_cast<int>(threads_.value_or(base::usable_cores())),
                    [&]() -> LineTransform {
                      return [encoder = std::make_shared<LineEncoder>(tokenizer, added, printed)](
                                 std::string_view lines, std::string& output) {
                        encoder->encode(lines, output);
                      };
                    });
    return 0;
  }

 private:
  std::string vocab_;
  std::string tokenizer_;
  bool cased_ = false;
  bool tokens_ = false;
  bool plain_text_ = false;
  std::optional<std::int64_t> threads_;
};

}  // namespace

std::unique_ptr<Command> make_tokenize_command() {
  return std::make_unique<TokenizeCommand>();
}

}  // namespace plenum::cli
