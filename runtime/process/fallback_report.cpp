#include "runtime/process/fallback_report.h"

#include "absl/status/statusor.h"
#include "base/atomic_file.h"
#include "runtime/head/history_codec.h"
#include "runtime/head/history_restore.h"
#include "runtime/head/report_builder.h"

namespace hetero::process {
namespace {

v1::History ReadHistory(const HeadlessEnd& end) {
  const absl::StatusOr<std::string> text = base::ReadFile(end.history_file);
  if (!text.ok()) return {};
  absl::StatusOr<v1::History> history = head::DecodeHistory(*text, end.run, end.attempt);
  return history.ok() ? *std::move(history) : v1::History();
}

}  // namespace

insight::Report MakeFallbackReport(const HeadlessEnd& end, base::Clock& clock) {
  const head::Moment now{clock.Now(), clock.WallNow()};
  head::JobRecord record;
  record.job = end.job;
  record.created = end.created;
  record.state = end.state;
  record.stop_reason = end.message;
  head::RestoreHistory(ReadHistory(end), {.number = end.attempt, .began = end.created}, now,
                       record);
  return head::BuildReport(record, now);
}

}  // namespace hetero::process
