#include "runtime/source/picture_folder.h"

#include <algorithm>

namespace hetero::source {
namespace {

// The eight bytes of a text from `begin` on, as a number that sorts as they do.
uint64_t KeyAt(std::string_view text, size_t begin) {
  uint64_t key = 0;
  for (size_t i = begin; i < begin + sizeof key; ++i) {
    key = key << 8 | (i < text.size() ? static_cast<uint8_t>(text[i]) : 0);
  }
  return key;
}

size_t SharedBeginning(const ShortTexts& names) {
  size_t shared = names.size() == 0 ? 0 : names[0].size();
  for (size_t i = 1; i < names.size(); ++i) {
    const std::string_view name = names[i], first = names[0].substr(0, shared);
    shared = static_cast<size_t>(
        std::mismatch(first.begin(), first.end(), name.begin(), name.end()).first - first.begin());
  }
  return shared;
}

}  // namespace

// Names of one folder mostly begin alike, and the next eight bytes tell them apart: most of the
// time of a plain sort goes into finding that out.
ShortTexts Sorted(const ShortTexts& names) {
  struct Name {
    uint64_t key;
    std::string_view text;
  };
  const size_t shared = SharedBeginning(names);
  std::vector<Name> order;
  order.reserve(names.size());
  for (size_t i = 0; i < names.size(); ++i) order.push_back({KeyAt(names[i], shared), names[i]});
  std::sort(order.begin(), order.end(), [](const Name& a, const Name& b) {
    return a.key != b.key ? a.key < b.key : a.text < b.text;
  });
  ShortTexts sorted;
  sorted.Reserve(names.size(), names.bytes());
  for (const Name& name : order) sorted.Add(name.text);
  return sorted;
}

}  // namespace hetero::source
