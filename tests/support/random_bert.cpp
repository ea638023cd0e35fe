#include "tests/support/random_bert.h"

#include <vector>

#include "plenum/base/thread_pool.h"
#include "plenum/data/tokenizer/tokenizer_files.h"
#include "plenum/describe/bert.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/model/hugging_face_weights.h"
#include "plenum/model/initialise.h"

namespace plenum::test {

std::string write_random_bert(const std::string& directory, const std::string& vocabulary,
                              describe::ModelConfig config, std::uint64_t seed) {
  const data::Tokenizer tokenizer(data::parse_vocab_txt(vocabulary, "vocabulary"), data::NormalizerRules());
  const std::string files = directory + "-tokenizer";
  data::write_tokenizer_files(tokenizer, files, static_cast<int>(config.max_positions));
  config.vocabulary = static_cast<std::int64_t>(tokenizer.vocabulary().size());
  const describe::ParameterTable table(describe::describe_bert(config));
  std::vector<float> weights(static_cast<std::size_t>(table.num_elements()));
  base::ThreadPool pool(1);
  model::initialise_weights(table, seed, pool, tensor::TensorView(weights.data(), {table.num_elements()}));
  model::write_hugging_face_directory(
      directory, {.config = config, .table = table, .weights_N = weights, .tokenizer_directory = files});
  return directory;
}

}  // namespace plenum::test
