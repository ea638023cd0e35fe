#pragma once

#include <string>

namespace plenum::data {

/// What to do with a name for which there is no directory, such as google-bert/bert-base-uncased: it may be
/// one of Hugging Face's hub, from which nothing is downloaded here. A half sentence that ends with the
/// directory to give then, behind `option`.
std::string hub_hint(const std::string& name, const std::string& option);

}  // namespace plenum::data
