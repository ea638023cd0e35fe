#include "plenum/data/tasks/task_records.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/data/text/text_reader.h"
#include "plenum/data/text/utf8.h"
#include "plenum/io/compressed_input.h"
#include "plenum/io/csv.h"

namespace plenum::data {
namespace {

constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";

std::string unpack(const std::string& path) {
  io::CompressedInput input(path);
  std::string text;
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  while (true) {
    const std::size_t size = text.size();
    text.resize(size + kPiece);
    const std::size_t read = input.read(text.data() + size, kPiece);
    text.resize(size + read);
    if (read < kPiece) return text;
  }
}

/// The next line of `rest`, without its end.
std::string_view cut_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

/// Gives rows of fields to a sink, by the names in the first of them or by number.
class DelimitedRecords {
 public:
  DelimitedRecords(const std::string& path, bool has_header, const TaskRecordSink& sink)
      : path_(path), needs_header_(has_header), sink_(sink) {}

  void take(const std::vector<std::string>& fields, std::uint64_t line) {
    if (columns_.empty()) {
      for (std::size_t i = 0; i < fields.size(); ++i)
        columns_.push_back(needs_header_ ? fields[i] : std::to_string(i + 1));
      require_names_once();
      if (needs_header_) return;
    }
    base::require(fields.size() == columns_.size(), "{}:{}: the record has {} fields, but the {} has {}",
                  path_, line, fields.size(), needs_header_ ? "header" : "first record", columns_.size());
    record_.place = fmt::format("{}:{}", path_, line);
    for (std::size_t i = 0; i < fields.size(); ++i) record_.fields[columns_[i]] = fields[i];
    sink_(columns_, record_);
  }

 private:
  void require_names_once() const {
    std::unordered_set<std::string_view> names;
    for (const std::string& name : columns_) {
      base::require(name.empty() || names.insert(name).second,
                    "{}:1: the header has the column '{}' twice; if the file has no header, give columns by "
                    "number, such as --text-column 1",
                    path_, name);
    }
  }

  const std::string& path_;
  bool needs_header_;
  const TaskRecordSink& sink_;
  std::vector<std::string> columns_;
  TaskRecord record_{.place = {}, .fields = nlohmann::json::object()};
};

void read_quoted(std::string_view text, char delimiter, const std::string& path, DelimitedRecords& rows) {
  io::CsvRecords records(text, delimiter);
  std::vector<std::string> fields;
  while (true) {
    try {
      if (!records.next(fields)) return;
    } catch (const base::UserError& error) {
      base::fail("{}:{}: {}", path, records.lines_before() + 1, error.what());
    }
    rows.take(fields, records.lines_before() + 1);
  }
}

void read_tabs(std::string_view text, DelimitedRecords& rows) {
  std::vector<std::string> fields;
  for (std::uint64_t line = 1; !text.empty(); ++line) {
    std::string_view rest = cut_line(text);
    if (rest.empty()) continue;
    fields.clear();
    while (true) {
      const std::size_t tab = rest.find('\t');
      fields.emplace_back(rest.substr(0, tab));
      if (tab == std::string_view::npos) break;
      rest.remove_prefix(tab + 1);
    }
    rows.take(fields, line);
  }
}

/// Gives objects to a sink.
class ObjectRecords {
 public:
  explicit ObjectRecords(const TaskRecordSink& sink) : sink_(sink) {}

  void take(nlohmann::json object, std::string place) {
    base::require(object.is_object(), "{}: an example must be a JSON object", place);
    if (columns_.empty()) {
      for (const auto& [key, unused] : object.items()) columns_.push_back(key);
    }
    sink_(columns_, {.place = std::move(place), .fields = std::move(object)});
  }

 private:
  const TaskRecordSink& sink_;
  std::vector<std::string> columns_;
};

nlohmann::json parse_object(std::string_view text, const std::string& place) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    base::fail("{}: this is not valid JSON: byte {}", place, error.byte);
  }
}

void read_json_lines(std::string_view text, const std::string& path, ObjectRecords& records) {
  for (std::uint64_t line = 1; !text.empty(); ++line) {
    const std::string_view object = cut_line(text);
    if (is_blank(object)) continue;
    std::string place = fmt::format("{}:{}", path, line);
    records.take(parse_object(object, place), place);
  }
}

const nlohmann::json& list_in(const nlohmann::json& object, const char* key, const std::string& place) {
  base::require(object.is_object() && object.contains(key) && object.at(key).is_array(),
                "{}: this must be an object with a list '{}'", place, key);
  return object.at(key);
}

/// The questions of one of SQuAD's articles: each with its context.
void read_article(const nlohmann::json& article, const std::string& place, ObjectRecords& records) {
  std::size_t paragraph_index = 0;
  for (const nlohmann::json& paragraph : list_in(article, "paragraphs", place)) {
    const std::string of_paragraph = fmt::format("{}.paragraphs[{}]", place, paragraph_index++);
    std::size_t question_index = 0;
    for (const nlohmann::json& question : list_in(paragraph, "qas", of_paragraph)) {
      std::string of_question = fmt::format("{}.qas[{}]", of_paragraph, question_index++);
      base::require(question.is_object() && paragraph.contains("context"),
                    "{}: there must be a question, and a context beside it", of_question);
      nlohmann::json record = question;
      record["context"] = paragraph.at("context");
      records.take(std::move(record), std::move(of_question));
    }
  }
}

/// Whether the first line is an object of its own: then each line is.
bool is_lines(std::string_view text) {
  std::string_view rest = text;
  const std::string_view first = cut_line(rest);
  if (is_blank(rest) || is_blank(first)) return false;
  return nlohmann::json::accept(first);
}

void read_json(std::string_view text, const std::string& path, ObjectRecords& records) {
  if (is_lines(text)) return read_json_lines(text, path, records);
  const nlohmann::json whole = parse_object(text, path);
  const bool is_one = whole.is_object() && !whole.contains("data");
  if (is_one) return records.take(whole, path + ":1");
  const nlohmann::json& list = whole.is_array() ? whole : list_in(whole, "data", path);
  std::size_t index = 0;
  for (const nlohmann::json& element : list) {
    const std::string place = fmt::format("{}: {}[{}]", path, whole.is_array() ? "" : "data", index++);
    if (element.is_object() && element.contains("paragraphs")) {
      read_article(element, place, records);
    } else {
      records.take(element, place);
    }
  }
}

bool is_number(std::string_view name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

TaskFormat task_format_of(std::string_view path, describe::TaskKind kind, const TaskOptions& options) {
  if (options.format != TaskFormat::Auto) return options.format;
  const bool has_words = kind == describe::TaskKind::TokenClassification;
  const std::string_view name = io::without_compression_suffix(path);
  const auto ends_in = [&](std::initializer_list<std::string_view> endings) {
    return std::ranges::any_of(endings, [&](std::string_view ending) { return name.ends_with(ending); });
  };
  if (has_words && ends_in({".conll", ".bio", ".iob", ".iob2", ".iobes", ".txt", ".tsv"}))
    return TaskFormat::Conll;
  if (ends_in({".tsv"})) return TaskFormat::Tsv;
  if (ends_in({".csv"})) return TaskFormat::Csv;
  if (ends_in({".jsonl", ".ndjson"})) return TaskFormat::JsonLines;
  if (ends_in({".json"})) return TaskFormat::Json;
  base::fail("cannot tell the format of {} by its name; give --format {}", path,
             has_words ? "conll or jsonl" : "tsv, csv, jsonl or json");
}

std::string read_task_file(const std::string& path, const TaskOptions& options, TaskFileNotes& notes) {
  std::string text = unpack(path);
  constexpr std::size_t kBeginning = 512;
  const std::string_view beginning = std::string_view(text).substr(0, kBeginning);
  base::require(wide_encoding(beginning).empty(), "{} is not UTF-8; convert it: {}", path,
                conversion_command(beginning));
  if (text.starts_with(kUtf8Mark)) text.erase(0, kUtf8Mark.size());
  std::string valid;
  InvalidText invalid;
  const std::string_view replaced = replace_invalid_bytes(text, {}, path, options.invalid, valid, invalid);
  notes.num_replaced = invalid.places;
  return replaced.data() == text.data() ? text : valid;
}

bool has_numbered_columns(const TaskOptions& options) {
  std::vector<std::string> names = options.choice_columns;
  for (const std::string& name :
       {options.text_column, options.pair_column, options.label_column, options.id_column}) {
    if (!name.empty() && name != kNoColumn) names.push_back(name);
  }
  const auto num_numbers = std::ranges::count_if(names, is_number);
  base::require(num_numbers == 0 || num_numbers == std::ssize(names),
                "columns must be given all by name or, for files without a header, all by number: {}",
                fmt::join(names, ", "));
  return num_numbers > 0;
}

void read_task_records(std::string_view text, const std::string& path, TaskFormat format,
                       const TaskOptions& options, const TaskRecordSink& sink) {
  base::check(format != TaskFormat::Auto && format != TaskFormat::Conll,
              "records are read in a known format other than CoNLL");
  if (format == TaskFormat::JsonLines || format == TaskFormat::Json) {
    ObjectRecords records(sink);
    return format == TaskFormat::Json ? read_json(text, path, records) : read_json_lines(text, path, records);
  }
  DelimitedRecords rows(path, !has_numbered_columns(options), sink);
  if (format == TaskFormat::Csv) return read_quoted(text, ',', path, rows);
  if (options.quoted_tsv) return read_quoted(text, '\t', path, rows);
  read_tabs(text, rows);
}

}  // namespace plenum::data
