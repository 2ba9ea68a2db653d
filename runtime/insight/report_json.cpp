#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/strings/str_format.h"
#include "runtime/insight/report.h"
#include "runtime/insight/report_use_json.h"

namespace hetero::insight {
namespace {

using Json = nlohmann::ordered_json;

// Six significant digits: more than any of these figures is known to, and short to read.
double Rounded(double value) {
  return std::strtod(absl::StrFormat("%.6g", value).c_str(), nullptr);
}

// JSON has no way to write NaN or infinity, so such a number is absent.
void Put(Json& object, const char* key, double value) {
  if (std::isfinite(value)) object[key] = Rounded(value);
}

void Put(Json& object, const char* key, int64_t value) { object[key] = value; }

void Put(Json& object, const char* key, const std::string& value) { object[key] = value; }

template <typename T>
void Put(Json& object, const char* key, const std::optional<T>& value) {
  if (value.has_value()) Put(object, key, *value);
}

void PutUnlessEmpty(Json& object, const char* key, const std::string& value) {
  if (!value.empty()) object[key] = value;
}

template <typename T, typename F>
Json List(const std::vector<T>& values, F to_json) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(to_json(value));
  return list;
}

Json ToJson(const PhaseSeconds& phases) {
  Json object = Json::object();
  Put(object, "wait", phases.wait);
  Put(object, "hostToDevice", phases.host_to_device);
  Put(object, "forward", phases.forward);
  Put(object, "backward", phases.backward);
  Put(object, "allReduce", phases.all_reduce);
  Put(object, "optimizer", phases.optimizer);
  Put(object, "checkpoint", phases.checkpoint);
  Put(object, "evaluation", phases.evaluation);
  Put(object, "other", phases.other);
  return object;
}

Json ToJson(const WaitSeconds& waits) {
  Json object = Json::object();
  Put(object, "noWorker", waits.no_worker);
  Put(object, "workers", waits.workers);
  Put(object, "transfer", waits.transfer);
  Put(object, "handover", waits.handover);
  return object;
}

Json ToJson(const ReportPlacement& placement) {
  Json object = Json::object();
  Put(object, "op", placement.op);
  if (!placement.function.empty()) Put(object, "function", placement.function);
  Put(object, "where", placement.where);
  Put(object, "reason", placement.reason);
  Put(object, "workerSeconds", placement.worker_seconds);
  Put(object, "pythonSeconds", placement.python_seconds);
  Put(object, "trainerSeconds", placement.trainer_seconds);
  Put(object, "bytesIn", placement.bytes_in);
  Put(object, "bytesOut", placement.bytes_out);
  return object;
}

Json ToJson(const TimePoint& point) {
  Json object = Json::object();
  Put(object, "step", point.step);
  Put(object, "seconds", point.seconds);
  object["phaseSeconds"] = ToJson(point.phases);
  return object;
}

Json ToJson(const ReportTimeLine& line) {
  Json object = Json::object();
  Put(object, "rank", int64_t{line.rank});
  object["points"] = List(line.points, [](const TimePoint& p) { return ToJson(p); });
  return object;
}

Json ToJson(const ReportPrediction& prediction) {
  Json object = Json::object();
  Put(object, "role", prediction.role);
  Put(object, "replicas", int64_t{prediction.replicas});
  Put(object, "samplesPerSecond", prediction.samples_per_second);
  Put(object, "dollarsPer1000Steps", prediction.dollars_per_1000_steps);
  return object;
}

Json ToJson(const ReportEvaluation& evaluation) {
  Json object = Json::object();
  Put(object, "epoch", evaluation.epoch);
  Put(object, "step", evaluation.step);
  Put(object, "loss", evaluation.loss);
  Put(object, "accuracy", evaluation.accuracy);
  if (evaluation.samples > 0) Put(object, "samples", evaluation.samples);
  return object;
}

Json ToJson(const ReportLoss& point) {
  Json object = Json::object();
  Put(object, "step", point.step);
  Put(object, "loss", point.loss);
  Put(object, "secondsPerStep", point.seconds_per_step);
  return object;
}

Json ToJson(const ReportWorker& worker) {
  Json object = Json::object();
  Put(object, "name", worker.name);
  Put(object, "role", worker.role);
  Put(object, "index", int64_t{worker.index});
  PutUnlessEmpty(object, "node", worker.node);
  Put(object, "batches", worker.batches);
  Put(object, "samples", worker.samples);
  Put(object, "bytes", worker.bytes);
  Put(object, "dataWaitPercent", worker.data_wait_percent);
  Put(object, "cpuSeconds", worker.cpu_seconds);
  // No process has a peak of zero bytes: it was lost before it reported one.
  if (worker.peak_rss_bytes > 0) Put(object, "peakRssBytes", worker.peak_rss_bytes);
  Put(object, "restarts", worker.restarts);
  if (worker.storage_requests > 0) {
    Put(object, "storageRequests", worker.storage_requests);
    Put(object, "storageBytes", worker.storage_bytes);
  }
  if (worker.window_bytes > 0 && worker.window_batches > 0) {
    Put(object, "inputWindowBytes", worker.window_bytes);
    Put(object, "inputWindowBatches", worker.window_batches);
  }
  return object;
}

Json ToJson(const ReportOrder& order) {
  Json object = Json::object();
  Put(object, "shuffle", order.shuffle);
  Put(object, "requests", order.requests);
  Put(object, "bytes", order.bytes);
  Put(object, "dollars", order.dollars);
  return object;
}

Json ToJson(const ReportStorage& storage) {
  Json object = Json::object();
  Put(object, "requests", storage.requests);
  Put(object, "retries", storage.retries);
  Put(object, "bytes", storage.bytes);
  Put(object, "dollars", storage.dollars);
  if (!storage.orders.empty()) {
    object["orders"] = List(storage.orders, [](const ReportOrder& order) { return ToJson(order); });
  }
  return object;
}

Json ToJson(const ReportAttempt& attempt) {
  Json object = Json::object();
  Put(object, "attempt", attempt.attempt);
  Put(object, "time", attempt.time);
  Put(object, "seconds", attempt.seconds);
  PutUnlessEmpty(object, "cause", attempt.cause);
  return object;
}

Json ToJson(const ReportFault& fault) {
  Json object = Json::object();
  Put(object, "time", fault.time);
  Put(object, "what", fault.what);
  Put(object, "recoverySeconds", fault.recovery_seconds);
  return object;
}

Json ToJson(const ReportDisruption& disruption) {
  Json object = Json::object();
  Put(object, "time", disruption.time);
  Put(object, "member", disruption.member);
  Put(object, "sign", disruption.sign);
  Put(object, "checkpointSeconds", disruption.checkpoint_seconds);
  if (disruption.checkpoint_seconds) Put(object, "checkpointStep", disruption.checkpoint_step);
  return object;
}

Json ToJson(const ReportFinding& finding) {
  Json object = Json::object();
  Put(object, "rule", finding.rule);
  Put(object, "message", finding.message);
  PutUnlessEmpty(object, "remedy", finding.remedy);
  PutUnlessEmpty(object, "field", finding.field);
  PutUnlessEmpty(object, "member", finding.member);
  if (finding.seconds > 0) Put(object, "seconds", finding.seconds);
  Put(object, "dollars", finding.dollars);
  PutUnlessEmpty(object, "since", finding.since);
  object["active"] = finding.active;
  return object;
}

Json ToJson(const ReportBadSample& sample) {
  Json object = Json::object();
  Put(object, "sampleId", sample.sample_id);
  Put(object, "replacementId", sample.replacement_id);
  Put(object, "reason", sample.reason);
  return object;
}

void PutStream(Json& object, const Report& report) {
  Put(object, "epochs", report.epochs);
  Put(object, "steps", report.steps);
  Put(object, "samplesConsumed", report.samples_consumed);
  Put(object, "duplicatesDropped", report.duplicates_dropped);
  Put(object, "ticketsReissued", report.tickets_reissued);
  Put(object, "badSamples", report.bad_samples);
  Put(object, "skippedSteps", report.skipped_steps);
  object["badSampleList"] =
      List(report.bad_sample_list, [](const ReportBadSample& s) { return ToJson(s); });
  Put(object, "streamDigest", report.stream_digest);
  if (!report.digest_problem.empty()) {
    object["streamDigest"] = nullptr;
    object["digestProblem"] = report.digest_problem;
  }
  Put(object, "seed", report.seed);
}

void PutTimes(Json& object, const Report& report) {
  Put(object, "startupSeconds", report.startup_seconds);
  Put(object, "trainSeconds", report.train_seconds);
  Put(object, "wallSeconds", report.wall_seconds);
  Put(object, "samplesPerSecond", report.samples_per_second);
  Put(object, "ceilingSamplesPerSecond", report.ceiling_samples_per_second);
  PutUnlessEmpty(object, "ceilingSource", report.ceiling_source);
  Put(object, "dataWaitPercent", report.data_wait_percent);
  if (report.phase_seconds.has_value()) object["phaseSeconds"] = ToJson(*report.phase_seconds);
  if (report.wait_seconds.has_value()) object["waitSeconds"] = ToJson(*report.wait_seconds);
  object["timeLines"] = List(report.time_lines, [](const ReportTimeLine& l) { return ToJson(l); });
}

void PutReported(Json& object, const Report& report) {
  if (report.reported.empty()) return;
  Json reported = Json::object();
  for (const auto& [name, value] : report.reported) Put(reported, name.c_str(), value);
  object["reported"] = reported;
}

void PutWorkers(Json& object, const Report& report) {
  object["workers"] = List(report.workers, [](const ReportWorker& w) { return ToJson(w); });
  if (!report.cpu_seconds_per_sample.empty()) {
    Json per_role = Json::object();
    for (const auto& [role, seconds] : report.cpu_seconds_per_sample) {
      Put(per_role, role.c_str(), seconds);
    }
    object["cpuSecondsPerSample"] = per_role;
  }
}

// The manifest as an object; as a string should it not be JSON, so that nothing is lost.
void PutConfig(Json& object, const std::string& config_json) {
  if (config_json.empty()) return;
  Json config = Json::parse(config_json, /*cb=*/nullptr, /*allow_exceptions=*/false);
  object["config"] = config.is_discarded() ? Json(config_json) : config;
}

}  // namespace

std::string ToJson(const Report& report) {
  Json object = Json::object();
  Put(object, "job", report.job);
  Put(object, "state", report.state);
  PutUnlessEmpty(object, "message", report.message);
  Put(object, "attempt", report.attempt);
  object["attempts"] = List(report.attempts, [](const ReportAttempt& a) { return ToJson(a); });
  Put(object, "generations", report.generations);
  Put(object, "scriptRestarts", report.script_restarts);
  PutStream(object, report);
  PutTimes(object, report);
  Put(object, "loss", report.loss);
  Put(object, "accuracy", report.accuracy);
  object["evaluations"] =
      List(report.evaluations, [](const ReportEvaluation& e) { return ToJson(e); });
  object["lossCurve"] = List(report.loss_curve, [](const ReportLoss& p) { return ToJson(p); });
  PutReported(object, report);
  PutWorkers(object, report);
  object["faults"] = List(report.faults, [](const ReportFault& f) { return ToJson(f); });
  object["disruptions"] =
      List(report.disruptions, [](const ReportDisruption& d) { return ToJson(d); });
  Put(object, "stepsRedone", report.steps_redone);
  Put(object, "costDollars", report.cost_dollars);
  Put(object, "costPerMillionSamples", report.cost_per_million_samples);
  if (report.storage) object["storage"] = ToJson(*report.storage);
  Put(object, "verdict", report.verdict);
  object["findings"] = List(report.findings, [](const ReportFinding& f) { return ToJson(f); });
  object["predictions"] =
      List(report.predictions, [](const ReportPrediction& p) { return ToJson(p); });
  object["placement"] = List(report.placement, [](const ReportPlacement& p) { return ToJson(p); });
  PutUse(object, report);
  Put(object, "checkpointURI", report.checkpoint_uri);
  Put(object, "checkpointProblem", report.checkpoint_problem);
  Put(object, "resumedFromStep", report.resumed_from_step);
  PutConfig(object, report.config_json);
  Json versions = Json::object();
  for (const auto& [name, version] : report.versions) versions[name] = version;
  object["versions"] = versions;
  // Names come from files and peers: text that is not UTF-8 must not cost the report.
  return object.dump(/*indent=*/2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace hetero::insight
