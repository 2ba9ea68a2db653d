#include "api/job_status.h"

#include "api/status_codec.h"

namespace hetero::api {
namespace {

using nlohmann::json;

// A termination message may have any bytes; what is not UTF-8 becomes U+FFFD.
std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string Shortened(std::string text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  const auto continues = [&](size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
  };
  while (max_bytes > 0 && continues(max_bytes)) --max_bytes;
  text.resize(max_bytes);
  return text;
}

const Condition* JobStatus::Find(ConditionType type) const {
  for (const Condition& condition : conditions) {
    if (condition.type == type) return &condition;
  }
  return nullptr;
}

bool JobStatus::Is(ConditionType type) const {
  const Condition* condition = Find(type);
  return condition != nullptr && condition->status == ConditionStatus::kTrue;
}

std::string_view NameOf(ConditionType type) { return NameOf<ConditionType>(type); }

std::string_view NameOf(ConditionStatus status) { return NameOf<ConditionStatus>(status); }

std::optional<ConditionType> ConditionTypeOf(std::string_view name) {
  return ValueNamed<ConditionType>(name);
}

std::string StatusToJson(const JobStatus& status) { return Dump(EncodeStatusObject(status)); }

absl::StatusOr<JobStatus> StatusFromJson(std::string_view text) {
  JobStatus status;
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return status;
  const json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) return absl::InvalidArgumentError("status: is not JSON");
  if (parsed.is_null()) return status;
  HETERO_RETURN_IF_ERROR(DecodeStatusObject(parsed, "status", status));
  return status;
}

}  // namespace hetero::api
