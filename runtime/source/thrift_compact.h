#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/functional/function_ref.h"

// Thrift's compact protocol
// (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md), read in
// place: nothing is allocated, whatever sizes are claimed, and no struct is nested deeper than 32.
namespace hetero::source {

enum class ThriftType : uint8_t {
  kStop = 0,
  kTrue = 1,
  kFalse = 2,
  kInt8 = 3,
  kInt16 = 4,
  kInt32 = 5,
  kInt64 = 6,
  kDouble = 7,
  kBinary = 8,
  kList = 9,
  kSet = 10,
  kMap = 11,
  kStruct = 12,
};

struct ThriftValue {
  ThriftType type = ThriftType::kStop;
  int64_t number = 0;              // of booleans and whole numbers
  std::span<const uint8_t> bytes;  // a binary's content; a list, map or struct as it is written

  bool is_integer() const { return type >= ThriftType::kInt8 && type <= ThriftType::kInt64; }
};

// Calls `visit` with each field of the struct at the front of `bytes`, in the order in which they
// lie, until it gives false. How many bytes the struct has; nullopt where `visit` gave false, or
// the bytes are no whole struct.
std::optional<size_t> WalkThriftStruct(
    std::span<const uint8_t> bytes,
    absl::FunctionRef<bool(int64_t field, const ThriftValue& value)> visit);

// The same with each element of a kList. False: `list` is none, or `visit` gave false.
bool WalkThriftList(const ThriftValue& list,
                    absl::FunctionRef<bool(const ThriftValue& element)> visit);

}  // namespace hetero::source
