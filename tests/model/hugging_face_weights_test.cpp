#include "plenum/model/hugging_face_weights.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plenum/describe/bert.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"
#include "plenum/io/safetensors.h"
#include "plenum/model/hugging_face_config.h"
#include "plenum/model/named_tensors.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_model.h"

namespace plenum::model {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A tiny model whose every element differs, and a directory to write it to.
class HuggingFaceWeights : public testing::Test {
 protected:
  HuggingFaceWeights() {
    std::iota(weights_.begin(), weights_.end(), 1.0f);
    directory_.write("tokenizer/vocab.txt", "[PAD]\n");
    directory_.write("tokenizer/tokenizer.json", "{}");
    directory_.write("tokenizer/notes.txt", "not for export");
    std::filesystem::create_directory(model_path());
  }

  std::string model_path() const { return directory_ / "model"; }
  HuggingFaceModel model() const {
    return {.config = config_,
            .table = table_,
            .weights_N = weights_,
            .tokenizer_directory = directory_ / "tokenizer"};
  }
  std::vector<io::NamedFloats> tensors() const { return named_tensors(table_, weights_); }

  void write(const std::string& name, std::vector<io::NamedFloats> tensors) const {
    std::string bytes;
    io::write_safetensors(std::move(tensors), [&](std::string_view piece) { bytes += piece; });
    directory_.write("model/" + name, bytes);
  }

  ImportReport read(const describe::ParameterTable& table, std::vector<float>& weights_N) const {
    weights_N.assign(static_cast<std::size_t>(table.num_elements()), -1.0f);
    return read_hugging_face_weights(model_path(), table, weights_N);
  }

  /// Reads and expects every parameter as it was, and nothing to report.
  void expect_whole() {
    std::vector<float> read_N;
    const ImportReport report = read(table_, read_N);
    EXPECT_THAT(report.new_tensors, IsEmpty());
    EXPECT_THAT(report.unused_tensors, IsEmpty());
    for (const describe::Parameter& parameter : table_.parameters()) {
      EXPECT_TRUE(std::ranges::equal(elements_of(parameter, read_N), elements_of(parameter, weights_)))
          << parameter.name;
    }
  }

  void expect_refused(std::string_view reason) const {
    std::vector<float> weights_N;
    test::expect_user_error([&] { read(table_, weights_N); }, reason);
  }

  test::TemporaryDirectory directory_;
  describe::ModelConfig config_ = test::tiny_model();
  describe::ParameterTable table_{describe::describe_bert(config_)};
  std::vector<float> weights_ = std::vector<float>(static_cast<std::size_t>(table_.num_elements()));
};

TEST_F(HuggingFaceWeights, AreReadAsTheyWereWritten) {
  write_hugging_face_directory(model_path(), model());
  expect_whole();
  EXPECT_EQ(read_hugging_face_config(model_path()), config_);
  EXPECT_EQ(io::read_file(model_path() + "/vocab.txt"), "[PAD]\n");
  EXPECT_TRUE(std::filesystem::exists(model_path() + "/tokenizer.json"));
  EXPECT_FALSE(std::filesystem::exists(model_path() + "/notes.txt"));
}

TEST_F(HuggingFaceWeights, MayHaveTheNamesOfBertModelAndOldLayerNorms) {
  std::vector<io::NamedFloats> renamed = tensors();
  for (io::NamedFloats& tensor : renamed) {
    if (tensor.name.starts_with("bert.")) tensor.name.erase(0, 5);
    const auto replace = [&](const std::string& from, const std::string& to) {
      if (tensor.name.ends_with(from)) tensor.name.replace(tensor.name.size() - from.size(), from.size(), to);
    };
    replace("LayerNorm.weight", "LayerNorm.gamma");
    replace("LayerNorm.bias", "LayerNorm.beta");
  }
  write("model.safetensors", renamed);
  expect_whole();
}

TEST_F(HuggingFaceWeights, MayLieInShards) {
  const std::vector<io::NamedFloats> all = tensors();
  const std::vector<io::NamedFloats> first(all.begin(), all.begin() + 10);
  const std::vector<io::NamedFloats> second(all.begin() + 10, all.end());
  write("model-00001-of-00002.safetensors", first);
  write("model-00002-of-00002.safetensors", second);
  nlohmann::json index;
  for (const auto& tensor : first) index["weight_map"][tensor.name] = "model-00001-of-00002.safetensors";
  for (const auto& tensor : second) index["weight_map"][tensor.name] = "model-00002-of-00002.safetensors";
  const auto write_index = [&] { directory_.write("model/model.safetensors.index.json", index.dump()); };
  write_index();
  expect_whole();
  const std::string name = second.back().name;
  index["weight_map"][name] = "model-00001-of-00002.safetensors";
  write_index();
  expect_refused("model-00001-of-00002.safetensors: there is no tensor " + name);
  index["weight_map"][name] = "../elsewhere.safetensors";
  write_index();
  expect_refused("must lie in a safetensors file beside the index: \"../elsewhere.safetensors\"");
  index["weight_map"] = nlohmann::json::array();
  write_index();
  expect_refused("model.safetensors.index.json: weight_map must give each tensor a file");
}

TEST_F(HuggingFaceWeights, AreRefusedWhereOneIsNotFinite) {
  const describe::Parameter& pooler =
      *std::ranges::find(table_.parameters(), "bert.pooler.dense.bias", &describe::Parameter::name);
  for (const float broken :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    elements_of(pooler, weights_)[2] = broken;
    write("model.safetensors", tensors());
    expect_refused("model.safetensors: tensor bert.pooler.dense.bias has elements that are not finite");
    expect_refused(fmt::format("element 2 is {}", broken));
  }
}

TEST_F(HuggingFaceWeights, ReplaceOthersOnlyOnceTheyAreChecked) {
  write_hugging_face_directory(model_path(), model());
  const std::string before = io::read_file(model_path() + "/model.safetensors");
  weights_.front() += 1;
  const auto refuse = [&](const std::string& written) {
    EXPECT_NE(io::read_file(written + "/model.safetensors"), before);
    EXPECT_EQ(read_hugging_face_config(written), config_);
    base::fail("refused");
  };
  test::expect_user_error(
      [&] { write_hugging_face_directory(model_path(), model(), io::Replace::Yes, refuse); }, "refused");
  EXPECT_EQ(io::read_file(model_path() + "/model.safetensors"), before);
  EXPECT_THAT(io::names_in(directory_.path()), ElementsAre("model", "tokenizer"));
}

TEST_F(HuggingFaceWeights, MayHoldCopiesOfTiedTensorsAndBuffers) {
  std::vector<io::NamedFloats> all = tensors();
  const auto copy_of = [&](std::string_view name, std::string copy) {
    io::NamedFloats tensor = *std::find_if(all.begin(), all.end(),
                                           [&](const io::NamedFloats& other) { return other.name == name; });
    tensor.name = std::move(copy);
    return tensor;
  };
  const io::NamedFloats decoder =
      copy_of("bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight");
  const io::NamedFloats bias = copy_of("cls.predictions.bias", "cls.predictions.decoder.bias");
  const std::vector<float> positions = {0, 1, 2, 3, 4};
  all.insert(all.end(), {decoder, bias, {"bert.embeddings.position_ids", {1, 5}, positions}});
  write("model.safetensors", all);
  expect_whole();
  std::erase_if(all, [](const io::NamedFloats& tensor) { return tensor.name == "cls.predictions.bias"; });
  write("model.safetensors", all);
  expect_whole();
  std::vector<float> other(decoder.values.begin(), decoder.values.end());
  other.back() += 1;
  for (io::NamedFloats& tensor : all) {
    if (tensor.name == decoder.name) tensor.values = other;
  }
  write("model.safetensors", all);
  expect_refused("cls.predictions.decoder.weight differs from bert.embeddings.word_embeddings.weight");
}

TEST_F(HuggingFaceWeights, OfOtherHeadsAreReported) {
  std::vector<io::NamedFloats> bare = tensors();
  std::erase_if(bare, [](const io::NamedFloats& tensor) { return tensor.name.starts_with("cls."); });
  bare.push_back({.name = "classifier.weight", .sizes = {1}, .values = std::span(weights_).first(1)});
  write("model.safetensors", bare);
  const describe::ParameterTable masked_only(describe::describe_bert(test::tiny_model(false)));
  std::vector<float> read_N;
  const ImportReport report = read(masked_only, read_N);
  EXPECT_THAT(report.unused_tensors,
              ElementsAre("bert.pooler.dense.bias", "bert.pooler.dense.weight", "classifier.weight"));
  EXPECT_THAT(report.new_tensors,
              ElementsAre("cls.predictions.bias", "cls.predictions.transform.LayerNorm.weight",
                          "cls.predictions.transform.LayerNorm.bias",
                          "cls.predictions.transform.dense.weight", "cls.predictions.transform.dense.bias"));
  EXPECT_EQ(read_N[static_cast<std::size_t>(masked_only.at("cls.predictions.bias").begin)], -1.0f)
      << "a new tensor is the caller's to initialise";
}

TEST_F(HuggingFaceWeights, OfMoreLayersThanTheModelHasAreRefused) {
  write("model.safetensors", tensors());
  describe::ModelConfig shallow = config_;
  shallow.num_layers = 1;
  const describe::ParameterTable table(describe::describe_bert(shallow));
  std::vector<float> read_N;
  test::expect_user_error([&] { read(table, read_N); },
                          "tensor bert.encoder.layer.1.attention.output.LayerNorm.bias has no place in the "
                          "model that config.json describes");
}

TEST_F(HuggingFaceWeights, OfAnUnknownPartAreRefused) {
  for (const char* name :
       {"bert.embeddings.task_embeddings.weight", "cls.predictions.extra", "adapter.weight"}) {
    std::vector<io::NamedFloats> more = tensors();
    more.push_back({.name = name, .sizes = {1}, .values = std::span(weights_).first(1)});
    write("model.safetensors", more);
    expect_refused(name);
  }
}

TEST_F(HuggingFaceWeights, ThatDoNotFitAreRefusedByName) {
  std::vector<io::NamedFloats> changed = tensors();
  std::erase_if(changed,
                [](const auto& tensor) { return tensor.name == "bert.encoder.layer.1.output.dense.bias"; });
  write("model.safetensors", changed);
  expect_refused("there is no tensor bert.encoder.layer.1.output.dense.bias");

  changed = tensors();
  for (io::NamedFloats& tensor : changed) {
    if (tensor.name == "bert.encoder.layer.0.intermediate.dense.weight")
      std::swap(tensor.sizes[0], tensor.sizes[1]);
  }
  write("model.safetensors", changed);
  expect_refused(
      "tensor bert.encoder.layer.0.intermediate.dense.weight has shape [4, 6], the model needs [6, 4]");

  changed = tensors();
  changed.push_back(
      {.name = "embeddings.LayerNorm.gamma", .sizes = {4}, .values = std::span(weights_).first(4)});
  write("model.safetensors", changed);
  expect_refused("are the same parameter");
}

TEST_F(HuggingFaceWeights, OfAnotherVocabularyAreRefusedWithBothSizes) {
  write("model.safetensors", tensors());
  config_.vocabulary = 12;
  table_ = describe::ParameterTable(describe::describe_bert(config_));
  expect_refused("another vocabulary");
  expect_refused("11 tokens, not 12");
}

TEST_F(HuggingFaceWeights, OfOtherFormatsAreRefused) {
  expect_refused("there is no model.safetensors and no model.safetensors.index.json");
  directory_.write("model/pytorch_model.bin", "PK");
  expect_refused("only pytorch_model.bin is there");
}

TEST_F(HuggingFaceWeights, InPlacesThatCannotBeReadAreAnErrorOfTheUser) {
  std::filesystem::create_symlink("circle", directory_ / "circle");
  const std::string places[] = {directory_ / "circle", directory_ / std::string(300, 'a')};
  for (const std::string& place : places) {
    std::vector<float> weights_N = weights_;
    test::expect_user_error([&] { read_hugging_face_weights(place, table_, weights_N); }, "cannot read");
    test::expect_user_error([&] { write_hugging_face_directory(place, model(), io::Replace::Yes); }, place);
    HuggingFaceModel exported = model();
    exported.tokenizer_directory = place;
    test::expect_user_error([&] { write_hugging_face_directory(directory_ / "export", exported); },
                            "cannot read");
  }
}

TEST_F(HuggingFaceWeights, ReplaceOnlyWhatWasAskedForAndIsKnown) {
  write_hugging_face_directory(model_path(), model());
  test::expect_user_error([&] { write_hugging_face_directory(model_path(), model()); },
                          "is there already; add --overwrite");
  weights_[0] = 77;
  write_hugging_face_directory(model_path() + "/", model(), io::Replace::Yes);
  expect_whole();
  directory_.write("model/README.md", "mine");
  test::expect_user_error([&] { write_hugging_face_directory(model_path(), model(), io::Replace::Yes); },
                          "holds other files; move it or choose another name: README.md");
  EXPECT_EQ(io::read_file(model_path() + "/README.md"), "mine");
}

TEST_F(HuggingFaceWeights, LeaveNothingWhenTheyCannotBeWritten) {
  const auto num_entries = [&] {
    return std::distance(std::filesystem::directory_iterator(directory_.path()),
                         std::filesystem::directory_iterator());
  };
  directory_.write("settings/tokenizer_config.json", "{}");
  const auto before = num_entries();
  {
    const test::FileSizeLimit full_disk(1000);
    test::expect_user_error([&] { write_hugging_face_directory(directory_ / "export", model()); },
                            "cannot write");
  }
  HuggingFaceModel without_tokenizer = model();
  without_tokenizer.tokenizer_directory = directory_ / "nowhere";
  test::expect_user_error([&] { write_hugging_face_directory(directory_ / "export", without_tokenizer); },
                          "there is no tokenizer");
  without_tokenizer.tokenizer_directory = directory_ / "settings";
  test::expect_user_error([&] { write_hugging_face_directory(directory_ / "export", without_tokenizer); },
                          "there is no tokenizer (vocab.txt or tokenizer.json)");
  EXPECT_EQ(num_entries(), before);
}

}  // namespace
}  // namespace plenum::model
