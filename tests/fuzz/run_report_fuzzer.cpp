// Reports of damaged runs: they are read and written as a page, alone and beside another, or refused.
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "plenum/report/page.h"
#include "plenum/report/read_run.h"

#include "tests/fuzz/fuzz.h"

namespace {

constexpr std::array<const char*, 5> kFiles = {"metrics.jsonl", "evaluations.jsonl", "events.jsonl",
                                               "step.json", "config.toml"};
/// What seeds have where text of a run may stand: it must not become a tag.
constexpr std::string_view kTag = "<x9";

/// The directory of a run of which one file at a time is damaged.
class DamagedRun {
 public:
  DamagedRun() {
    char name[] = "/tmp/plenum-fuzz-run-XXXXXX";
    if (::mkdtemp(name) == nullptr) __builtin_trap();
    directory_ = name;
    write("lock", "");
    for (const char* file : kFiles) write(file, "");
    write("metrics.jsonl", "{\"step\":1,\"loss\":2.5,\"seconds\":0.5,\"real_tokens\":9,\"num_steps\":4}\n");
  }
  ~DamagedRun() {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  DamagedRun(const DamagedRun&) = delete;
  DamagedRun& operator=(const DamagedRun&) = delete;

  const std::string& directory() const { return directory_; }
  void write(const std::string& file, std::string_view bytes) const {
    std::ofstream(directory_ + "/" + file, std::ios::binary) << bytes;
  }

 private:
  std::string directory_;
};

}  // namespace

// The first byte chooses the file; the rest is what it holds.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const DamagedRun run;
  const char* const file = kFiles[data[0] % kFiles.size()];
  const bool has_steps = file == std::string_view("metrics.jsonl");
  run.write(file, plenum::fuzz::as_text(data + 1, size - 1));
  plenum::fuzz::parse_or_refuse([&] {
    plenum::report::RunRecord read = plenum::report::read_run(run.directory());
    const std::string page = plenum::report::run_page(read, {});
    if (page.find(kTag) != std::string::npos) __builtin_trap();
    plenum::report::RunRecord other = read;
    other.name = "other";
    if (plenum::report::comparison_page({read, other}, {}).find(kTag) != std::string::npos) __builtin_trap();
  });
  run.write(file, has_steps ? "{\"step\":1,\"loss\":2.5,\"seconds\":0.5,\"num_steps\":4}\n" : "");
  return 0;
}
