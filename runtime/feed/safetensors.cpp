#include "runtime/feed/safetensors.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/atomic_file.h"
#include "base/status_macros.h"

namespace hetero::feed {
namespace {

using Json = nlohmann::json;

constexpr size_t kLengthBytes = 8;
constexpr size_t kHeaderAlignment = 8;  // so that the data starts aligned, as the reference does
constexpr char kMetadata[] = "__metadata__";

struct TypeName {
  TensorType type;
  const char* name;
  int64_t bytes;
};
// In the order of the enumeration.
constexpr TypeName kTypes[] = {{TensorType::kUint8, "U8", 1},      {TensorType::kInt32, "I32", 4},
                               {TensorType::kInt64, "I64", 8},     {TensorType::kFloat32, "F32", 4},
                               {TensorType::kFloat64, "F64", 8},   {TensorType::kFloat16, "F16", 2},
                               {TensorType::kBfloat16, "BF16", 2}, {TensorType::kBool, "BOOL", 1}};

const TypeName& Describe(TensorType type) { return kTypes[static_cast<size_t>(type)]; }

int64_t Bytes(const TensorView& tensor) {
  int64_t bytes = Describe(tensor.type).bytes;
  for (const int64_t size : tensor.shape) bytes *= size;
  return bytes;
}

// Of the data section; absent when the entry is not one of a tensor inside it.
std::optional<Tensor> ReadTensor(const Json& entry, std::string_view data) {
  const auto type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& t) {
    return entry.is_object() && entry.value("dtype", Json()) == t.name;
  });
  if (type == std::end(kTypes)) return std::nullopt;
  Tensor tensor{.type = type->type};
  auto elements = static_cast<uint64_t>(type->bytes);
  for (const Json& size : entry.value("shape", Json::array())) {
    if (!size.is_number_unsigned()) return std::nullopt;
    const auto n = size.get<uint64_t>();
    if (!std::in_range<int64_t>(n)) return std::nullopt;
    if (n != 0 && elements > data.size() / n) return std::nullopt;
    elements *= n;
    tensor.shape.push_back(static_cast<int64_t>(n));
  }
  const Json offsets = entry.value("data_offsets", Json());
  if (!offsets.is_array() || offsets.size() != 2) return std::nullopt;
  if (!offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()) return std::nullopt;
  const auto begin = offsets[0].get<uint64_t>();
  const auto end = offsets[1].get<uint64_t>();
  if (begin > end || end > data.size() || end - begin != elements) return std::nullopt;
  tensor.data.assign(data.begin() + static_cast<std::ptrdiff_t>(begin),
                     data.begin() + static_cast<std::ptrdiff_t>(end));
  return tensor;
}

}  // namespace

const char* TensorTypeName(TensorType type) { return Describe(type).name; }

std::string SafetensorsBytes(const std::vector<TensorView>& tensors,
                             const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  header[kMetadata] = metadata;
  int64_t offset = 0;
  for (const TensorView& tensor : tensors) {
    const int64_t end = offset + Bytes(tensor);
    header[tensor.name] = {{"dtype", Describe(tensor.type).name},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.append((kHeaderAlignment - text.size() % kHeaderAlignment) % kHeaderAlignment, ' ');

  std::string file;
  file.reserve(kLengthBytes + text.size() + static_cast<size_t>(offset));
  for (size_t i = 0; i < kLengthBytes; ++i) {
    file.push_back(static_cast<char>(static_cast<uint64_t>(text.size()) >> (8 * i)));
  }
  file += text;
  for (const TensorView& tensor : tensors) {
    file.append(static_cast<const char*>(tensor.data), static_cast<size_t>(Bytes(tensor)));
  }
  return file;
}

absl::Status WriteSafetensors(const std::string& path, const std::vector<TensorView>& tensors,
                              const std::map<std::string, std::string>& metadata) {
  return base::WriteFileAtomically(path, SafetensorsBytes(tensors, metadata));
}

absl::StatusOr<SafetensorsFile> ReadSafetensors(const std::string& path, int64_t limit) {
  HETERO_ASSIGN_OR_RETURN(const std::string bytes, base::ReadFile(path, limit));
  return ParseSafetensors(path, bytes);
}

absl::StatusOr<SafetensorsFile> ParseSafetensors(const std::string& path, std::string_view bytes) {
  if (bytes.size() < kLengthBytes) {
    return absl::DataLossError(absl::StrCat(path, " has only ", bytes.size(), " bytes"));
  }
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  }
  if (length > bytes.size() - kLengthBytes) {
    return absl::DataLossError(absl::StrCat(path, ": the header of ", length,
                                            " bytes does not fit into ", bytes.size(), " bytes"));
  }
  if (length > static_cast<uint64_t>(kMaxSafetensorsHeader)) {
    return absl::DataLossError(absl::StrCat(path, ": a header of ", length, " bytes; at most ",
                                            kMaxSafetensorsHeader, " are read"));
  }
  const Json header = Json::parse(bytes.substr(kLengthBytes, length), nullptr,
                                  /*allow_exceptions=*/false);
  if (!header.is_object()) {
    return absl::DataLossError(absl::StrCat(path, ": the header is not a JSON object"));
  }
  SafetensorsFile file;
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadata) {
      for (const auto& [key, value] : entry.items()) {
        if (value.is_string()) file.metadata[key] = value.get<std::string>();
      }
      continue;
    }
    std::optional<Tensor> tensor = ReadTensor(entry, bytes.substr(kLengthBytes + length));
    if (!tensor.has_value()) {
      return absl::DataLossError(absl::StrCat(path, ": tensor \"", name,
                                              "\" has an unknown type, or lies outside the file"));
    }
    file.tensors[name] = *std::move(tensor);
  }
  return file;
}

}  // namespace hetero::feed
