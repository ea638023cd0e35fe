#pragma once

namespace plenum::plan {

/// How many different words so many tokens have in the mean, where words of a vocabulary come as often as
/// Zipf's law says: the n-th in proportion to 1 / n. Natural text comes close; what a step really reads is
/// known only when it is there.
double expected_distinct_words(double num_tokens, double vocabulary);

}  // namespace plenum::plan
