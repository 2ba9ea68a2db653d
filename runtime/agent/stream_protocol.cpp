#include "runtime/agent/stream_protocol.h"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/json_access.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace hetero::agent {
namespace {

using nlohmann::json;

constexpr size_t kLengthBytes = 4;
constexpr size_t kMaxShownText = 100;
constexpr size_t kDigestDigits = 32;

absl::Status Malformed(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("not a message of this protocol: ", what));
}

absl::Status BadState(const std::string& what) {
  return absl::FailedPreconditionError(absl::StrCat("this is no state of a stream: ", what,
                                                    "; load what stream.state_dict() returned"));
}

// Null counts as absent.
absl::StatusOr<std::string> Text(const json& object, const char* name) {
  const json& value = base::FieldOf(object, name);
  if (value.is_null()) return "";
  if (!value.is_string()) return Malformed(absl::StrCat("`", name, "` must be a text"));
  return base::ToUtf8(value.get<std::string>(), kMaxShownText);
}

absl::StatusOr<int64_t> Integer(const json& object, const char* name) {
  const json& value = base::FieldOf(object, name);
  const bool fits = value.is_number_unsigned()
                        ? value.get<uint64_t>() <= std::numeric_limits<int64_t>::max()
                        : value.is_number_integer();
  if (!fits) return Malformed(absl::StrCat("`", name, "` must be an integer"));
  return value.get<int64_t>();
}

absl::StatusOr<Request> ParseHello(const json& object) {
  HelloRequest hello;
  HETERO_ASSIGN_OR_RETURN(hello.protocol, Integer(object, "protocol"));
  HETERO_ASSIGN_OR_RETURN(hello.pid, Integer(object, "pid"));
  hello.one_file = base::IsTrue(object, "one_file");
  HETERO_ASSIGN_OR_RETURN(hello.package, Text(object, "package"));
  HETERO_ASSIGN_OR_RETURN(hello.python, Text(object, "python"));
  HETERO_ASSIGN_OR_RETURN(hello.numpy, Text(object, "numpy"));
  HETERO_ASSIGN_OR_RETURN(hello.torch, Text(object, "torch"));
  return hello;
}

absl::StatusOr<std::optional<job::StreamDigest>> ParseDigest(const json& value) {
  if (value.is_null()) return std::nullopt;
  const std::string hex = value.is_string() ? value.get<std::string>() : "";
  std::array<uint64_t, 2> words;
  for (size_t i = 0; i < words.size(); ++i) {
    if (hex.size() != kDigestDigits || hex.find_first_not_of("0123456789abcdef") != hex.npos ||
        !absl::SimpleHexAtoi(hex.substr(i * kDigestDigits / 2, kDigestDigits / 2), &words[i])) {
      return BadState("`digest` must be 32 hexadecimal digits or null");
    }
  }
  return job::StreamDigest(words[0], words[1]);
}

absl::StatusOr<StreamState> ParseState(const json& object) {
  if (!object.is_object()) return BadState("it is no dictionary");
  if (base::IntegerOf(object, "format") != StreamState::kFormat) {
    return BadState(absl::StrCat("its `format` is not ", StreamState::kFormat));
  }
  StreamState state;
  const json& fingerprint = base::FieldOf(object, "fingerprint");
  if (!fingerprint.is_string()) return BadState("it has no `fingerprint`");
  state.fingerprint = fingerprint.get<std::string>();
  const std::array<std::pair<const char*, int64_t*>, 5> numbers = {
      {{"seed", &state.seed},
       {"epoch", &state.epoch},
       {"step", &state.step},
       {"slot", &state.slot},
       {"global_batch", &state.global_batch}}};
  for (const auto& [name, number] : numbers) {
    const absl::StatusOr<int64_t> value = Integer(object, name);
    if (!value.ok()) return BadState(absl::StrCat("`", name, "` must be an integer"));
    *number = *value;
  }
  HETERO_ASSIGN_OR_RETURN(state.digest, ParseDigest(base::FieldOf(object, "digest")));
  return state;
}

absl::StatusOr<Request> ParseBegin(const json& object) {
  const json& position = base::FieldOf(object, "position");
  if (position.is_null()) return BeginRequest{};
  HETERO_ASSIGN_OR_RETURN(StreamState state, ParseState(position));
  return BeginRequest{std::move(state)};
}

absl::StatusOr<Request> ParseReport(const json& object) {
  ReportRequest report;
  const json& values = base::FieldOf(object, "values");
  if (!values.is_object()) return Malformed("`values` must be an object");
  if (values.size() > kMaxReportedValues) {
    return Malformed(absl::StrCat(values.size(), " values are reported at once, more than ",
                                  kMaxReportedValues));
  }
  for (const auto& [name, value] : values.items()) {
    if (name.empty() || name.size() > kMaxReportedName) {
      return Malformed(absl::StrCat("the name of a reported value has ", name.size(),
                                    " bytes, not 1 to ", kMaxReportedName));
    }
    if (!value.is_number() && !value.is_null()) {
      return Malformed(absl::StrCat("the value of `", name, "` must be a number"));
    }
    report.values[name] =
        value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
  }
  if (!base::FieldOf(object, "step").is_null()) {
    HETERO_ASSIGN_OR_RETURN(report.step, Integer(object, "step"));
  }
  return report;
}

json LayoutToJson(const std::vector<FieldLayout>& fields, bool with_place) {
  json list = json::array();
  for (const FieldLayout& field : fields) {
    json entry = {{"name", field.name}, {"dtype", field.dtype}, {"shape", field.shape}};
    if (with_place) {
      entry["offset"] = field.offset;
      entry["bytes"] = field.bytes;
      if (field.file != 0) entry["file"] = field.file;
    }
    list.push_back(std::move(entry));
  }
  return list;
}

// (x - mean) / std of x / 255 as one multiplication and one addition, in the numbers with which the
// C++ trainer does it (runtime/train/device/input.cpp).
json ConversionToJson(const pipeline::TensorConversion& conversion, int32_t channels) {
  const double unit = conversion.unit_scale ? 1.0 / 255 : 1.0;
  json scale = json::array(), offset = json::array();
  for (int32_t c = 0; c < channels; ++c) {
    const auto at = [c](const std::vector<float>& values, double otherwise) {
      if (values.empty()) return otherwise;
      return static_cast<double>(values[values.size() == 1 ? 0 : static_cast<size_t>(c)]);
    };
    const double deviation = at(conversion.std, 1);
    scale.push_back(static_cast<double>(static_cast<float>(unit / deviation)));
    offset.push_back(static_cast<double>(static_cast<float>(-at(conversion.mean, 0) / deviation)));
  }
  return {{"dtype", "float32"}, {"scale", std::move(scale)}, {"offset", std::move(offset)}};
}

// Of pictures, whose last dimension they are.
int32_t ChannelsOf(const WelcomeAnswer& welcome, const std::string& name) {
  for (const FieldLayout& field : welcome.fields) {
    if (field.name == name) return static_cast<int32_t>(field.shape.back());
  }
  return 0;
}

json CheckpointToJson(const api::Checkpoint& checkpoint) {
  const auto number = [](const std::optional<int64_t>& value) {
    return value.has_value() ? json(*value) : json();
  };
  return {{"uri", checkpoint.uri},
          {"every_steps", number(checkpoint.every_steps)},
          {"every_seconds", number(checkpoint.every_seconds)}};
}

const char* NameOf(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kMisuse:
      return "misuse";
    case ErrorKind::kProtocol:
      return "protocol";
    case ErrorKind::kFailed:
      return "failed";
    case ErrorKind::kStopped:
      return "stopped";
    case ErrorKind::kTimeout:
      return "timeout";
  }
  __builtin_unreachable();
}

}  // namespace

absl::StatusOr<Request> ParseRequest(std::string_view text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return Malformed("it is no JSON object");
  const std::string type = base::TextOf(object, "type");
  if (type == "hello") return ParseHello(object);
  if (type == "begin") return ParseBegin(object);
  if (type == "next") return NextRequest{.validation = base::IsTrue(object, "validation")};
  if (type == "free") {
    HETERO_ASSIGN_OR_RETURN(const int64_t slot, Integer(object, "slot"));
    return FreeRequest{.slot = slot};
  }
  if (type == "checkpoint" || type == "state") {
    std::optional<int64_t> step;
    if (!base::FieldOf(object, "step").is_null()) {
      HETERO_ASSIGN_OR_RETURN(step, Integer(object, "step"));
    }
    if (type == "state") return StateRequest{.step = step};
    return CheckpointRequest{.step = step};
  }
  if (type == "report") return ParseReport(object);
  if (type == "validation") return ValidationRequest{};
  if (type == "bye") return ByeRequest{};
  return Malformed(absl::StrCat("unknown type `", base::ToUtf8(type, kMaxShownText), "`"));
}

absl::StatusOr<std::optional<std::string>> MessageReader::Next() {
  if (waiting() < kLengthBytes) return std::nullopt;
  uint32_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= uint32_t{static_cast<unsigned char>(buffer_[used_ + i])} << (8 * i);
  }
  if (length == 0 || length > most_bytes_) {
    return absl::InvalidArgumentError(absl::StrCat("a message of ", length,
                                                   " bytes is announced; there are messages of 1 "
                                                   "to ",
                                                   most_bytes_, " bytes"));
  }
  if (waiting() < kLengthBytes + length) {
    buffer_.erase(0, used_);
    used_ = 0;
    return std::nullopt;
  }
  std::string message = buffer_.substr(used_ + kLengthBytes, length);
  used_ += kLengthBytes + length;
  if (used_ == buffer_.size()) {
    buffer_.clear();
    used_ = 0;
  }
  return message;
}

json ToJson(const StreamState& state) {
  return {{"format", StreamState::kFormat},
          {"fingerprint", state.fingerprint},
          {"seed", state.seed},
          {"epoch", state.epoch},
          {"step", state.step},
          {"slot", state.slot},
          {"global_batch", state.global_batch},
          {"digest", state.digest.has_value() ? json(state.digest->ToHex()) : json()}};
}

json ToJson(const BatchAnswer& batch) {
  json answer = {{"type", "batch"},
                 {"slot", batch.slot},
                 {"step", batch.step},
                 {"epoch", batch.epoch},
                 {"step_in_epoch", batch.step_in_epoch},
                 {"last_of_epoch", batch.last_of_epoch},
                 {"weight", batch.weight},
                 {"first_slot", batch.first_slot},
                 {"count", batch.count},
                 {"micro", batch.micro},
                 {"fields", LayoutToJson(batch.fields, /*with_place=*/true)}};
  if (batch.new_file) {
    answer["new_file"] = {{"number", batch.new_file->number}, {"bytes", batch.new_file->bytes}};
  }
  if (!batch.forgotten.empty()) answer["forgotten"] = batch.forgotten;
  return answer;
}

json ToJson(const WelcomeAnswer& welcome) {
  json answer = {{"type", "welcome"},
                 {"protocol", kProtocolVersion},
                 {"rank", welcome.rank},
                 {"world_size", welcome.world_size},
                 {"local_rank", welcome.local_rank},
                 {"restart_count", welcome.restart_count},
                 {"fingerprint", welcome.fingerprint},
                 {"seed", welcome.seed},
                 {"batch_size", welcome.batch_size},
                 {"accumulation", welcome.accumulation},
                 {"epochs", welcome.epochs},
                 {"total_steps", welcome.total_steps},
                 {"steps_per_epoch", welcome.steps_per_epoch},
                 {"samples", welcome.samples},
                 {"classes", welcome.classes},
                 {"fields", LayoutToJson(welcome.fields, /*with_place=*/false)},
                 {"validation_samples", welcome.validation_samples},
                 {"slots", welcome.slots},
                 {"slot_bytes", welcome.slot_bytes},
                 {"may_hold", welcome.may_hold}};
  answer["image"] = {{"shape", {welcome.image.height, welcome.image.width, welcome.image.channels}},
                     {"dtype", "uint8"}};
  answer["conversion"] = welcome.conversion == nullptr
                             ? json()
                             : ConversionToJson(*welcome.conversion, welcome.image.channels);
  if (!welcome.views.empty()) {
    answer["views"] = json::object();
    for (const auto& [name, conversion] : welcome.views) {
      answer["views"][name] =
          conversion == nullptr ? json() : ConversionToJson(*conversion, ChannelsOf(welcome, name));
    }
  }
  answer["checkpoint"] =
      welcome.checkpoint.has_value() ? CheckpointToJson(*welcome.checkpoint) : json();
  return answer;
}

json ErrorAnswer(ErrorKind kind, std::string_view message) {
  return {{"type", "error"}, {"kind", NameOf(kind)}, {"message", std::string(message)}};
}

std::string EncodeMessage(const json& message) {
  const std::string text =
      message.dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
  std::string bytes;
  bytes.reserve(kLengthBytes + text.size());
  for (size_t i = 0; i < kLengthBytes; ++i) {
    bytes.push_back(static_cast<char>(text.size() >> (8 * i)));
  }
  return bytes + text;
}

}  // namespace hetero::agent
