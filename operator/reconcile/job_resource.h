#pragma once

#include "api/job_resource.h"
#include "operator/kube/client.h"

namespace hetero::reconcile {

inline const kube::Resource kHeteroTrainingJobs = {
    .group = api::kGroup, .version = api::kVersion, .plural = api::kPlural};

}  // namespace hetero::reconcile
