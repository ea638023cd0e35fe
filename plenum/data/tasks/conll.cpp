#include "plenum/data/tasks/conll.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/base/units.h"
#include "plenum/data/text/text_reader.h"

namespace plenum::data {
namespace {

constexpr std::string_view kDocumentStart = "-DOCSTART-";

void split_columns(std::string_view line, std::vector<std::string_view>& columns) {
  columns.clear();
  if (line.find('\t') != std::string_view::npos) {
    while (true) {
      const std::size_t tab = line.find('\t');
      columns.push_back(line.substr(0, tab));
      if (tab == std::string_view::npos) return;
      line.remove_prefix(tab + 1);
    }
  }
  while (true) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string_view::npos) return;
    line.remove_prefix(begin);
    const std::size_t end = line.find(' ');
    columns.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return;
    line.remove_prefix(end);
  }
}

std::size_t numbered_column(const std::string& text, std::string_view option, std::size_t num_columns,
                            const std::string& path) {
  const std::int64_t number = base::parse_integer(text, option);
  base::require(number >= 1 && static_cast<std::size_t>(number) <= num_columns,
                "{}: there is no column {}; --{} is a number from 1 to {}", path, text, option, num_columns);
  return static_cast<std::size_t>(number - 1);
}

}  // namespace

ConllColumns choose_conll_columns(std::string_view line, const TaskOptions& options, Labelled labelled,
                                  const std::string& path) {
  std::vector<std::string_view> columns;
  split_columns(line, columns);
  ConllColumns chosen{.num_columns = columns.size()};
  if (!options.text_column.empty())
    chosen.word = numbered_column(options.text_column, "text-column", columns.size(), path);
  if (options.label_column == kNoColumn) return chosen;
  chosen.tag = columns.size() - 1;
  if (!options.label_column.empty())
    chosen.tag = numbered_column(options.label_column, "label-column", columns.size(), path);
  chosen.has_tags = chosen.tag != chosen.word;
  base::require(chosen.has_tags || labelled == Labelled::Optional,
                "{}: lines must have a word and a tag; there is one column", path);
  return chosen;
}

std::size_t read_conll(std::string_view text, const std::string& path, const TaskOptions& options,
                       Labelled labelled, const std::function<void(const ConllSentence&)>& sink) {
  std::optional<ConllColumns> chosen;
  std::vector<std::string_view> columns;
  ConllSentence sentence;
  std::size_t num_document_starts = 0;
  const auto end_sentence = [&] {
    if (!sentence.words.empty()) sink(sentence);
    sentence.words.clear();
    sentence.tags.clear();
  };
  for (std::uint64_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (is_blank(line)) {
      end_sentence();
      continue;
    }
    if (line.starts_with(kDocumentStart)) {
      end_sentence();
      ++num_document_starts;
      continue;
    }
    if (!chosen) chosen = choose_conll_columns(line, options, labelled, path);
    split_columns(line, columns);
    base::require(
        columns.size() == chosen->num_columns,
        "{}:{}: the line has {} columns, but the first has {}; columns are set apart by tabs, or by "
        "spaces",
        path, number, columns.size(), chosen->num_columns);
    if (sentence.words.empty()) sentence.place = fmt::format("{}:{}", path, number);
    sentence.words.push_back(columns[chosen->word]);
    if (chosen->has_tags) sentence.tags.push_back(columns[chosen->tag]);
  }
  end_sentence();
  return num_document_starts;
}

}  // namespace plenum::data
