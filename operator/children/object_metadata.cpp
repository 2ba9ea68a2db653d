#include "operator/children/object_metadata.h"

#include "api/job_resource.h"
#include "operator/children/names.h"

namespace hetero::children {

using nlohmann::json;

json ObjectMetadata(const api::HeteroTrainingJob& job, const std::string& name) {
  return {{"name", name},
          {"namespace", job.metadata.name_space},
          {"labels", ChildLabels(job.metadata)},
          {"ownerReferences",
           {{{"apiVersion", api::kApiVersion},
             {"kind", api::kKind},
             {"name", job.metadata.name},
             {"uid", job.metadata.uid},
             {"controller", true},
             {"blockOwnerDeletion", true}}}}};
}

}  // namespace hetero::children
