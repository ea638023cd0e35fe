#include <nlohmann/json.hpp>

#include "plenum/io/checksum.h"
#include "plenum/train/checkpoint.h"

#include "tests/fuzz/fuzz.h"
#include "tests/support/temporary_directory.h"

namespace {

/// A checkpoint that lacks only its state.json. What lies in its tensors is not read.
class Checkpoint {
 public:
  Checkpoint() {
    directory_.write("config.json", R"({"model_type": "bert"})");
    directory_.write("model.safetensors", "");
    directory_.write("optimizer.safetensors", "");
  }

  void verify(std::string_view state_text) const {
    directory_.write("state.json", state_text);
    plenum::fuzz::parse_or_refuse([&] {
      using namespace plenum::train;
      const TrainingState state = verify_checkpoint(directory_.path()).state;
      if (parse_training_state(to_json_object(state), "again") != state) __builtin_trap();
    });
  }

 private:
  plenum::test::TemporaryDirectory directory_;
};

/// The state with a checksum that is right, so that what lies behind the checksum is reached.
std::string sealed(std::string_view text) {
  nlohmann::json root = nlohmann::json::parse(text, nullptr, false);
  if (!root.is_object()) return std::string(text);
  root.erase("checksum");
  root["checksum"] = plenum::io::format_checksum(plenum::io::checksum(root.dump()));
  return root.dump();
}

}  // namespace

// state.json of a checkpoint, as it is and as someone would have written it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Checkpoint checkpoint;
  const std::string_view text = plenum::fuzz::as_text(data, size);
  checkpoint.verify(text);
  checkpoint.verify(sealed(text));
  return 0;
}
