#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

// What a listing of pictures consists of. Internal to this folder.
namespace hetero::source {

// Short texts in one block: each takes its bytes and four more.
class ShortTexts {
 public:
  // False where all together would have more than 4 GiB: nothing was added.
  bool Add(std::string_view text) {
    if (text.size() > std::numeric_limits<uint32_t>::max() - block_.size()) return false;
    block_ += text;
    ends_.push_back(static_cast<uint32_t>(block_.size()));
    return true;
  }
  // Memory for so many, of so many bytes together, and no more.
  void Reserve(size_t texts, size_t bytes) {
    ends_.reserve(texts);
    block_.reserve(bytes);
  }
  size_t size() const { return ends_.size(); }
  size_t bytes() const { return block_.size(); }
  std::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(block_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string block_;
  std::vector<uint32_t> ends_;
};

// The same in the order of their bytes.
ShortTexts Sorted(const ShortTexts& names);

// The pictures of one folder. Sets have ten millions of them, so that each is little more than its
// name.
struct PictureFolder {
  std::string path;             // relative to the root, without a slash at the end; "" is the root
  ShortTexts names;             // sorted
  std::vector<uint64_t> sizes;  // of objects, in bytes; of files empty
  ShortTexts versions;          // of objects

  // Of one of its pictures, relative to the root.
  std::string PathOf(size_t i) const {
    return path.empty() ? std::string(names[i]) : path + "/" + std::string(names[i]);
  }
};

}  // namespace hetero::source
