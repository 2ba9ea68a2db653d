#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// The safetensors file format (https://github.com/huggingface/safetensors): uint64 little-endian
// header length, a JSON header, then the tensors' bytes, row-major and little-endian.
namespace hetero::feed {

enum class TensorType { kUint8, kInt32, kInt64, kFloat32, kFloat64, kFloat16, kBfloat16, kBool };

// "F32" for kFloat32: the format's word.
const char* TensorTypeName(TensorType type);

// A view of a tensor to write; `data` holds the product of `shape` elements of `type`.
struct TensorView {
  std::string name;
  TensorType type = TensorType::kUint8;
  std::vector<int64_t> shape;
  const void* data = nullptr;
};

// The bytes of the file.
std::string SafetensorsBytes(const std::vector<TensorView>& tensors,
                             const std::map<std::string, std::string>& metadata);

// Writes the file whole: to a temporary name first, so that a reader never sees half of it.
absl::Status WriteSafetensors(const std::string& path, const std::vector<TensorView>& tensors,
                              const std::map<std::string, std::string>& metadata);

struct Tensor {
  TensorType type = TensorType::kUint8;
  std::vector<int64_t> shape;
  std::vector<uint8_t> data;
};

struct SafetensorsFile {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

// As in the reference implementation.
inline constexpr int64_t kMaxSafetensorsHeader = 100'000'000;
// Of a file whose tensors nobody can tell beforehand.
inline constexpr int64_t kMaxSafetensorsBytes = int64_t{64} << 30;

// kDataLoss names what is wrong with the file: a length that does not fit, JSON, types, offsets;
// kOutOfRange: more than `limit` bytes.
absl::StatusOr<SafetensorsFile> ReadSafetensors(const std::string& path,
                                                int64_t limit = kMaxSafetensorsBytes);
// The same of bytes that are in memory already; `path` is for messages.
absl::StatusOr<SafetensorsFile> ParseSafetensors(const std::string& path, std::string_view bytes);

}  // namespace hetero::feed
