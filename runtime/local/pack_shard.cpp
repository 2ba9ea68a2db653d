#include "runtime/local/pack_shard.h"

#include <png.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "runtime/source/tar_writer.h"

namespace hetero::local {
namespace {

absl::Span<const uint8_t> SpanOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Pixels as a PNG, which gives them back as they are.
absl::Status EncodePng(const api::ImageShape& shape, std::vector<uint8_t>* bytes) {
  if (shape.channels != 3) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has ", shape.channels, " channel, and pictures in files are read with three; keep this ",
        "dataset as it is"));
  }
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(shape.width);
  header.height = static_cast<png_uint_32>(shape.height);
  header.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::vector<uint8_t> encoded(size);
  if (png_image_write_to_memory(&header, encoded.data(), &size, 0, bytes->data(), 0, nullptr) ==
      0) {
    return absl::InternalError(absl::StrCat("cannot be encoded: ", header.message));
  }
  encoded.resize(size);
  *bytes = std::move(encoded);
  return absl::OkStatus();
}

template <typename Number>
nlohmann::json Nested(const std::vector<int32_t>& shape, size_t depth, const uint8_t** bytes) {
  if (depth == shape.size()) {
    Number number;
    std::memcpy(&number, *bytes, sizeof number);
    *bytes += sizeof number;
    return number;
  }
  nlohmann::json list = nlohmann::json::array();
  for (int32_t i = 0; i < shape[depth]; ++i)
    list.push_back(Nested<Number>(shape, depth + 1, bytes));
  return list;
}

// The label's member: what follows its name, and what is in it. Empty: there is none.
std::pair<std::string, std::string> LabelMember(const source::RawSample& sample,
                                                const api::Label& label) {
  const uint8_t* bytes = sample.fields.data();
  switch (label.type) {
    case api::LabelType::kClass:
      return {"cls", absl::StrCat(sample.label)};
    case api::LabelType::kInt64:
      return {"json", Nested<int64_t>(label.shape, 0, &bytes).dump()};
    case api::LabelType::kFloat32:
      return {"json", Nested<float>(label.shape, 0, &bytes).dump()};
    case api::LabelType::kNone:
      return {};
  }
  __builtin_unreachable();
}

// JSON has no word for what is no number.
absl::Status CheckFinite(const source::RawSample& sample, const api::Label& label) {
  if (label.type != api::LabelType::kFloat32) return absl::OkStatus();
  for (size_t at = 0; at + sizeof(float) <= sample.fields.size(); at += sizeof(float)) {
    float number;
    std::memcpy(&number, sample.fields.data() + at, sizeof number);
    if (!std::isfinite(number)) {
      return absl::InvalidArgumentError(
          "has a label that is not finite, which shards cannot hold; correct it, or take the "
          "sample out");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MakePackable(const api::Label& label, source::RawSample* sample) {
  HETERO_RETURN_IF_ERROR(CheckFinite(*sample, label));
  if (sample->encoding != source::Encoding::kRaw) return absl::OkStatus();
  return EncodePng(sample->shape, &sample->bytes);
}

int64_t PackedBytes(const source::RawSample& sample, const api::Label& label) {
  const auto member = [](size_t size) {
    return source::kTarBlock + size + source::TarPadding(static_cast<int64_t>(size));
  };
  size_t size = member(sample.bytes.size());
  if (label.type != api::LabelType::kNone) size += member(LabelMember(sample, label).second.size());
  return static_cast<int64_t>(size);
}

PackShard::PackShard(std::string name, std::unique_ptr<storage::ObjectWriter> writer)
    : writer_(std::move(writer)) {
  shard_.name = std::move(name);
}

absl::Status PackShard::Add(int64_t id, const source::RawSample& sample, const api::Label& label) {
  const std::string key = absl::StrFormat("%09d.", id);
  const char* extension = sample.encoding == source::Encoding::kJpeg ? "jpg" : "png";
  HETERO_RETURN_IF_ERROR(Member(key + extension, sample.bytes));
  const auto [field, text] = LabelMember(sample, label);
  if (!field.empty()) HETERO_RETURN_IF_ERROR(Member(key + field, SpanOf(text)));
  ++shard_.samples;
  return absl::OkStatus();
}

absl::StatusOr<std::pair<PackedShard, storage::Object>> PackShard::Close() {
  HETERO_RETURN_IF_ERROR(Append(SpanOf(std::string(source::kTarEnd, '\0'))));
  HETERO_ASSIGN_OR_RETURN(const storage::Object object, writer_->Close());
  shard_.version = object.version;
  return std::make_pair(shard_, object);
}

absl::Status PackShard::Member(const std::string& name, absl::Span<const uint8_t> bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  HETERO_RETURN_IF_ERROR(Append(SpanOf(source::TarHeader(name, size))));
  HETERO_RETURN_IF_ERROR(Append(bytes));
  return Append(SpanOf(std::string(source::TarPadding(size), '\0')));
}

absl::Status PackShard::Append(absl::Span<const uint8_t> bytes) {
  shard_.bytes += static_cast<int64_t>(bytes.size());
  shard_.crc = base::Crc32c(bytes.data(), bytes.size(), shard_.crc);
  return writer_->Append(bytes);
}

}  // namespace hetero::local
