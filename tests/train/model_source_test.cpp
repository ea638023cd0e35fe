#include "plenum/train/model_source.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <gmock/gmock.h>

#include "plenum/base/progress.h"
#include "plenum/describe/bert.h"
#include "plenum/model/hugging_face_config.h"
#include "plenum/model/hugging_face_weights.h"
#include "plenum/model/named_tensors.h"
#include "plenum/train/mask_filling.h"
#include "plenum/train/model_export.h"

#include "tests/support/expect_user_error.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

/// A run, and the model of its last checkpoint exported.
class ModelSourceTest : public TrainingTest {
 protected:
  ModelSourceTest() {
    RunOptions given = options("run", 2);
    given.data.mask_unit = data::MaskUnit::Word;
    run(given);
    checkpoint_ = CheckpointStore(given.run.directory, 1).list().back();
    export_model(find(directory_ / "run"), exported_, io::Replace::No, 1);
  }

  static ModelSource find(const std::string& path) {
    base::SilentProgress silent;
    return find_model(path, silent);
  }

  /// Of training that begins with the model of a directory.
  std::string error_of_init(const std::string& directory, const std::string& dataset) {
    RunOptions given = options("other", 1);
    given.data.directory = dataset;
    given.model = {};
    given.model.init = directory;
    return test::user_error_of([&] { run(given); });
  }

  std::string error_of_match(const std::string& directory, const std::string& dataset) const {
    const ModelSource source = find(directory);
    return test::user_error_of(
        [&] { require_same_tokens(data::Dataset(dataset), source.tokenizer, source.config); });
  }

  /// A dataset whose vocabulary has two tokens in each other's place.
  std::string prepare_swapped() const {
    std::string vocabulary = data::letter_vocabulary();
    vocabulary.replace(vocabulary.find("\nb\nc\n"), 5, "\nc\nb\n");
    return prepare("swapped", data::Objective::MaskedLanguageModel, vocabulary);
  }

  /// Gives the exported model rows of embeddings that no token has.
  void pad_vocabulary(std::int64_t rows) const {
    const describe::ModelConfig config = model::read_hugging_face_config(exported_);
    describe::ModelConfig padded = config;
    padded.vocabulary = rows;
    const describe::ParameterTable table(describe::describe_bert(config));
    const describe::ParameterTable wider(describe::describe_bert(padded));
    std::vector<float> weights_N(static_cast<std::size_t>(table.num_elements()));
    std::vector<float> padded_N(static_cast<std::size_t>(wider.num_elements()), 9.0f);
    model::read_hugging_face_weights(exported_, table, weights_N);
    for (std::size_t i = 0; i < table.parameters().size(); ++i) {
      std::ranges::copy(model::elements_of(table.parameters()[i], weights_N),
                        model::elements_of(wider.parameters()[i], padded_N).begin());
    }
    model::write_hugging_face_directory(
        exported_,
        {.config = padded, .table = wider, .weights_N = padded_N, .tokenizer_directory = exported_},
        io::Replace::Yes);
  }

  std::string checkpoint_;
  std::string exported_ = directory_ / "exported";
};

TEST_F(ModelSourceTest, KnowsTheRunThatTrainedIt) {
  EXPECT_EQ(training_data_of(find(directory_ / "run")).mask_unit, data::MaskUnit::Word);
  EXPECT_EQ(training_data_of(find(checkpoint_)).mask_unit, data::MaskUnit::Word);
  EXPECT_EQ(find(checkpoint_).tokenizer, fs::canonical(directory_ / "run/tokenizer"));
  EXPECT_EQ(training_data_of(find(exported_)).mask_unit, data::MaskUnit::Token);
}

TEST_F(ModelSourceTest, IsOfNoRunBecauseAConfigTomlLiesAbove) {
  for (const char* place : {"run/models/mine", "run/checkpoints/mine"}) {
    fs::create_directories(fs::path(directory_ / place).parent_path());
    fs::copy(exported_, directory_ / place);
    EXPECT_EQ(find(directory_ / place).tokenizer, directory_ / place);
    EXPECT_EQ(find(directory_ / place).run, "");
  }
  fs::copy(checkpoint_, directory_ / "run/models/kept");
  EXPECT_EQ(find(directory_ / "run/models/kept").tokenizer, directory_ / "run/models/kept");
}

TEST_F(ModelSourceTest, NamesTheFirstTokenThatADatasetHasAnotherIdFor) {
  const std::string swapped = prepare_swapped();
  for (const std::string& directory : {checkpoint_, exported_}) {
    EXPECT_EQ(error_of_match(directory, dataset_), "no error");
    EXPECT_THAT(error_of_match(directory, swapped),
                HasSubstr("token 8 is 'c' in the dataset and 'b' in the model"));
    EXPECT_THAT(error_of_init(directory, swapped),
                AllOf(HasSubstr("swapped was prepared with another tokenizer than"),
                      HasSubstr("token 8 is 'c' in the dataset and 'b' in the model")));
  }
}

TEST_F(ModelSourceTest, RefusesADatasetOfAVocabularyThatIsOnlyTheBeginningOfAnother) {
  const std::string longer =
      prepare("longer", data::Objective::MaskedLanguageModel, data::letter_vocabulary() + "the\n");
  EXPECT_THAT(error_of_match(exported_, longer),
              HasSubstr("the dataset has 60 tokens and the model 59, of which the first 59 are the same"));
  std::string beginning = data::letter_vocabulary();
  beginning.resize(beginning.find("##z"));
  const std::string shorter = prepare("shorter", data::Objective::MaskedLanguageModel, beginning);
  EXPECT_THAT(error_of_init(exported_, shorter),
              HasSubstr("the dataset has 58 tokens and the model 59, of which the first 58 are the same"));
}

TEST_F(ModelSourceTest, RefusesADatasetMadeByOtherRulesForText) {
  const auto replace_in_tokenizer = [&](const std::string& from, const std::string& to) {
    for (const char* name : {"/tokenizer.json", "/tokenizer_config.json"}) {
      std::string text = io::read_file(exported_ + name);
      if (const std::size_t at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
      io::write_file(exported_ + name, text);
    }
  };
  replace_in_tokenizer("\"max_input_chars_per_word\": 100", "\"max_input_chars_per_word\": 99");
  EXPECT_THAT(error_of_match(exported_, dataset_),
              HasSubstr("words have at most 100 characters in the dataset, 99 in the model"));
  replace_in_tokenizer("\"lowercase\": true", "\"lowercase\": false");
  replace_in_tokenizer("\"do_lower_case\": true", "\"do_lower_case\": false");
  EXPECT_THAT(error_of_init(exported_, dataset_),
              AllOf(HasSubstr("prepare the text with plenum prepare --tokenizer " + exported_),
                    HasSubstr("lower case: yes in the dataset, no in the model")));
}

TEST_F(ModelSourceTest, TakesADatasetOfAnyRulesForAModelThatStatesNone) {
  fs::remove(exported_ + "/tokenizer.json");
  fs::remove(exported_ + "/tokenizer_config.json");
  data::PrepareOptions cased;
  cased.inputs = {dataset_ + ".txt"};
  cased.output = directory_ / "cased";
  cased.vocab_path = exported_ + "/vocab.txt";
  cased.cased = true;
  cased.sequences.max_length = 24;
  cased.threads = 1;
  base::SilentProgress silent;
  data::prepare(cased, silent);
  EXPECT_EQ(error_of_match(exported_, cased.output), "no error");
}

/// Writes a configuration beside the weights of an exported model that says something else of them.
void alter_config(const std::string& directory, const std::function<void(describe::ModelConfig&)>& alter) {
  describe::ModelConfig config = model::read_hugging_face_config(directory);
  alter(config);
  io::write_file(directory + "/config.json", model::print_hugging_face_config(config));
}

TEST_F(ModelSourceTest, IsRefusedWithMoreLayersThanItsConfigurationNames) {
  alter_config(exported_, [](describe::ModelConfig& config) { config.num_layers = 1; });
  const ModelSource source = find(exported_);
  const std::string reason =
      "model.safetensors: tensor bert.encoder.layer.1.attention.output.LayerNorm.bias has no place";
  test::expect_user_error([&] { MaskFilling(source, {"a [MASK]"}, 1); }, reason);
  test::expect_user_error([&] { export_model(source, directory_ / "again", io::Replace::No, 1); }, reason);
  EXPECT_FALSE(fs::exists(directory_ / "again"));
  EXPECT_THAT(error_of_init(exported_, dataset_), HasSubstr(reason));
  EXPECT_FALSE(fs::exists(directory_ / "other"));
}

TEST_F(ModelSourceTest, SaysWhichHeadsItDoesWithout) {
  RunOptions given = options("pairs-run", 2);
  given.data.directory = prepare("pairs", data::Objective::WithNextSentence);
  run(given);
  const std::string exported = directory_ / "pairs-exported";
  export_model(find(given.run.directory), exported, io::Replace::No, 1);
  alter_config(exported, [](describe::ModelConfig& config) { config.has_next_sentence = false; });
  std::vector<std::string> notes;
  const Note note = [&](std::string_view line) { notes.emplace_back(line); };
  MaskFilling(find(exported), {"a [MASK]"}, 1, tensor::Device::Cpu, note);
  export_model(find(exported), directory_ / "again", io::Replace::No, 1, note);
  const auto is_told = AllOf(HasSubstr("not used from "), HasSubstr("bert.pooler.dense.weight"),
                             HasSubstr("cls.seq_relationship.weight"));
  EXPECT_THAT(notes, testing::ElementsAre(is_told, is_told));
}

TEST_F(ModelSourceTest, MayHaveMoreEmbeddingsThanThereAreTokens) {
  pad_vocabulary(64);
  EXPECT_EQ(error_of_match(exported_, dataset_), "no error");
  EXPECT_EQ(error_of_init(exported_, dataset_), "no error");
  MaskFilling filling(find(exported_), {"the [MASK] is full"}, 1);
  EXPECT_EQ(filling.guesses(0, 1000).front().size(), 59U - 5U) << "only tokens are guesses";

  fs::remove(exported_ + "/tokenizer.json");
  fs::remove(exported_ + "/vocab.txt");
  EXPECT_THAT(error_of_match(exported_, dataset_),
              AllOf(HasSubstr("has 59 tokens and the model 64"), HasSubstr("put its vocab.txt into")));
}

}  // namespace
}  // namespace plenum::train
