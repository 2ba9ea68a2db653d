#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "api/job_status.h"
#include "operator/plan/observed.h"

namespace hetero::reconcile {

// The fields of one job's status that the API server drops from every write, because the resource
// definition in the cluster is older than this operator. Without them each pass would find the
// status incomplete and write it again. They are kept here, for this process alone. Fields within
// lists are not looked at. Not thread-safe.
class DroppedFields {
 public:
  // What a write sent and what its reply has. True when more is dropped than was known; a write
  // that was kept whole, by a newer definition, ends it.
  bool Learn(const nlohmann::json& sent, const nlohmann::json& replied);
  // Such as "history, specHash"; empty: nothing is dropped.
  std::string Names() const;

  // The job with what was dropped of its status.
  std::shared_ptr<const plan::ObservedJob> Complete(
      std::shared_ptr<const plan::ObservedJob> job) const;
  // Whether a write of `status` over `before` would change nothing but what is dropped; then that
  // is kept.
  bool Keep(const api::JobStatus& before, const api::JobStatus& status);

 private:
  nlohmann::json fields_;  // an object with these fields alone; null: none
};

}  // namespace hetero::reconcile
