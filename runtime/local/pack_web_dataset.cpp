#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "runtime/local/pack_shard.h"
#include "runtime/source/tar_writer.h"

namespace hetero::local {
namespace {

absl::Span<const uint8_t> SpanOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
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

class Archive : public PackShard {
 public:
  Archive(std::string name, std::unique_ptr<storage::ObjectWriter> writer, const api::Label& label)
      : PackShard(std::move(name), std::move(writer)), label_(label) {}

  int64_t bytes() const override { return appended() + static_cast<int64_t>(source::kTarEnd); }

 private:
  absl::Status Put(int64_t id, const source::RawSample& sample) override {
    const std::string key = absl::StrFormat("%09d.", id);
    const char* extension = sample.encoding == source::Encoding::kJpeg ? "jpg" : "png";
    HETERO_RETURN_IF_ERROR(Member(key + extension, sample.bytes));
    const auto [field, text] = LabelMember(sample, label_);
    return field.empty() ? absl::OkStatus() : Member(key + field, SpanOf(text));
  }
  absl::Status Finish(const std::stop_token&) override {
    return Append(SpanOf(std::string(source::kTarEnd, '\0')));
  }
  absl::Status Member(const std::string& name, absl::Span<const uint8_t> bytes) {
    const auto size = static_cast<int64_t>(bytes.size());
    HETERO_RETURN_IF_ERROR(Append(SpanOf(source::TarHeader(name, size))));
    HETERO_RETURN_IF_ERROR(Append(bytes));
    return Append(SpanOf(std::string(source::TarPadding(size), '\0')));
  }

  const api::Label label_;
};

class WebDataset : public PackFormat {
 public:
  explicit WebDataset(const api::Label& label) : label_(label) {}

  std::string ShardName(size_t number) const override {
    return absl::StrFormat("shard-%06d.tar", number);
  }
  bool IsShard(const std::string& name) const override {
    return absl::StartsWith(name, "shard-") && absl::EndsWith(name, ".tar");
  }
  size_t most_shards() const override { return 1'000'000; }
  int64_t most_shard_bytes() const override { return std::numeric_limits<int64_t>::max(); }
  std::unique_ptr<PackShard> Begin(std::string name,
                                   std::unique_ptr<storage::ObjectWriter> writer) const override {
    return std::make_unique<Archive>(std::move(name), std::move(writer), label_);
  }
  int64_t BytesOf(const source::RawSample& sample) const override {
    const auto member = [](size_t size) {
      return source::kTarBlock + size + source::TarPadding(static_cast<int64_t>(size));
    };
    size_t size = member(sample.bytes.size());
    const auto [field, text] = LabelMember(sample, label_);
    if (!field.empty()) size += member(text.size());
    return static_cast<int64_t>(size);
  }

 private:
  const api::Label label_;
};

}  // namespace

std::unique_ptr<PackFormat> PackWebDataset(const api::Label& label) {
  return std::make_unique<WebDataset>(label);
}

}  // namespace hetero::local
