#include "plenum/data/corpus/prepare.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/base/parallel_for.h"
#include "plenum/data/corpus/corpus_writer.h"
#include "plenum/data/corpus/duplicates.h"
#include "plenum/data/corpus/ordered_pipeline.h"
#include "plenum/data/corpus/partial_directory.h"
#include "plenum/data/corpus/shard_writer.h"
#include "plenum/data/corpus/tokenized_block.h"
#include "plenum/data/text/document_choice.h"
#include "plenum/data/tokenizer/tokenizer_files.h"
#include "plenum/data/tokenizer/vocabulary_trainer.h"
#include "plenum/io/checksum.h"
#include "plenum/io/file.h"

namespace plenum::data {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

/// Phases that a run can be taken up in. Before the first, it starts anew.
constexpr const char* kTokenizing = "tokenizing";
constexpr const char* kBuildingSequences = "building sequences";

/// The options that decide the outcome, by name. Shards are not among them: they are the same dataset in
/// other files. What is no text is not among them: refusing it changes no dataset, so that a run that was
/// stopped by it resumes once it may be replaced.
OrderedJson recorded_options(PrepareOptions options) {
  constexpr std::array kNotRecorded = {"inputs", "output", "threads", "overwrite", "invalid-utf8", "shards"};
  OrderedJson recorded = OrderedJson::object();
  const base::OptionTable table = options.table();
  for (const base::Option& option : table.options()) {
    if (std::find(kNotRecorded.begin(), kNotRecorded.end(), option.name) != kNotRecorded.end()) continue;
    const std::vector<std::string> values = option.get();
    if (!values.empty() && !values.front().empty()) recorded[option.name] = values.front();
  }
  return recorded;
}

std::string fingerprint_of(const PrepareOptions& options, const std::vector<SourceFile>& sources,
                           const Tokenizer* tokenizer) {
  io::Checksum sum;
  sum.update(print_by_key(recorded_options(options)));
  sum.update(fmt::format("block {};", options.text.block_bytes));
  for (const SourceFile& file : sources) {
    sum.update(fmt::format("{}:{}:{};", file.path, file.size_bytes, file.modified_ns));
  }
  if (tokenizer != nullptr) sum.update(print_tokenizer_json(*tokenizer));
  return io::format_checksum(sum.value());
}

/// Throws UserError when what was made earlier replaced what this run is to refuse.
void require_text(const InvalidText& invalid, const PrepareOptions& options,
                  const std::vector<SourceFile>& sources) {
  if (options.text.invalid == InvalidTextRule::Replace || invalid.places == 0) return;
  base::fail(
      "{} holds text in which {} bytes were not UTF-8, first at {}:{}; add --invalid-utf8 replace to go "
      "on with it",
      options.output, invalid.bytes, sources.at(invalid.first_file).path, invalid.first_line);
}

Json position_to_json(const SourcePosition& position) {
  return {{"file_index", position.file_index},
          {"offset", position.offset},
          {"line", position.line},
          {"earlier_bytes", position.earlier_bytes},
          {"inside_document", position.inside_document}};
}

SourcePosition position_from_json(const Json& json) {
  return {.file_index = json.at("file_index"),
          .offset = json.at("offset"),
          .line = json.at("line"),
          .earlier_bytes = json.at("earlier_bytes"),
          .inside_document = json.at("inside_document")};
}

/// Adds the words of a block to a counter.
class WordSink final : public TextSink {
 public:
  explicit WordSink(WordCounter& counter) : counter_(counter) {}
  void sentence(std::string_view text, SentencePart) override { counter_.add(text); }
  void end_document() override {}

 private:
  WordCounter& counter_;
};

Tokenizer train_tokenizer(const PrepareOptions& options, const SourceFiles& sources,
                          base::Progress& progress) {
  const NormalizerRules rules = options.normalizer_rules();
  std::mutex mutex;
  std::vector<std::unique_ptr<WordCounter>> counters;
  TextReader reader(sources.files, options.text);
  progress.begin("counting words", "bytes", sources.total_bytes());
  OrderedPipeline<TextBlock, std::uint64_t> pipeline(options.num_threads());
  pipeline.run([&](TextBlock& block) { return reader.next(block); },
               [&] {
                 auto owned = std::make_unique<WordCounter>(rules);
                 WordCounter* counter = owned.get();
                 auto parser = std::make_unique<TextParser>(sources.files, options.text);
                 const std::lock_guard lock(mutex);
                 counters.push_back(std::move(owned));
                 return [counter, parser = std::move(parser)](const TextBlock& block, std::uint64_t& done) {
                   WordSink sink(*counter);
                   parser->parse(block, sink);
                   done = block.file_bytes_done;
                 };
               },
               [&](std::uint64_t file_bytes_done) { progress.advance_to(file_bytes_done); });
  progress.end();
  require_unchanged(sources.files);
  WordCounter words(rules);
  for (const auto& counter : counters) words.merge(std::move(*counter));
  TrainVocabularyOptions training;
  training.vocabulary_size = *options.train_vocab_size;
  Vocabulary vocabulary = train_vocabulary(words, training, progress);
  if (std::cmp_less(vocabulary.size(), training.vocabulary_size)) {
    progress.warn(
        fmt::format("the text gives a vocabulary of {} tokens, not --train-vocab {}: it has no more "
                    "pairs of letters to join",
                    vocabulary.size(), training.vocabulary_size));
  }
  return Tokenizer(std::move(vocabulary), rules);
}

bool is_running(const std::future<void>& task) {
  return task.valid() && task.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

/// One run: the directory it works in and how far it has come.
class Run {
 public:
  Run(const PrepareOptions& options, const SourceFiles& sources, std::optional<Tokenizer> tokenizer,
      std::string fingerprint, PartialDirectory& directory, base::Progress& progress)
      : options_(options),
        sources_(sources),
        progress_(progress),
        fingerprint_(std::move(fingerprint)),
        directory_(directory),
        paths_(directory_.path()),
        resumed_phase_(directory_.state().is_null() ? "" : directory_.state().at("phase").get<std::string>()),
        tokenizer_(obtain_tokenizer(std::move(tokenizer))) {}

  PrepareResult finish() {
    tokenize();
    DatasetDescription description = describe();
    const std::size_t num_files = kDatasetFileNames.size() - 1;  // all but the description itself
    description.files.resize(num_files);
    const auto describe_files = [&](bool sequences) {
      for (std::size_t i = 0; i < num_files; ++i) {
        const std::string name(kDatasetFileNames[i]);
        if (name.ends_with(".sequences") == sequences) description.files[i] = describe_file(name);
      }
    };
    // All other files are complete, so that reading them need not wait.
    std::future<void> others = std::async(std::launch::async, [&] { describe_files(false); });
    build_sequences(description);
    describe_files(true);
    others.get();
    publish(description);
    if (options_.shards > 1) description = read_dataset_description(options_.output);
    return {.description = std::move(description), .was_there = false, .resumed_bytes = resumed_bytes_};
  }

 private:
  Tokenizer obtain_tokenizer(std::optional<Tokenizer> given) {
    if (!given && !resumed_phase_.empty())
      return Tokenizer::load(directory_.path(), options_.normalizer_rules());
    Tokenizer tokenizer = given ? std::move(*given) : train_tokenizer(options_, sources_, progress_);
    if (resumed_phase_.empty()) {
      write_tokenizer_files(tokenizer, directory_.path(), static_cast<int>(options_.sequences.max_length));
      if (options_.train_vocab_size) directory_.record({{"phase", kTokenizing}});
    }
    return tokenizer;
  }

  TokenWidth width() const { return token_width_for(tokenizer_.vocabulary().size()); }

  void tokenize() {
    if (directory_.state().contains("writer")) {
      require_text(corpus_counts_from(directory_.state().at("writer")).invalid, options_, sources_.files);
    }
    if (resumed_phase_ == kBuildingSequences) {
      progress_.note("resuming: the text is tokenized already");
      corpus_ = directory_.state().at("writer");
      duplicates_ = directory_.state().at("duplicates");
      return;
    }
    SourcePosition start;
    std::optional<Json> saved;
    if (directory_.state().contains("writer")) {
      saved = directory_.state().at("writer");
      start = position_from_json(directory_.state().at("position"));
      resumed_bytes_ = saved->at("text_bytes");
      const auto done = directory_.state().at("file_bytes_done").get<double>();
      const double total = std::max(1.0, static_cast<double>(sources_.total_bytes()));
      progress_.note(fmt::format("resuming at {:.0f} %", 100 * done / total));
    }
    if (!saved && !resumed_phase_.empty()) {
      progress_.note(
          "resuming: the earlier run had not come far; its vocabulary is kept, the text starts anew");
    }
    CorpusWriter writer(directory_.path(), width(), holdout_rule(), saved);
    tokenize_from(start, writer);
    require_unchanged(sources_.files);
    corpus_ = writer.save();
    require_trainable(writer.counts());
    writer.sync();
    // None of these keeps all threads busy.
    const std::array<std::function<void()>, 3> tasks = {
        [&] { complete_index(Split::Train); },
        [&] { complete_index(Split::Holdout); },
        [&] { duplicates_ = count_duplicates(paths_.hashes, options_.num_threads()); },
    };
    base::parallel_for(tasks.size(), options_.num_threads(), [&](std::size_t i) { tasks[i](); });
    directory_.record({{"phase", kBuildingSequences}, {"writer", corpus_}, {"duplicates", duplicates_}});
  }

  /// Throws UserError for text of which no dataset can be made as the options are. Nothing is kept then: the
  /// next run has other ones.
  void require_trainable(const CorpusCounts& counts) {
    try {
      base::require(counts[Split::Train].documents > 0, "{}: {} bytes of text in {} input files",
                    counts[Split::Holdout].documents > 0 ? "nothing is left to train on; lower --holdout"
                                                         : "the input holds no text to train on",
                    counts.text_bytes, sources_.files.size());
      for (const Split split : kSplits)
        require_documents(options_.sequences.objective, counts[split].documents, split);
    } catch (const base::UserError&) {
      directory_.forget();
      throw;
    }
  }

  void complete_index(Split split) {
    complete_token_index(paths_.index[index_of(split)], paths_.documents[index_of(split)], width());
  }

  HoldoutRule holdout_rule() const {
    return HoldoutRule(static_cast<std::uint64_t>(options_.seed), options_.holdout);
  }

  void tokenize_from(const SourcePosition& start, CorpusWriter& writer) {
    TextReader reader(sources_.files, options_.text, start);
    std::int64_t blocks_since_record = 0;
    std::future<void> recording;  // while the disk is at work, the text goes on
    progress_.begin("tokenizing", "bytes", sources_.total_bytes());
    OrderedPipeline<TextBlock, TokenizedBlock> pipeline(options_.num_threads());
    pipeline.run([&](TextBlock& block) { return reader.next(block); },
                 [&] {
                   auto worker = std::make_unique<BlockTokenizer>(sources_.files, options_.text, tokenizer_,
                                                                  holdout_rule());
                   return [worker = std::move(worker)](const TextBlock& block, TokenizedBlock& result) {
                     worker->tokenize(block, result);
                   };
                 },
                 [&](const TokenizedBlock& block) {
                   writer.add(block);
                   progress_.advance_to(block.file_bytes_done);
                   if (++blocks_since_record < options_.checkpoint_blocks || !writer.can_save()) return;
                   if (is_running(recording)) return;
                   if (recording.valid()) recording.get();
                   blocks_since_record = 0;
                   Json state = {{"phase", kTokenizing},
                                 {"writer", writer.save()},
                                 {"position", position_to_json(block.end)},
                                 {"file_bytes_done", block.file_bytes_done}};
                   recording = std::async(std::launch::async, [this, &writer, state = std::move(state)] {
                     writer.sync();
                     directory_.record(state);
                   });
                 });
    if (recording.valid()) recording.get();
    progress_.end();
  }

  DatasetDescription describe() const {
    DatasetDescription description;
    description.max_length = options_.sequences.max_length;
    description.objective = options_.sequences.objective;
    description.seed = static_cast<std::uint64_t>(options_.seed);
    description.counts = corpus_counts_from(corpus_);
    description.duplicate_documents = duplicates_;
    description.vocabulary_size = tokenizer_.vocabulary().size();
    description.special = tokenizer_.vocabulary().special();
    description.rules = tokenizer_.rules();
    description.options = recorded_options(options_);
    description.sources = sources_.files;
    description.fingerprint = fingerprint_;
    return description;
  }

  void build_sequences(DatasetDescription& description) {
    SequenceOptions options = options_.sequences;
    options.seed = static_cast<std::uint64_t>(options_.seed);
    for (const Split split : kSplits) {
      const std::size_t i = index_of(split);
      const IndexedTokens tokens(paths_.tokens[i], paths_.index[i]);
      progress_.begin(split == Split::Train ? "building sequences" : "building holdout", "tokens",
                      tokens.num_tokens());
      description.sequences[i] = write_sequence_index(tokens, options, split, options_.num_threads(),
                                                      paths_.sequences[i], progress_);
      progress_.end();
    }
  }

  io::FileRecord describe_file(const std::string& name) const {
    const std::string path = directory_.path() + "/" + name;
    return {
        .name = name, .size_bytes = std::filesystem::file_size(path), .checksum = io::file_checksum(path)};
  }

  void publish(const DatasetDescription& description) {
    std::vector<std::string> names;
    if (const auto count = static_cast<std::uint64_t>(options_.shards); count > 1) {
      write_shards(directory_.path(), description, count, options_.num_threads(), progress_);
      for (std::uint64_t index = 0; index < count; ++index) names.push_back(shard_name(index));
    } else {
      io::write_file(directory_.path() + "/" + std::string(kDatasetFileName),
                     print_by_key(to_json(description)));
      names.assign(kDatasetFileNames.begin(), kDatasetFileNames.end());
    }
    directory_.publish(names, options_.replace());
  }

  const PrepareOptions& options_;
  const SourceFiles& sources_;
  base::Progress& progress_;
  std::string fingerprint_;
  PartialDirectory& directory_;
  CorpusPaths paths_;
  std::string resumed_phase_;  ///< of an earlier run; empty after a clean start
  Tokenizer tokenizer_;
  Json corpus_;  ///< what CorpusWriter saved last
  std::uint64_t duplicates_ = 0;
  std::uint64_t resumed_bytes_ = 0;
};

std::optional<Tokenizer> load_tokenizer(const PrepareOptions& options) {
  if (options.train_vocab_size) return std::nullopt;
  return Tokenizer::load(options.vocab_path.empty() ? options.tokenizer_path : options.vocab_path,
                         options.normalizer_rules());
}

/// What lies at the place of the output, if it is the dataset that is asked for. Throws UserError when it is
/// something else that must not be replaced.
std::optional<DatasetDescription> find_prepared(const PrepareOptions& options,
                                                const std::string& fingerprint) {
  namespace fs = std::filesystem;
  const bool empty =
      !fs::exists(options.output) || (fs::is_directory(options.output) && fs::is_empty(options.output));
  if (empty) return std::nullopt;
  base::require(is_dataset(options.output), "{} exists and is no dataset; choose another --output",
                options.output);
  if (options.overwrite) {
    require_replaceable_dataset(options.output, options.replace());
    return std::nullopt;
  }
  DatasetDescription description = read_dataset_description(options.output);
  const std::uint64_t num_there = std::max<std::size_t>(1, shard_directories(options.output).size());
  const auto num_shards = static_cast<std::uint64_t>(options.shards);
  base::require(description.fingerprint == fingerprint && description.shard.count == num_shards &&
                    num_there == num_shards,
                "{} holds a dataset of other input or options; add --overwrite or choose another --output",
                options.output);
  return description;
}

/// A second run would take the vocabulary that the first one wrote for text.
void require_output_outside_input(const PrepareOptions& options) {
  const std::string output = std::filesystem::weakly_canonical(options.output).string();
  for (const std::string& input : options.inputs) {
    if (!std::filesystem::is_directory(input)) continue;
    std::string directory = std::filesystem::weakly_canonical(input).string();
    if (!directory.ends_with('/')) directory += '/';
    base::require(
        !(output + "/").starts_with(directory),
        "the output {} lies inside the input {}; choose another --output, or name the files to read",
        options.output, input);
  }
}

/// The dataset takes the place of all that lies in its directory.
void require_input_outside_output(const std::vector<SourceFile>& sources, const std::string& output) {
  namespace fs = std::filesystem;
  for (const std::string& directory : {output, output + ".partial"}) {
    if (!fs::exists(directory)) continue;
    const std::string beginning = fs::weakly_canonical(directory).string() + "/";
    for (const SourceFile& file : sources) {
      base::require(!fs::weakly_canonical(file.path).string().starts_with(beginning),
                    "the input {} lies inside the output {}; choose another --output", file.path, directory);
    }
  }
}

/// Settles what is a document where that was left open. Returns a line that says so, empty if it was not.
std::string choose_documents(PrepareOptions& options, const std::vector<SourceFile>& sources) {
  if (options.text.documents != DocumentRule::Auto) return {};
  const TextShape shape = sample_text(sources);
  options.text.documents = choose_document_rule(shape);
  if (shape.num_files == 0) return {};
  const auto choice = [](std::string_view chosen, std::string_view others) {
    return fmt::format("documents: {}, by the look of the text; --documents {} changes it", chosen, others);
  };
  if (options.text.documents == DocumentRule::File)
    return choice("each .txt file is one", "blank-line or line");
  if (options.text.documents == DocumentRule::Line)
    return choice("each line of a .txt file is one", "blank-line or file");
  return choice("blank lines separate them in .txt files", "file or line");
}

/// Throws what says more than `error` does: that an input file changed, which may be the cause of it, or that
/// an unfinished dataset is kept.
void explain_failure(const base::UserError& error, const std::vector<SourceFile>& sources,
                     PartialDirectory& directory) {
  try {
    require_unchanged(sources);
  } catch (const base::UserError&) {
    directory.forget();  // no other run has this input
    throw;
  }
  if (!directory.has_record()) return;
  base::fail("{}; what was done is kept in {} for the next run with the same input and options", error.what(),
             directory.path());
}

/// Where the output goes: not in the place of a link, but where it leads.
std::string place_of(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  std::error_code ignored;
  if (!std::filesystem::is_symlink(path, ignored)) return path;
  base::require(std::filesystem::exists(path, ignored),
                "the output {} is a link that leads nowhere; make the directory or choose another --output",
                path);
  return std::filesystem::weakly_canonical(path).string();
}

}  // namespace

PrepareResult prepare(const PrepareOptions& given, base::Progress& progress) {
  PrepareOptions options = given;
  options.output = place_of(options.output);
  options.check();
  require_output_outside_input(options);
  const SourceFiles sources = list_source_files(options.inputs);
  require_input_outside_output(sources.files, options.output);
  for (const std::string& line : sources.remarks()) progress.warn(line);
  const std::string choice = choose_documents(options, sources.files);
  std::optional<Tokenizer> tokenizer = load_tokenizer(options);
  const std::string fingerprint = fingerprint_of(options, sources.files, tokenizer ? &*tokenizer : nullptr);
  if (std::optional<DatasetDescription> there = find_prepared(options, fingerprint)) {
    require_text(there->counts.invalid, options, there->sources);
    return {.description = std::move(*there), .was_there = true, .resumed_bytes = 0};
  }
  if (!choice.empty()) progress.note(choice);
  PartialDirectory directory(options.output, fingerprint, progress);
  try {
    return Run(options, sources, std::move(tokenizer), fingerprint, directory, progress).finish();
  } catch (const base::UserError& error) {
    explain_failure(error, sources.files, directory);
    throw;
  }
}

}  // namespace plenum::data
