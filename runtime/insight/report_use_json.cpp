#include "runtime/insight/report_use_json.h"

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"

namespace hetero::insight {
namespace {

// As in the rest of the report: six significant digits, and absent what is no number.
void PutNumber(nlohmann::ordered_json& object, const char* key, double value) {
  if (!std::isfinite(value)) return;
  object[key] = std::strtod(absl::StrFormat("%.6g", value).c_str(), nullptr);
}

void PutIfKnown(nlohmann::ordered_json& object, const char* key, std::optional<double> value) {
  if (value) PutNumber(object, key, *value);
}

nlohmann::ordered_json GroupsJson(const SecondsByGroup& seconds) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (size_t i = 0; i < kThreadGroups; ++i) {
    if (seconds[i] > 0) PutNumber(object, NameOf(static_cast<ThreadGroup>(i)), seconds[i]);
  }
  return object;
}

nlohmann::ordered_json PointJson(const UsePoint& point) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  PutNumber(object, "seconds", point.seconds);
  PutNumber(object, "span", point.span);
  object["cpuSeconds"] = GroupsJson(point.cpu_seconds);
  object["rssBytes"] = point.rss_bytes;
  PutNumber(object, "runQueueSeconds", point.run_queue_seconds);
  PutNumber(object, "machineBusyCores", point.machine_busy_cores);
  PutIfKnown(object, "gpuUtilization", point.gpu_utilization());
  return object;
}

nlohmann::ordered_json ResourcesJson(const ReportResources& resources) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  object["member"] = resources.member;
  object["role"] = resources.role;
  object["index"] = resources.index;
  PutNumber(object, "seconds", resources.seconds);
  PutNumber(object, "cores", resources.cores);
  object["cpuSeconds"] = GroupsJson(resources.cpu_seconds);
  PutNumber(object, "busyCoresMedian", resources.busy_cores_median);
  PutNumber(object, "busyCoresP95", resources.busy_cores_p95);
  PutNumber(object, "runQueueSeconds", resources.run_queue_seconds);
  PutIfKnown(object, "throttledSeconds", resources.throttled_seconds);
  object["peakRssBytes"] = resources.peak_rss_bytes;
  object["majorFaults"] = resources.major_faults;
  object["diskReadBytes"] = resources.disk_read_bytes;
  object["diskWrittenBytes"] = resources.disk_written_bytes;
  object["receivedBytes"] = resources.received_bytes;
  object["sentBytes"] = resources.sent_bytes;
  PutIfKnown(object, "gpuUtilization", resources.gpu_utilization);
  nlohmann::ordered_json line = nlohmann::ordered_json::array();
  for (const UsePoint& point : resources.time_line) line.push_back(PointJson(point));
  object["timeLine"] = std::move(line);
  return object;
}

nlohmann::ordered_json SpanJson(const ReportLifeSpan& span) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  object["span"] = span.span;
  object["count"] = span.count;
  PutNumber(object, "p50", span.p50);
  PutNumber(object, "p90", span.p90);
  PutNumber(object, "p95", span.p95);
  PutNumber(object, "p99", span.p99);
  return object;
}

}  // namespace

void PutUse(nlohmann::ordered_json& object, const Report& report) {
  nlohmann::ordered_json resources = nlohmann::ordered_json::array();
  for (const ReportResources& one : report.resources) resources.push_back(ResourcesJson(one));
  object["resources"] = std::move(resources);
  nlohmann::ordered_json lives = nlohmann::ordered_json::array();
  for (const ReportLifeSpan& span : report.batch_lives) lives.push_back(SpanJson(span));
  object["batchLives"] = std::move(lives);
}

}  // namespace hetero::insight
