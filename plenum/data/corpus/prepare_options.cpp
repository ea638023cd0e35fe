#include "plenum/data/corpus/prepare_options.h"

#include <limits>

#include "plenum/base/check.h"
#include "plenum/base/machine.h"
#include "plenum/data/corpus/dataset_shard.h"

namespace plenum::data {

base::OptionTable PrepareOptions::table() {
  base::OptionTable options("prepare");
  options
      .add("inputs", inputs, "PATH",
           "Files or directories of text: .txt, .jsonl, .csv, .tsv, each also .gz or .zst")
      .positional = true;
  options.add("output", output, "DIR", "Output directory");
  options.add("vocab", vocab_path, "FILE", "Use the vocabulary in this vocab.txt or tokenizer.json");
  options.add("tokenizer", tokenizer_path, "DIR",
              "Use the tokenizer of this Hugging Face model; needed to train it further");
  options.add("train-vocab", train_vocab_size, 6, 10'000'000,
              "Train a new vocabulary of N tokens on the text, such as 30000");
  options.add("cased", cased, "Keep capital letters (with --vocab or --train-vocab)");
  options.add_choice("strip-accents", strip_accents,
                     {{"auto", StripAccents::Auto}, {"yes", StripAccents::Yes}, {"no", StripAccents::No}},
                     "Remove accents (with --vocab or --train-vocab); auto: unless --cased");
  options.add("max-length", sequences.max_length, 5, 1 << 20,
              "Maximum sequence length in tokens, including [CLS] and [SEP]");
  options.add_choice("objective", sequences.objective,
                     {{"mlm", Objective::MaskedLanguageModel}, {"mlm+nsp", Objective::WithNextSentence}},
                     "Train on masked tokens, or on next-sentence pairs as well");
  options.add("short-seq-prob", sequences.short_sequence_probability, 0.0, 1.0,
              "Share of documents cut into shorter pairs, for mlm+nsp");
  options.add_choice("split", sequences.cut, {{"sentence", CutRule::Sentence}, {"token", CutRule::Token}},
                     "End sequences between sentences, or anywhere to fill them completely");
  options.add("truncate", sequences.only_first,
              "Keep only the first sequence of each document, drop the rest");
  options.add_fraction("holdout", holdout, "Share of documents held out for evaluation, such as 1%");
  options.add_choice("documents", text.documents,
                     {{"auto", DocumentRule::Auto},
                      {"blank-line", DocumentRule::BlankLine},
                      {"line", DocumentRule::Line},
                      {"file", DocumentRule::File}},
                     "What ends a document in .txt files; auto decides by looking at the text");
  options.add_choice("invalid-utf8", text.invalid,
                     {{"refuse", InvalidTextRule::Refuse}, {"replace", InvalidTextRule::Replace}},
                     "Stop at bytes that are not UTF-8, or replace and count them");
  options.add("text-field", text.text_field, "NAME",
              "Field of .jsonl or column of .csv and .tsv files that holds the text");
  options.add("seed", seed, 0, std::numeric_limits<std::int64_t>::max(),
              "Random seed for the holdout and sentence pairs");
  options.add("shards", shards, 1, kMostShards,
              "Divide the dataset into N directories, shard-0 and so on, for --data-sharding local");
  options.add("threads", threads, 1, 4096, "Number of threads (default: all cores)");
  options.add("overwrite", overwrite, "Replace the dataset in the output directory");
  return options;
}

void PrepareOptions::check() const {
  base::require(!output.empty(), "no place for the dataset is given; add --output DIR");
  const int num_tokenizers = (vocab_path.empty() ? 0 : 1) + (tokenizer_path.empty() ? 0 : 1) +
                             (train_vocab_size.has_value() ? 1 : 0);
  base::require(num_tokenizers == 1,
                "give exactly one of --vocab FILE, --tokenizer DIR and --train-vocab N (for instance 30000)");
  base::require(tokenizer_path.empty() || (!cased && strip_accents == StripAccents::Auto),
                "--cased and --strip-accents do not go with --tokenizer, which states its own rules");
  const bool pairs = sequences.objective == Objective::WithNextSentence;
  base::require(!pairs || sequences.cut == CutRule::Sentence,
                "--split token does not go with --objective mlm+nsp, whose pairs consist of sentences");
}

NormalizerRules PrepareOptions::normalizer_rules() const {
  NormalizerRules rules;
  rules.lowercase = !cased;
  if (strip_accents != StripAccents::Auto) rules.strip_accents = strip_accents == StripAccents::Yes;
  return rules;
}

std::size_t PrepareOptions::num_threads() const {
  return static_cast<std::size_t>(threads.value_or(base::usable_cores()));
}

}  // namespace plenum::data
