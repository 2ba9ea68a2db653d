#include "api/labels.h"
#include "api/ports.h"
#include "operator/children/children.h"
#include "operator/children/names.h"
#include "operator/children/object_metadata.h"

namespace hetero::children {

using nlohmann::json;

json HeadService(const api::HeteroTrainingJob& job) {
  std::string head;
  for (const api::Role& role : job.spec.roles) {
    if (role.type == api::RoleType::kHead) head = role.name;
  }
  const auto port = [](const char* name, int number) -> json {
    return {{"name", name}, {"port", number}, {"targetPort", number}, {"protocol", "TCP"}};
  };
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", ObjectMetadata(job, ServiceName(job.metadata))},
          {"spec",
           {{"type", "ClusterIP"},
            // Members join a head that is not ready yet: it is, once all have joined.
            {"publishNotReadyAddresses", true},
            {"selector", {{api::kJobUidLabel, job.metadata.uid}, {api::kRoleLabel, head}}},
            {"ports",
             {port("join", api::kHeadPort), port("status", api::kStatusPort),
              port("page", api::kPagePort)}}}}};
}

}  // namespace hetero::children
