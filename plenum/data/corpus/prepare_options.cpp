#include "plenum/data/corpus/prepare_options.h"

#include <limits>

#include "plenum/base/check.h"
#include "plenum/base/machine.h"

namespace plenum::data {

base::OptionTable PrepareOptions::table() {
  base::OptionTable options("prepare");
  options
      .add("inputs", inputs, "PATH",
           "Files or directories of text: .txt, .jsonl, .csv, .tsv, each also .gz or .zst")
      .positional = true;
  options.add("output", output, "DIR", "Where the dataset goes");
  options.add("vocab", vocab_path, "FILE", "Tokenize with this vocab.txt or tokenizer.json");
  options.add("tokenizer", tokenizer_path, "DIR", "Tokenize as this Hugging Face directory says");
  options.add("train-vocab", train_vocab_size, 6, 10'000'000, "Train a vocabulary of this size on the input");
  options.add("cased", cased, "Keep capital letters (with --vocab or --train-vocab)");
  options.add_choice("strip-accents", strip_accents,
                     {{"auto", StripAccents::Auto}, {"yes", StripAccents::Yes}, {"no", StripAccents::No}},
                     "Drop accents (with --vocab or --train-vocab); auto does unless --cased");
  options.add("max-length", sequences.max_length, 5, 1 << 20,
              "Longest sequence in tokens, with special tokens");
  options.add_choice("objective", sequences.objective,
                     {{"mlm", Objective::MaskedLanguageModel}, {"mlm+nsp", Objective::WithNextSentence}},
                     "What is trained: masked language model, alone or with next-sentence pairs");
  options.add("short-seq-prob", sequences.short_sequence_probability, 0.0, 1.0,
              "Share of documents cut into shorter pairs (mlm+nsp)");
  options.add_choice("split", sequences.cut, {{"sentence", CutRule::Sentence}, {"token", CutRule::Token}},
                     "Where a sequence may end; token fills every sequence to the brim (mlm)");
  options.add("truncate", sequences.only_first, "Keep only the first sequence of each document");
  options.add_fraction("holdout", holdout, "Share of documents set aside for evaluation, such as 0.5%");
  options.add_choice("documents", text.documents,
                     {{"auto", DocumentRule::Auto},
                      {"blank-line", DocumentRule::BlankLine},
                      {"line", DocumentRule::Line},
                      {"file", DocumentRule::File}},
                     "What is a document in .txt files; auto looks at the text");
  options.add_choice(
      "invalid-utf8", text.invalid,
      {{"refuse", InvalidTextRule::Refuse}, {"replace", InvalidTextRule::Replace}},
      "Bytes that are not UTF-8: stop there, or read U+FFFD, which most tokenizers drop, and count");
  options.add("text-field", text.text_field, "NAME",
              "Field of .jsonl objects or column of .csv and .tsv files");
  options.add("seed", seed, 0, std::numeric_limits<std::int64_t>::max(),
              "Seed of holdout and sentence pairs");
  options.add("threads", threads, 1, 4096, "Threads; all cores if not given");
  options.add("overwrite", overwrite, "Replace the dataset that is in the output directory");
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
