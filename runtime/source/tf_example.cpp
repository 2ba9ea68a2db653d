#include "runtime/source/tf_example.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstring>
#include <functional>
#include <limits>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace hetero::source {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using Bytes = std::span<const uint8_t>;

constexpr size_t kNamesInMessages = 8;

// Numbers of feature.proto and example.proto.
constexpr int kFeaturesOfExample = 1;
constexpr int kEntryOfFeatures = 1;
constexpr int kNameOfEntry = 1, kFeatureOfEntry = 2;
constexpr int kBytesList = 1, kFloatList = 2, kInt64List = 3;
constexpr int kValueOfList = 1;

absl::Status Damaged() { return absl::DataLossError("is no tf.train.Example, or a damaged one"); }

// A field with a length: its number and bytes; false of `visit` ends the walk as damaged.
using Visit = std::function<bool(int number, Bytes bytes)>;

// Calls `visit` for each field of `message` that has a length; others go to `other`, which reads
// the value, or are skipped without it.
bool Walk(Bytes message, const Visit& visit,
          const std::function<bool(uint32_t tag, CodedInputStream&)>& other = nullptr) {
  if (message.size() > size_t{std::numeric_limits<int>::max()}) return false;
  CodedInputStream stream(message.data(), static_cast<int>(message.size()));
  while (const uint32_t tag = stream.ReadTag()) {
    if (WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      uint32_t length = 0;
      if (!stream.ReadVarint32(&length)) return false;
      const auto at = static_cast<size_t>(stream.CurrentPosition());
      if (length > message.size() - at) return false;
      if (!visit(WireFormatLite::GetTagFieldNumber(tag), message.subspan(at, length))) return false;
      stream.Skip(static_cast<int>(length));
    } else if (!(other ? other(tag, stream) : WireFormatLite::SkipField(&stream, tag))) {
      return false;
    }
  }
  return stream.ConsumedEntireMessage();
}

// The last list counts, as of every field of a message.
bool ReadFeature(Bytes message, TfFeature* feature) {
  return Walk(message, [&](int number, Bytes bytes) {
    if (number == kBytesList) *feature = {TfFeature::Kind::kBytes, bytes};
    if (number == kFloatList) *feature = {TfFeature::Kind::kFloats, bytes};
    if (number == kInt64List) *feature = {TfFeature::Kind::kInts, bytes};
    return true;
  });
}

using VisitFeature = std::function<bool(std::string_view name, Bytes feature)>;

bool WalkFeatures(Bytes example, const VisitFeature& visit) {
  const auto entry = [&](int number, Bytes bytes) {
    if (number != kEntryOfFeatures) return true;
    std::string_view name;
    Bytes feature;
    const bool whole = Walk(bytes, [&](int part, Bytes content) {
      if (part == kNameOfEntry) {
        name = {reinterpret_cast<const char*>(content.data()), content.size()};
      }
      if (part == kFeatureOfEntry) feature = content;
      return true;
    });
    return whole && visit(name, feature);
  };
  return Walk(example, [&](int number, Bytes bytes) {
    return number != kFeaturesOfExample || Walk(bytes, entry);
  });
}

}  // namespace

absl::StatusOr<std::vector<TfFeature>> FindFeatures(std::span<const uint8_t> example,
                                                    std::span<const std::string> names) {
  std::vector<TfFeature> found(names.size());
  const bool whole = WalkFeatures(example, [&](std::string_view name, Bytes feature) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] != name) continue;
      found[i] = {};
      if (!ReadFeature(feature, &found[i])) return false;
    }
    return true;
  });
  if (!whole) return Damaged();
  return found;
}

std::string FeaturesOf(std::span<const uint8_t> example) {
  static constexpr const char* kKinds[] = {"empty", "bytes", "float", "int64"};
  std::vector<std::string> names;
  WalkFeatures(example, [&](std::string_view name, Bytes message) {
    TfFeature feature;
    ReadFeature(message, &feature);
    names.push_back(absl::StrCat(absl::string_view(name.data(), std::min<size_t>(name.size(), 64)),
                                 " (", kKinds[static_cast<int>(feature.kind)], ")"));
    return names.size() < kNamesInMessages;
  });
  return names.empty() ? "nothing" : absl::StrJoin(names, ", ");
}

absl::StatusOr<std::span<const uint8_t>> BytesOf(const TfFeature& feature) {
  int values = 0;
  Bytes value;
  const bool whole = Walk(feature.list, [&](int number, Bytes bytes) {
    if (number == kValueOfList) {
      value = bytes;
      ++values;
    }
    return true;
  });
  if (!whole) return Damaged();
  if (values == 1) return value;
  return absl::DataLossError(absl::StrCat("has ", values, " values, not one"));
}

absl::StatusOr<std::vector<int64_t>> IntsOf(const TfFeature& feature) {
  std::vector<int64_t> values;
  const auto add = [&](CodedInputStream& stream) {
    uint64_t value = 0;
    if (!stream.ReadVarint64(&value)) return false;
    values.push_back(static_cast<int64_t>(value));
    return true;
  };
  const auto packed = [&](int number, Bytes bytes) {
    if (number != kValueOfList) return true;
    CodedInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
    while (stream.CurrentPosition() < static_cast<int>(bytes.size())) {
      if (!add(stream)) return false;
    }
    return true;
  };
  const auto single = [&](uint32_t tag, CodedInputStream& stream) {
    if (tag == WireFormatLite::MakeTag(kValueOfList, WireFormatLite::WIRETYPE_VARINT)) {
      return add(stream);
    }
    return WireFormatLite::SkipField(&stream, tag);
  };
  if (!Walk(feature.list, packed, single)) return Damaged();
  return values;
}

absl::StatusOr<std::vector<float>> FloatsOf(const TfFeature& feature) {
  std::vector<float> values;
  const auto packed = [&](int number, Bytes bytes) {
    if (number != kValueOfList) return true;
    if (bytes.size() % sizeof(float) != 0) return false;
    const size_t before = values.size();
    values.resize(before + bytes.size() / sizeof(float));
    if (!bytes.empty()) std::memcpy(values.data() + before, bytes.data(), bytes.size());
    return true;
  };
  const auto single = [&](uint32_t tag, CodedInputStream& stream) {
    if (tag != WireFormatLite::MakeTag(kValueOfList, WireFormatLite::WIRETYPE_FIXED32)) {
      return WireFormatLite::SkipField(&stream, tag);
    }
    uint32_t bits = 0;
    if (!stream.ReadLittleEndian32(&bits)) return false;
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    values.push_back(value);
    return true;
  };
  if (!Walk(feature.list, packed, single)) return Damaged();
  return values;
}

}  // namespace hetero::source
