#include <vector>

#include "plenum/describe/bert.h"
#include "plenum/io/safetensors.h"
#include "plenum/model/hugging_face_weights.h"
#include "plenum/model/named_tensors.h"

#include "tests/fuzz/fuzz.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_model.h"

namespace {

using plenum::io::NamedFloats;

/// A tiny BERT in two shards, that of the encoder and that of all else, which lacks only its index.
class ShardedModel {
 public:
  ShardedModel() {
    std::vector<NamedFloats> encoder;
    std::vector<NamedFloats> rest;
    for (NamedFloats& tensor : plenum::model::named_tensors(table_, weights_))
      (tensor.name.starts_with("bert.encoder") ? encoder : rest).push_back(std::move(tensor));
    write("encoder.safetensors", std::move(encoder));
    write("rest.safetensors", std::move(rest));
  }

  void read(std::string_view index) {
    directory_.write("model.safetensors.index.json", index);
    plenum::fuzz::parse_or_refuse(
        [&] { plenum::model::read_hugging_face_weights(directory_.path(), table_, weights_); });
  }

 private:
  void write(const char* name, std::vector<NamedFloats> tensors) const {
    std::string bytes;
    plenum::io::write_safetensors(std::move(tensors), [&](std::string_view piece) { bytes += piece; });
    directory_.write(name, bytes);
  }

  plenum::describe::ParameterTable table_{plenum::describe::describe_bert(plenum::test::tiny_model())};
  std::vector<float> weights_ = std::vector<float>(static_cast<std::size_t>(table_.num_elements()));
  plenum::test::TemporaryDirectory directory_;
};

}  // namespace

// model.safetensors.index.json, which says in which shard each tensor lies.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static ShardedModel model;
  model.read(plenum::fuzz::as_text(data, size));
  return 0;
}
