#include <filesystem>
#include <fstream>

#include "plenum/data/dataset.h"

#include "tests/fuzz/fuzz.h"

namespace {

/// A directory whose files are the parts of the input: dataset.json, train.idx, train.bin, train.sequences.
/// Each part begins with its size in two bytes.
class DatasetDirectory {
 public:
  explicit DatasetDirectory(std::string_view bytes)
      : path_("/tmp/plenum-fuzz-dataset-" + std::to_string(::getpid())) {
    std::filesystem::create_directories(path_);
    for (const char* name : {"dataset.json", "train.idx", "train.bin", "train.sequences"}) {
      const std::size_t size = bytes.size() < 2 ? 0
                                                : static_cast<unsigned char>(bytes[0]) +
                                                      256u * static_cast<unsigned char>(bytes[1]);
      bytes.remove_prefix(std::min<std::size_t>(2, bytes.size()));
      std::ofstream(path_ + "/" + name, std::ios::binary) << bytes.substr(0, size);
      bytes.remove_prefix(std::min(size, bytes.size()));
    }
  }
  ~DatasetDirectory() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plenum::data;
  const DatasetDirectory directory(plenum::fuzz::as_text(data, size));
  plenum::fuzz::parse_or_refuse([&] { read_dataset_description(directory.path()); });
  plenum::fuzz::parse_or_refuse([&] {
    const IndexedTokens tokens(directory.file("train.bin"), directory.file("train.idx"));
    std::vector<TokenId> ids;
    if (tokens.num_tokens() > 0) tokens.append_tokens(0, tokens.num_tokens(), ids);
    for (std::uint64_t i = 0; i < tokens.num_sentences(); ++i) static_cast<void>(tokens.first_token(i));
  });
  plenum::fuzz::parse_or_refuse([&] {
    const SequenceIndex sequences(directory.file("train.sequences"));
    sequences.verify();
    for (std::uint64_t id = 0; id < sequences.size(); ++id) static_cast<void>(sequences[id]);
  });
  return 0;
}
