#include "plenum/data/tokenizer/hub_name.h"

#include <fmt/format.h>

namespace plenum::data {

std::string hub_hint(const std::string& name, const std::string& option) {
  const std::string directory = name.substr(name.rfind('/') + 1);
  return fmt::format(
      "models are not downloaded: if it is a name of Hugging Face's hub, hf download {} --local-dir {} (pip "
      "install huggingface_hub), then {} {}",
      name, directory, option, directory);
}

}  // namespace plenum::data
