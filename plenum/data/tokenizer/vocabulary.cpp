#include "plenum/data/tokenizer/vocabulary.h"

#include <utility>

#include "plenum/base/check.h"

namespace plenum::data {

Vocabulary::Vocabulary(std::vector<std::string> tokens, const std::string& source)
    : tokens_(std::move(tokens)) {
  ids_.reserve(tokens_.size());
  for (std::size_t id = 0; id < tokens_.size(); ++id) {
    const auto [place, inserted] = ids_.emplace(tokens_[id], static_cast<TokenId>(id));
    base::require(inserted, "{}: token '{}' stands twice, as id {} and id {}", source, tokens_[id],
                  place->second, id);
  }
  const auto id_of = [&](std::string_view name) {
    const TokenId id = find(name);
    base::require(id >= 0, "{}: the token {} is missing", source, name);
    return id;
  };
  special_ = {.pad = id_of("[PAD]"),
              .unknown = id_of("[UNK]"),
              .cls = id_of("[CLS]"),
              .sep = id_of("[SEP]"),
              .mask = id_of("[MASK]")};
}

TokenId Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? -1 : found->second;
}

}  // namespace plenum::data
