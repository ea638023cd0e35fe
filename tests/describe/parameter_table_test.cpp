#include "plenum/describe/parameter_table.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/describe/bert.h"

namespace plenum::describe {
namespace {

constexpr std::int64_t kAlignedElements = 128;  // 256 bytes in bfloat16

ModelConfig with_next_sentence(std::string_view name) {
  ModelConfig config = preset(name);
  config.has_next_sentence = true;
  return config;
}

TEST(ParameterTable, CountsWhatThePublishedModelsHave) {
  EXPECT_EQ(ParameterTable(describe_bert(with_next_sentence("bert-base"))).num_parameters(), 110'106'428);
  EXPECT_EQ(ParameterTable(describe_bert(with_next_sentence("bert-large"))).num_parameters(), 336'226'108);
  EXPECT_EQ(ParameterTable(describe_bert(with_next_sentence("bert-base"))).parameters().size(), 206U);
  EXPECT_EQ(ParameterTable(describe_bert(preset("bert-base"))).parameters().size(), 202U);
}

TEST(ParameterTable, OfAnEncoderIsThatOfTheModelWithoutHeads) {
  const ParameterTable whole(describe_bert(with_next_sentence("bert-base")));
  const ParameterTable encoder(describe_bert_encoder(with_next_sentence("bert-base")));
  std::set<std::string> expected;
  for (const Parameter& parameter : whole.parameters()) {
    if (parameter.part != ModelPart::Head) expected.insert(parameter.name);
  }
  std::set<std::string> names;
  for (const Parameter& parameter : encoder.parameters()) names.insert(parameter.name);
  EXPECT_EQ(names, expected);
  // BertModel's 109,482,240 without its pooler.
  EXPECT_EQ(encoder.num_parameters(), 109'482'240 - (768 * 768 + 768));
  EXPECT_EQ(encoder.model().num_row_lists(), 1U);
  EXPECT_EQ(whole.model().num_row_lists(), 2U);
}

TEST(ParameterTable, LaysTensorsOutWithoutOverlapAndAligned) {
  const ParameterTable table(
      describe_bert(with_next_sentence("bert-tiny")));  // whose head has a bias of two elements
  std::int64_t end = 0;
  std::set<std::string> names;
  for (const Parameter& parameter : table.parameters()) {
    EXPECT_GE(parameter.begin, end) << parameter.name;
    EXPECT_EQ(parameter.begin % kAlignedElements, 0) << parameter.name;
    EXPECT_TRUE(names.insert(parameter.name).second) << parameter.name;
    end = parameter.end();
  }
  EXPECT_GE(table.num_elements(), end);
}

TEST(ParameterTable, KeepsQueriesKeysAndValuesTogetherForAnyWidth) {
  ModelConfig config = preset("bert-tiny");
  config.width = 6;  // queries end where no aligned tensor begins
  config.num_heads = 3;
  const ParameterTable table(describe_bert(config));
  for (std::size_t layer = 0; layer < 2; ++layer) {
    const std::vector<LinearMap>& maps = table.model().layers[layer].attention.projections;
    EXPECT_EQ(table.at(maps[1].weight).begin, table.at(maps[0].weight).end());
    EXPECT_EQ(table.at(maps[2].weight).begin, table.at(maps[1].weight).end());
    EXPECT_EQ(table.at(maps[1].bias).begin, table.at(maps[0].bias).end());
    EXPECT_EQ(table.at(maps[2].bias).begin, table.at(maps[1].bias).end());
    EXPECT_EQ(table.at(maps[0].weight).begin % kAlignedElements, 0);
    EXPECT_EQ(table.at(maps[0].bias).begin % kAlignedElements, 0);
  }
}

TEST(ParameterTable, GivesTheGradientsOfLayersAsRanges) {
  const ParameterTable table(describe_bert(with_next_sentence("bert-mini")));
  const auto last = table.elements_of_layers({3}, {4});
  const auto middle = table.elements_of_layers({1}, {3});
  const auto first = table.elements_of_layers({0}, {1});
  EXPECT_EQ(last.begin, 0);
  EXPECT_EQ(last.end, middle.begin);
  EXPECT_EQ(middle.end, first.begin);
  EXPECT_EQ(first.end, table.num_elements());
  for (const Parameter& parameter : table.parameters()) {
    const auto range =
        table.elements_of_layers(parameter.layer, {static_cast<std::uint16_t>(parameter.layer.value + 1)});
    EXPECT_GE(parameter.begin, range.begin) << parameter.name;
    EXPECT_LE(parameter.end(), range.end) << parameter.name;
  }
}

TEST(ParameterTable, DividesBertAsMegatronDoes) {
  // Shoeybi et al., 2019: heads and the MLP's inner width are divided, so a layer's first maps by output, its
  // second ones by input, whose biases are added once; words by vocabulary. All else is replicated.
  const ParameterTable table(describe_bert(with_next_sentence("bert-tiny")));
  const std::optional<std::size_t> whole;
  std::map<std::string, std::optional<std::size_t>> expected = {
      {"bert.embeddings.word_embeddings.weight", 0},
      {"bert.embeddings.position_embeddings.weight", whole},
      {"bert.embeddings.token_type_embeddings.weight", whole},
      {"bert.embeddings.LayerNorm.weight", whole},
      {"bert.embeddings.LayerNorm.bias", whole},
      {"bert.pooler.dense.weight", whole},
      {"bert.pooler.dense.bias", whole},
      {"cls.predictions.transform.dense.weight", whole},
      {"cls.predictions.transform.dense.bias", whole},
      {"cls.predictions.transform.LayerNorm.weight", whole},
      {"cls.predictions.transform.LayerNorm.bias", whole},
      {"cls.predictions.bias", 0},
      {"cls.seq_relationship.weight", whole},
      {"cls.seq_relationship.bias", whole}};
  for (const char* layer : {"bert.encoder.layer.0.", "bert.encoder.layer.1."}) {
    const std::string prefix = layer;
    for (const char* map :
         {"attention.self.query", "attention.self.key", "attention.self.value", "intermediate.dense"}) {
      expected[prefix + map + ".weight"] = 0;
      expected[prefix + map + ".bias"] = 0;
    }
    for (const char* map : {"attention.output.dense", "output.dense"}) {
      expected[prefix + map + ".weight"] = 1;
      expected[prefix + map + ".bias"] = whole;
    }
    for (const char* norm : {"attention.output.LayerNorm", "output.LayerNorm"}) {
      expected[prefix + norm + ".weight"] = whole;
      expected[prefix + norm + ".bias"] = whole;
    }
  }
  std::map<std::string, std::optional<std::size_t>> actual;
  for (const Parameter& parameter : table.parameters()) actual[parameter.name] = parameter.split_dim;
  EXPECT_EQ(actual, expected);
  EXPECT_EQ(table.model().heads.front().output.split_dim, table.model().embedding.words.split_dim);
}

TEST(ParameterTable, RefusesAModelThatCannotBeCounted) {
  ModelConfig config = preset("bert-tiny");
  config.width = config.mlp_width = 1 << 24;
  config.num_layers = 1 << 14;
  EXPECT_NO_THROW(require_valid(config));
  EXPECT_THROW(ParameterTable{describe_bert(config)}, base::UserError);
}

LayerRange layers(std::size_t first, std::size_t end) {
  return {base::LayerId::at(first), base::LayerId::at(end)};
}

/// Their names, in the order of the table.
std::vector<std::string> names_of(const ParameterTable& table, const ParameterTable::ElementRange& range) {
  std::vector<std::string> names;
  for (const Parameter& parameter : table.parameters()) {
    if (parameter.begin >= range.begin && parameter.end() <= range.end) names.push_back(parameter.name);
  }
  return names;
}

TEST(ParameterTable, OfStagesHasTheParametersOfTheirLayersAlone) {
  const ModelDescription model = describe_bert(with_next_sentence("bert-mini"));  // of 4 layers
  const ParameterTable whole(model);
  const ParameterTable middle(model, {layers(1, 3)});
  EXPECT_EQ(names_of(middle, {0, middle.num_elements()}),
            names_of(whole, whole.elements_of_layers(base::LayerId::at(1), base::LayerId::at(3))));
  EXPECT_EQ(middle.tied(), nullptr);
  EXPECT_TRUE(middle.holds(base::LayerId::at(2)));
  EXPECT_FALSE(middle.holds_first());
  EXPECT_FALSE(middle.holds_last());
  const ParameterTable::ElementRange none =
      middle.elements_of_layers(base::LayerId::at(3), base::LayerId::at(4));
  EXPECT_EQ(none.begin, none.end);
}

TEST(ParameterTable, HasTheTiedTableLastOnBothEndsOfAPipeline) {
  const ModelDescription model = describe_bert(with_next_sentence("bert-mini"));
  const ParameterTable whole(model);
  const ParameterTable first(model, {layers(0, 2)});
  const ParameterTable last(model, {layers(2, 4)});
  for (const ParameterTable* table : {&first, &last}) {
    ASSERT_NE(table->tied(), nullptr);
    EXPECT_EQ(table->tied()->name, whole.tied()->name);
    EXPECT_EQ(table->tied(), &table->parameters().back());
    EXPECT_TRUE(table->is_tied_apart());
  }
  EXPECT_FALSE(whole.is_tied_apart());
  EXPECT_EQ(first.elements_of_layers({}, base::LayerId::at(2)).end, first.num_elements());
  // With the last layers it is none of theirs.
  EXPECT_EQ(last.elements_of_layers(base::LayerId::at(2), base::LayerId::at(4)).end, last.tied()->begin);
  EXPECT_EQ(first.num_parameters() + last.num_parameters(),
            whole.num_parameters() + whole.tied()->num_elements());
}

TEST(ParameterTable, OfBothEndsHasEachStageAsARange) {
  // As a rank of Chimera has them.
  const ModelDescription model = describe_bert(with_next_sentence("bert-mini"));
  const ParameterTable table(model, {layers(0, 1), layers(3, 4)});
  const ParameterTable whole(model);
  EXPECT_EQ(table.held(), (std::vector{layers(3, 4), layers(0, 1)}));
  for (const LayerRange& stage : table.held()) {
    EXPECT_EQ(names_of(table, table.elements_of_layers(stage.first, stage.second)),
              names_of(whole, whole.elements_of_layers(stage.first, stage.second)));
  }
  EXPECT_TRUE(table.is_tied_apart());
}

}  // namespace
}  // namespace plenum::describe
