#include "operator/kube/lease_record.h"

#include <algorithm>
#include <chrono>

namespace hetero::kube {

LeaseRecord LeaseRecordOf(const nlohmann::json& lease, base::Duration default_duration) {
  LeaseRecord record{.duration = default_duration};
  if (!lease.is_object()) return record;
  const auto spec = lease.find("spec");
  if (spec == lease.end() || !spec->is_object()) return record;
  const auto text = [&](const char* name) {
    const auto it = spec->find(name);
    return it != spec->end() && it->is_string() ? it->get<std::string>() : std::string();
  };
  const auto number = [&](const char* name) {
    const auto it = spec->find(name);
    return it != spec->end() && it->is_number_integer() ? it->get<int32_t>() : 0;
  };
  record.holder = text("holderIdentity");
  record.acquire_time = text("acquireTime");
  record.transitions = number("leaseTransitions");
  const int32_t seconds = number("leaseDurationSeconds");
  if (seconds > 0) record.duration = std::chrono::seconds(seconds);
  return record;
}

nlohmann::json LeaseSpec(const LeaseRecord& record, const std::string& now) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(record.duration).count();
  return {{"holderIdentity", record.holder},
          {"leaseDurationSeconds", std::max<int64_t>(1, seconds)},
          {"acquireTime", record.acquire_time},
          {"renewTime", now},
          {"leaseTransitions", record.transitions}};
}

}  // namespace hetero::kube
