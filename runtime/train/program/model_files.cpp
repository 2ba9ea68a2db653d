#include "runtime/train/program/model_files.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "runtime/process/output_store.h"

namespace hetero::train {

absl::StatusOr<api::HeteroTrainingJob> ModelFiles::Fetch(api::HeteroTrainingJob job) {
  api::Model& model = job.spec.training.model;
  for (const auto& [field, uri] :
       {std::pair("weights", &model.weights), std::pair("torchScript", &model.torch_script)}) {
    if (!process::IsStoreUri(*uri)) continue;
    const absl::Status fetched = FetchInto(field, job.spec.storage, uri);
    if (!fetched.ok()) {
      return absl::Status(fetched.code(),
                          absl::StrCat("spec.training.model.", field, ": ", fetched.message()));
    }
  }
  return job;
}

absl::Status ModelFiles::OfObjects(const absl::Status& status) const {
  if (status.ok() || objects_.empty()) return status;
  return absl::Status(status.code(), absl::StrReplaceAll(status.message(), objects_));
}

absl::Status ModelFiles::FetchInto(const char* name, const std::vector<api::StorageAccess>& storage,
                                   std::string* uri) {
  if (!folder_) folder_.emplace();
  if (folder_->path().empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is no place for ", *uri, "; give the GPU workers a writable TMPDIR"));
  }
  const std::string path = absl::StrCat(folder_->path(), "/", name);
  const absl::Status fetched = process::FetchObject(*uri, storage, path);
  if (!fetched.ok() && !absl::StrContains(fetched.message(), *uri)) {
    return absl::Status(fetched.code(), absl::StrCat("the copy of ", *uri, " in TMPDIR: ",
                                                     fetched.message(), "; give it more room"));
  }
  HETERO_RETURN_IF_ERROR(fetched);
  const std::string copy = absl::StrCat("file://", path);
  objects_.emplace_back(copy, *uri);
  objects_.emplace_back(path, *uri);
  *uri = copy;
  return absl::OkStatus();
}

}  // namespace hetero::train
