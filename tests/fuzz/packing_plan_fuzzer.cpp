#include "plenum/data/batches/packing_plan_file.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  plenum::fuzz::parse_or_refuse([&] {
    const plenum::fuzz::InputFile file(plenum::fuzz::as_text(data, size));
    const plenum::packing::PackingPlan plan = plenum::data::read_packing_plan(file.path());
    // What was read is written and read again the same.
    const plenum::fuzz::InputFile copy(plenum::data::print_packing_plan(plan));
    if (plenum::data::read_packing_plan(copy.path()).num_packs() != plan.num_packs()) __builtin_trap();
  });
  return 0;
}
