#include "plenum/schedule/text/schedule_json.h"

#include "tests/fuzz/schedule_round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plenum::schedule;
  plenum::fuzz::parse_or_refuse([&] {
    plenum::fuzz::expect_round_trip(parse_schedule_json(plenum::fuzz::as_text(data, size), "fuzz"),
                                    print_schedule_json, parse_schedule_json);
  });
  return 0;
}
