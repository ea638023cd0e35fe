#include "plenum/data/tokenizer/tokenizer_files.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <nlohmann/json.hpp>

#include "plenum/base/check.h"
#include "plenum/data/text/utf8.h"
#include "plenum/data/tokenizer/hub_name.h"
#include "plenum/io/file.h"

namespace plenum::data {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  // for writing only: it looks keys up one by one
using TokenList = std::vector<std::optional<std::string>>;

constexpr std::size_t kMaxTokens = std::size_t{1} << 24;

/// One JSON document, and errors that name it.
class Document {
 public:
  Document(std::string_view text, std::string source) : source_(std::move(source)) {
    root_ = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    base::require(root_.is_object(), "{}: not a JSON object", source_);
  }

  const Json& root() const { return root_; }
  const std::string& source() const { return source_; }

  /// The member of an object, or null.
  static const Json& member(const Json& object, const char* key) {
    static const Json null;
    const auto found = object.is_object() ? object.find(key) : object.end();
    return found == object.end() ? null : *found;
  }

  void require_text(const Json& object, const char* part, const char* key, std::string_view wanted) const {
    const Json& found = member(object, key);
    base::require(found.is_string() && found.get<std::string>() == wanted,
                  "{}: {} {} must be \"{}\", other tokenizers are not supported: {}", source_, part, key,
                  wanted, found.dump());
  }

  std::optional<bool> flag(const Json& object, const char* key) const {
    const Json& found = member(object, key);
    if (found.is_null()) return std::nullopt;
    base::require(found.is_boolean(), "{}: {} must be true or false: {}", source_, key, found.dump());
    return found.get<bool>();
  }

  std::int64_t integer(const Json& object, const char* key, std::int64_t lowest, std::int64_t highest) const {
    const Json& found = member(object, key);
    const bool fits = found.is_number_integer() && found >= lowest && found <= highest;
    base::require(fits, "{}: {} must be a whole number from {} to {}: {}", source_, key, lowest, highest,
                  found.dump());
    return found.get<std::int64_t>();
  }

 private:
  std::string source_;
  Json root_;
};

NormalizerRules parse_rules(const Document& document) {
  const Json& normalizer = Document::member(document.root(), "normalizer");
  document.require_text(normalizer, "normalizer", "type", "BertNormalizer");
  document.require_text(Document::member(document.root(), "pre_tokenizer"), "pre_tokenizer", "type",
                        "BertPreTokenizer");
  NormalizerRules rules;
  rules.clean_text = document.flag(normalizer, "clean_text").value_or(true);
  rules.handle_chinese_chars = document.flag(normalizer, "handle_chinese_chars").value_or(true);
  rules.strip_accents = document.flag(normalizer, "strip_accents");
  rules.lowercase = document.flag(normalizer, "lowercase").value_or(true);
  return rules;
}

void place_token(const Document& document, TokenList& tokens, const std::string& token, std::size_t id) {
  if (id >= tokens.size()) tokens.resize(id + 1);
  base::require(!tokens[id] || *tokens[id] == token, "{}: id {} stands for two tokens, '{}' and '{}'",
                document.source(), id, tokens[id].value_or(""), token);
  tokens[id] = token;
}

TokenList parse_model_vocabulary(const Document& document, const Json& model) {
  const Json& vocabulary = Document::member(model, "vocab");
  base::require(vocabulary.is_object(), "{}: model vocab must be an object of tokens and ids",
                document.source());
  TokenList tokens;
  for (const auto& [token, id] : vocabulary.items()) {
    base::require(id.is_number_unsigned() && id.get<std::uint64_t>() < kMaxTokens,
                  "{}: token '{}' has no valid id: {}", document.source(), token, id.dump());
    place_token(document, tokens, token, id.get<std::size_t>());
  }
  return tokens;
}

std::vector<AddedToken> parse_added_tokens(const Document& document, TokenList& tokens) {
  const std::size_t num_model_tokens = tokens.size();
  std::vector<AddedToken> added;
  const Json& list = Document::member(document.root(), "added_tokens");
  base::require(list.is_null() || list.is_array(), "{}: added_tokens must be a list", document.source());
  for (const Json& entry : list) {
    const Json& content = Document::member(entry, "content");
    base::require(content.is_string() && !content.get<std::string>().empty(),
                  "{}: an added token has no content: {}", document.source(), entry.dump());
    AddedToken token{.content = content.get<std::string>()};
    for (const char* unsupported : {"normalized", "single_word", "lstrip", "rstrip"}) {
      base::require(!document.flag(entry, unsupported).value_or(false),
                    "{}: added token '{}' with {} is not supported", document.source(), token.content,
                    unsupported);
    }
    token.special = document.flag(entry, "special").value_or(false);
    const auto id = static_cast<std::size_t>(document.integer(entry, "id", 0, kMaxTokens - 1));
    token.in_model = id < num_model_tokens && tokens[id].has_value();
    place_token(document, tokens, token.content, id);
    token.id = static_cast<TokenId>(id);
    added.push_back(std::move(token));
  }
  return added;
}

/// Takes the rules that a tokenizer_config.json states over those given.
NormalizerRules apply_config(const Document& config, NormalizerRules rules) {
  rules.lowercase = config.flag(config.root(), "do_lower_case").value_or(rules.lowercase);
  rules.handle_chinese_chars =
      config.flag(config.root(), "tokenize_chinese_chars").value_or(rules.handle_chinese_chars);
  if (config.root().contains("strip_accents"))
    rules.strip_accents = config.flag(config.root(), "strip_accents");
  return rules;
}

OrderedJson added_token_json(const AddedToken& token) {
  return {{"id", token.id},  {"content", token.content}, {"single_word", false},    {"lstrip", false},
          {"rstrip", false}, {"normalized", false},      {"special", token.special}};
}

OrderedJson template_special(const std::string& token, int type) {
  return {{"SpecialToken", {{"id", token}, {"type_id", type}}}};
}

OrderedJson template_sequence(const char* name, int type) {
  return {{"Sequence", {{"id", name}, {"type_id", type}}}};
}

/// `[CLS] A [SEP]` and `[CLS] A [SEP] B [SEP]` with types 0 and 1.
OrderedJson post_processor_json(const Vocabulary& vocabulary) {
  const std::string& cls = vocabulary.token(vocabulary.special().cls);
  const std::string& sep = vocabulary.token(vocabulary.special().sep);
  const auto definition = [](const std::string& token, TokenId id) -> OrderedJson {
    return {{"id", token}, {"ids", OrderedJson::array({id})}, {"tokens", OrderedJson::array({token})}};
  };
  OrderedJson single =
      OrderedJson::array({template_special(cls, 0), template_sequence("A", 0), template_special(sep, 0)});
  OrderedJson pair = single;
  pair.push_back(template_sequence("B", 1));
  pair.push_back(template_special(sep, 1));
  return {
      {"type", "TemplateProcessing"},
      {"single", std::move(single)},
      {"pair", std::move(pair)},
      {"special_tokens",
       {{cls, definition(cls, vocabulary.special().cls)}, {sep, definition(sep, vocabulary.special().sep)}}}};
}

OrderedJson optional_json(const std::optional<bool>& flag) {
  return flag ? OrderedJson(*flag) : OrderedJson();
}

}  // namespace

Vocabulary parse_vocab_txt(std::string_view text, const std::string& source) {
  base::require(is_utf8(text), "{}: not UTF-8 text; is this a vocab.txt?", source);
  std::vector<std::string> tokens;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    while (line.ends_with('\r')) line.remove_suffix(1);
    tokens.emplace_back(line);
  }
  while (!tokens.empty() && tokens.back().empty()) tokens.pop_back();
  return Vocabulary(std::move(tokens), source);
}

Tokenizer parse_tokenizer_json(std::string_view text, const std::string& source) {
  const Document document(text, source);
  const NormalizerRules rules = parse_rules(document);
  const Json& model = Document::member(document.root(), "model");
  // Files from before 2020 leave the type out.
  if (!Document::member(model, "type").is_null()) document.require_text(model, "model", "type", "WordPiece");
  document.require_text(model, "model", "unk_token", "[UNK]");
  document.require_text(model, "model", "continuing_subword_prefix", kContinuingPrefix);
  const auto max_chars = static_cast<int>(document.integer(model, "max_input_chars_per_word", 1, 1 << 20));

  TokenList found = parse_model_vocabulary(document, model);
  std::vector<AddedToken> added = parse_added_tokens(document, found);
  std::vector<std::string> tokens;
  for (std::optional<std::string>& token : found) {
    base::require(token.has_value(), "{}: no token has id {}; ids must run from 0 without a gap", source,
                  tokens.size());
    tokens.push_back(std::move(*token));
  }
  return Tokenizer(Vocabulary(std::move(tokens), source), rules, max_chars, std::move(added));
}

Tokenizer Tokenizer::load(const std::string& path, const NormalizerRules& rules_for_vocab_txt) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(path)) {
    const fs::path extension = fs::path(path).extension();
    const bool is_file = fs::exists(path) || extension == ".json" || extension == ".txt";
    base::require(is_file, "there is no directory {}; {}", path, hub_hint(path, "--tokenizer"));
    const std::string text = io::read_file(path);
    if (extension == ".json") return parse_tokenizer_json(text, path);
    return Tokenizer(parse_vocab_txt(text, path), rules_for_vocab_txt);
  }
  const auto inside = [&path](const char* name) { return (fs::path(path) / name).string(); };
  std::optional<Document> config;
  const std::string config_path = inside("tokenizer_config.json");
  if (fs::exists(config_path)) config.emplace(io::read_file(config_path), config_path);
  if (const std::string json_path = inside("tokenizer.json"); fs::exists(json_path)) {
    Tokenizer tokenizer = parse_tokenizer_json(io::read_file(json_path), json_path);
    // As transformers does: what tokenizer_config.json states wins over tokenizer.json.
    const NormalizerRules rules = config ? apply_config(*config, tokenizer.rules()) : tokenizer.rules();
    if (rules != tokenizer.rules()) tokenizer.normalizer_ = std::make_unique<const Normalizer>(rules);
    return tokenizer;
  }
  const std::string vocab_path = inside("vocab.txt");
  base::require(fs::exists(vocab_path), "{}: neither tokenizer.json nor vocab.txt is in this directory",
                path);
  // A configuration that is silent about a rule means the defaults of BertTokenizer.
  const NormalizerRules rules = config ? apply_config(*config, NormalizerRules{}) : rules_for_vocab_txt;
  return Tokenizer(parse_vocab_txt(io::read_file(vocab_path), vocab_path), rules);
}

std::string print_vocab_txt(const Vocabulary& vocabulary) {
  std::string text;
  for (const std::string& token : vocabulary.tokens()) text.append(token).push_back('\n');
  return text;
}

std::string print_tokenizer_json(const Tokenizer& tokenizer) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  const NormalizerRules& rules = tokenizer.rules();
  OrderedJson added = OrderedJson::array();
  std::vector<bool> in_model(vocabulary.size(), true);
  std::vector<AddedToken> by_id = tokenizer.added_tokens();
  std::sort(by_id.begin(), by_id.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  for (const AddedToken& token : by_id) {
    added.push_back(added_token_json(token));
    in_model[static_cast<std::size_t>(token.id)] = token.in_model;
  }
  std::vector<std::pair<std::string, OrderedJson>> ids;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    if (in_model[id]) ids.emplace_back(vocabulary.tokens()[id], id);
  }
  const OrderedJson root = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", std::move(added)},
      {"normalizer",
       {{"type", "BertNormalizer"},
        {"clean_text", rules.clean_text},
        {"handle_chinese_chars", rules.handle_chinese_chars},
        {"strip_accents", optional_json(rules.strip_accents)},
        {"lowercase", rules.lowercase}}},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"post_processor", post_processor_json(vocabulary)},
      {"decoder", {{"type", "WordPiece"}, {"prefix", kContinuingPrefix}, {"cleanup", true}}},
      {"model",
       {{"type", "WordPiece"},
        {"unk_token", vocabulary.token(vocabulary.special().unknown)},
        {"continuing_subword_prefix", kContinuingPrefix},
        {"max_input_chars_per_word", tokenizer.max_chars_per_word()},
        {"vocab", OrderedJson::object_t(ids.begin(), ids.end())}}}};
  return root.dump(2);
}

std::string print_tokenizer_config(const Tokenizer& tokenizer, int model_max_length) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  const SpecialTokens& special = vocabulary.special();
  const OrderedJson root = {{"cls_token", vocabulary.token(special.cls)},
                            {"do_lower_case", tokenizer.rules().lowercase},
                            {"mask_token", vocabulary.token(special.mask)},
                            {"model_max_length", model_max_length},
                            {"pad_token", vocabulary.token(special.pad)},
                            {"sep_token", vocabulary.token(special.sep)},
                            {"strip_accents", optional_json(tokenizer.rules().strip_accents)},
                            {"tokenize_chinese_chars", tokenizer.rules().handle_chinese_chars},
                            {"tokenizer_class", "BertTokenizer"},
                            {"unk_token", vocabulary.token(special.unknown)}};
  return root.dump(2) + "\n";
}

void write_tokenizer_files(const Tokenizer& tokenizer, const std::string& directory, int model_max_length) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(directory, error);
  base::require(!error, "cannot make directory {}: {}", directory, error.message());
  const auto inside = [&directory](const char* name) { return (fs::path(directory) / name).string(); };
  io::write_file(inside("vocab.txt"), print_vocab_txt(tokenizer.vocabulary()));
  io::write_file(inside("tokenizer.json"), print_tokenizer_json(tokenizer));
  io::write_file(inside("tokenizer_config.json"), print_tokenizer_config(tokenizer, model_max_length));
}

}  // namespace plenum::data
