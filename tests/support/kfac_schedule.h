#pragma once

#include <string_view>

namespace plenum::test {

/// Two holders of one layer with two linear maps: curvature of step 0 of each two; its inverses are used from
/// the step after on.
inline constexpr std::string_view kKfacSchedule = R"(plenum-schedule 1
layers 1
micro-batches 2
preconditioner kfac
factors 2
staleness 2
rank 0 holds 0
rank 1 holds 0
0 compute: F0.0 B0.0 KA0.0[0]/0 KB0.0[0]/0 KA0.0[0]/1 P0~2 NS0 U0 | KB0.0[0]/1~1 F0.0 KI0[0]/0#0/2~1 B0.0 KI0[0]/0#1/2~1 P0~1 NS0 U0
0 data: AR0 PG0 N | KR0[0]/0~1 KR0[0]/1~1 AR0 PG0 N
1 compute: F0.1 B0.1 KA0.1[0]/0 KB0.1[0]/0 KA0.1[0]/1 P0~2 NS0 U0 | KB0.1[0]/1~1 F0.1 B0.1 KI0[0]/1~1 P0~1 NS0 U0
1 data: AR0 PG0 N | KR0[0]/0~1 KR0[0]/1~1 AR0 PG0 N
)";

/// The same with partial curvature: A of map 0 covers both micro-batches and its B the first, A of map 1 the
/// second and its B both.
inline constexpr std::string_view kPartialKfacSchedule = R"(plenum-schedule 1
layers 1
micro-batches 2
sizes 3 2
preconditioner kfac
factors 2
curvature partial
staleness 2
rank 0 holds 0
rank 1 holds 0
0 compute: F0.0 B0.0 KA0.0[0]/0 KB0.0[0]/0 P0~2 NS0 U0 | KB0.0[0]/1~1 F0.0 KI0[0]/0#0/2~1 B0.0 KI0[0]/0#1/2~1 P0~1 NS0 U0
0 data: AR0 PG0 N | KR0[0]/0~1 KR0[0]/1~1 AR0 PG0 N
1 compute: F0.1 B0.1 KA0.1[0]/0 KA0.1[0]/1 P0~2 NS0 U0 | KB0.1[0]/1~1 F0.1 B0.1 KI0[0]/1~1 P0~1 NS0 U0
1 data: AR0 PG0 N | KR0[0]/0~1 KR0[0]/1~1 AR0 PG0 N
)";

}  // namespace plenum::test
