#pragma once

#include <stdexcept>

namespace plenum::train {

/// A part of a step took longer than --hang-limit, and could be ended. Says where, and where the run resumes.
class HangError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace plenum::train
