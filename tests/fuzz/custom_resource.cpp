#include "api/job_status.h"
#include "operator/reconcile/project.h"
#include "tests/fuzz/fuzz.h"

// An object as the API server has it, of any kind and shape: what the operator's stores keep of it.
// As a job's status and as a pod's last words, too, which must come back from what we write.
namespace hetero {
namespace {

void CheckStatus(std::string_view text) {
  const absl::StatusOr<api::JobStatus> status = api::StatusFromJson(text);
  if (!status.ok()) return;
  const std::string written = api::StatusToJson(*status);
  const absl::StatusOr<api::JobStatus> again = api::StatusFromJson(written);
  fuzz::Require(again.ok(), "a status that we wrote is refused: " + written);
  fuzz::Require(api::StatusToJson(*again) == written, "a status changes on its way: " + written);
}

void CheckVerdict(std::string_view text) {
  const std::optional<api::Verdict> verdict = api::VerdictFromJson(text);
  if (!verdict.has_value()) return;
  const std::string written = api::VerdictToJson(*verdict);
  fuzz::Require(written.size() <= 3072 || verdict->message.empty(), "last words are too long");
  const std::optional<api::Verdict> again = api::VerdictFromJson(written);
  fuzz::Require(again.has_value(), "last words that we wrote are refused: " + written);
  fuzz::Require(api::VerdictToJson(*again) == written, "last words change: " + written);
}

}  // namespace
}  // namespace hetero

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hetero;
  fuzz::Silence();
  const std::string_view text = fuzz::TextOf(data, size);
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded()) return 0;
  const auto job = reconcile::ProjectJob(object, nullptr);
  const auto again = reconcile::ProjectJob(object, job);
  fuzz::Require(again->job.metadata.name == job->job.metadata.name &&
                    again->errors.size() == job->errors.size(),
                "a job seen again is another one");
  reconcile::ProjectPod(object);
  reconcile::ProjectObject(object);
  reconcile::ProjectNode(object);
  CheckStatus(text);
  CheckVerdict(text);
  return 0;
}
