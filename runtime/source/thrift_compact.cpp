#include "runtime/source/thrift_compact.h"

namespace hetero::source {
namespace {

constexpr int kDeepest = 32;
constexpr size_t kLongForm = 15;  // of a list's header: its size follows

class ThriftCursor {
 public:
  explicit ThriftCursor(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  size_t at() const { return at_; }

  bool Byte(uint8_t* byte) {
    if (at_ == bytes_.size()) return false;
    *byte = bytes_[at_++];
    return true;
  }

  bool Varint(uint64_t* number) {
    *number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      uint8_t byte = 0;
      if (!Byte(&byte)) return false;
      *number |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  bool Signed(int64_t* number) {
    uint64_t zigzag = 0;
    if (!Varint(&zigzag)) return false;
    *number = static_cast<int64_t>((zigzag >> 1) ^ (0 - (zigzag & 1)));
    return true;
  }

  bool Take(uint64_t count, std::span<const uint8_t>* taken) {
    if (count > bytes_.size() - at_) return false;
    *taken = bytes_.subspan(at_, count);
    at_ += count;
    return true;
  }

  // A field's header; kStop ends the struct.
  bool Field(int64_t* field, ThriftType* type) {
    uint8_t byte = 0;
    if (!Byte(&byte)) return false;
    *type = static_cast<ThriftType>(byte & 15);
    if (*type == ThriftType::kStop) return true;
    const uint8_t delta = byte >> 4;
    if (delta == 0) return Signed(field);
    // Beyond what a field's number can be in any file, and far from an overflow.
    if (*field > INT16_MAX) return false;
    *field += delta;
    return true;
  }

  bool ListHeader(uint64_t* size, ThriftType* type) {
    uint8_t byte = 0;
    if (!Byte(&byte)) return false;
    *type = static_cast<ThriftType>(byte & 15);
    *size = byte >> 4;
    if (*size == kLongForm && !Varint(size)) return false;
    return *size <= bytes_.size() - at_;  // each element has a byte at least
  }

  // `in_list`: a boolean is a byte there, and part of the header in a struct.
  bool Value(ThriftType type, bool in_list, int depth, ThriftValue* value) {
    value->type = type;
    const size_t begin = at_;
    if (!Content(type, in_list, depth, value)) return false;
    if (type >= ThriftType::kList) value->bytes = bytes_.subspan(begin, at_ - begin);
    return true;
  }

 private:
  bool Content(ThriftType type, bool in_list, int depth, ThriftValue* value) {
    uint64_t size = 0;
    uint8_t byte = 0;
    switch (type) {
      case ThriftType::kTrue:
      case ThriftType::kFalse:
        value->number = type == ThriftType::kTrue ? 1 : 0;
        if (!in_list) return true;
        if (!Byte(&byte)) return false;
        value->number = byte == 1 ? 1 : 0;
        return true;
      case ThriftType::kInt8:
        if (!Byte(&byte)) return false;
        value->number = static_cast<int8_t>(byte);
        return true;
      case ThriftType::kInt16:
      case ThriftType::kInt32:
      case ThriftType::kInt64:
        return Signed(&value->number);
      case ThriftType::kDouble:
        return Take(8, &value->bytes);
      case ThriftType::kBinary:
        return Varint(&size) && Take(size, &value->bytes);
      case ThriftType::kList:
      case ThriftType::kSet:
        return depth < kDeepest && SkipList(depth + 1);
      case ThriftType::kMap:
        return depth < kDeepest && SkipMap(depth + 1);
      case ThriftType::kStruct:
        return depth < kDeepest && SkipStruct(depth + 1);
      case ThriftType::kStop:
        break;
    }
    return false;
  }

  bool SkipList(int depth) {
    uint64_t size = 0;
    ThriftType type = ThriftType::kStop;
    ThriftValue value;
    if (!ListHeader(&size, &type)) return false;
    for (uint64_t i = 0; i < size; ++i) {
      if (!Value(type, true, depth, &value)) return false;
    }
    return true;
  }

  bool SkipMap(int depth) {
    uint64_t size = 0;
    uint8_t types = 0;
    ThriftValue value;
    if (!Varint(&size)) return false;
    if (size == 0) return true;
    if (!Byte(&types) || size > bytes_.size() - at_) return false;
    for (uint64_t i = 0; i < size; ++i) {
      if (!Value(static_cast<ThriftType>(types >> 4), true, depth, &value) ||
          !Value(static_cast<ThriftType>(types & 15), true, depth, &value)) {
        return false;
      }
    }
    return true;
  }

  bool SkipStruct(int depth) {
    int64_t field = 0;
    ThriftType type = ThriftType::kStop;
    ThriftValue value;
    while (Field(&field, &type)) {
      if (type == ThriftType::kStop) return true;
      if (!Value(type, false, depth, &value)) return false;
    }
    return false;
  }

  const std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

}  // namespace

std::optional<size_t> WalkThriftStruct(
    std::span<const uint8_t> bytes,
    absl::FunctionRef<bool(int64_t field, const ThriftValue& value)> visit) {
  ThriftCursor cursor(bytes);
  int64_t field = 0;
  ThriftType type = ThriftType::kStop;
  while (cursor.Field(&field, &type)) {
    if (type == ThriftType::kStop) return cursor.at();
    ThriftValue value;
    if (!cursor.Value(type, false, 0, &value) || !visit(field, value)) return std::nullopt;
  }
  return std::nullopt;
}

bool WalkThriftList(const ThriftValue& list,
                    absl::FunctionRef<bool(const ThriftValue& element)> visit) {
  if (list.type != ThriftType::kList) return false;
  ThriftCursor cursor(list.bytes);
  uint64_t size = 0;
  ThriftType type = ThriftType::kStop;
  if (!cursor.ListHeader(&size, &type)) return false;
  for (uint64_t i = 0; i < size; ++i) {
    ThriftValue value;
    if (!cursor.Value(type, true, 0, &value) || !visit(value)) return false;
  }
  return true;
}

}  // namespace hetero::source
