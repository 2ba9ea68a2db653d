#include "runtime/insight/live/snapshot_json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace hetero::live {
namespace {

using nlohmann::json;

constexpr int kDigits = 3;
constexpr int kExact = 6;  // of sums, which people compare

// `digits` significant ones. What is no number is none.
json Figure(double value, int digits = kDigits) {
  if (!std::isfinite(value)) return nullptr;
  if (value == 0) return 0;
  const double scale = std::pow(10.0, digits - 1 - std::floor(std::log10(std::abs(value))));
  const double rounded = std::round(value * scale) / scale;
  if (rounded == std::floor(rounded) && std::abs(rounded) < 1e15) {
    return static_cast<int64_t>(rounded);
  }
  return rounded;
}

json Figure(const std::optional<double>& value, int digits = kDigits) {
  return value ? Figure(*value, digits) : json(nullptr);
}

void Put(json& object, const char* key, const std::optional<double>& value, int digits = kDigits) {
  json figure = Figure(value, digits);
  if (!figure.is_null()) object[key] = std::move(figure);
}

void Put(json& object, const char* key, const std::string& text) {
  if (!text.empty()) object[key] = text;
}

json Waits(const insight::WaitSeconds& waits) {
  return {{"noWorker", Figure(waits.no_worker, 4)},
          {"workers", Figure(waits.workers, 4)},
          {"transfer", Figure(waits.transfer, 4)},
          {"handover", Figure(waits.handover, 4)}};
}

json Phases(const insight::PhaseSeconds& phases) {
  return {{"wait", Figure(phases.wait, 4)},
          {"hostToDevice", Figure(phases.host_to_device, 4)},
          {"forward", Figure(phases.forward, 4)},
          {"backward", Figure(phases.backward, 4)},
          {"allReduce", Figure(phases.all_reduce, 4)},
          {"optimizer", Figure(phases.optimizer, 4)},
          {"checkpoint", Figure(phases.checkpoint, 4)},
          {"evaluation", Figure(phases.evaluation, 4)},
          {"other", Figure(phases.other, 4)}};
}

json FindingJson(const Finding& finding) {
  json object = {{"rule", finding.rule}, {"message", finding.message}, {"active", finding.active}};
  Put(object, "remedy", finding.remedy);
  Put(object, "field", finding.field);
  Put(object, "member", finding.member);
  if (finding.seconds > 0) Put(object, "seconds", finding.seconds);
  Put(object, "dollars", finding.dollars);
  return object;
}

// Resident memory moves by pages all the time; whole MiB are seen.
json Mebibytes(const std::optional<int64_t>& bytes) {
  return bytes ? json(*bytes >> 20) : json(nullptr);
}

json MemberRow(const Member& member) {
  return json::array({member.slot, member.role, member.rank ? 1 : 0, member.node, member.state,
                      member.restarts, Figure(member.samples_per_second),
                      Figure(member.busy_cores, 2), Figure(member.cores), Figure(member.gpu, 2),
                      Mebibytes(member.rss_bytes), Figure(member.wait_percent, 2),
                      Figure(member.queued_threads, 2), Figure(member.bytes_per_second, 2)});
}

json OperatorJson(const Operator& op) {
  json object = {{"name", op.name}};
  Put(object, "where", op.where);
  Put(object, "reason", op.reason);
  Put(object, "coreSeconds", op.core_seconds);
  Put(object, "pythonSeconds", op.python_seconds);
  Put(object, "cores", op.cores);
  return object;
}

json SpansJson(const Spans& spans) {
  json list = json::array();
  for (const double seconds : spans) list.push_back(Figure(std::max(seconds, 0.0)));
  return list;
}

json Lives(const BatchLives& lives) {
  json object = {{"batches", lives.batches}};
  if (lives.median) object["median"] = SpansJson(*lives.median);
  if (lives.p95) object["p95"] = SpansJson(*lives.p95);
  if (lives.latest) {
    object["latest"] = SpansJson(*lives.latest);
    object["latestStep"] = lives.latest_step;
    object["latestRead"] = Figure(lives.latest_read);
    Put(object, "latestWorker", lives.latest_worker);
  }
  return object;
}

json Columns(const std::map<int64_t, std::string>& columns) {
  json object = json::object();
  for (const auto& [place, column] : columns) object[absl::StrCat(place)] = column;
  return object;
}

json HeatJson(const Heat& heat) {
  json object = {{"span", heat.span}, {"columns", Columns(heat.columns)}};
  if (!heat.gpus.empty()) object["gpus"] = Columns(heat.gpus);
  return object;
}

json Log(const std::vector<LogLine>& lines) {
  json object = json::object();
  for (const LogLine& line : lines) {
    object[absl::StrCat(line.number)] = json::array({line.member, line.unix_ms, line.text});
  }
  return object;
}

void PutSeries(const Snapshot& snapshot, json& object) {
  json& rates = object["rates"] = json::object();
  for (const RatePoint& point : snapshot.rates) {
    rates[absl::StrCat(std::llround(point.seconds * 10))] =
        json::array({Figure(point.samples_per_second), Figure(point.wait_percent)});
  }
  json& losses = object["losses"] = json::object();
  for (const insight::ReportLoss& point : snapshot.losses) {
    losses[absl::StrCat(point.step)] = Figure(point.loss, 4);
  }
  json& evaluations = object["evaluations"] = json::object();
  for (const insight::ReportEvaluation& one : snapshot.evaluations) {
    evaluations[absl::StrCat(one.step)] =
        json::array({one.epoch, Figure(one.loss, 4), Figure(one.accuracy, 4)});
  }
  json& events = object["events"] = json::array();
  for (const Event& event : snapshot.events) {
    events.push_back(json::array({Figure(event.seconds, kExact), event.kind, event.member,
                                  event.text, Figure(event.recovery_seconds)}));
  }
}

void PutProgress(const Snapshot& snapshot, json& object) {
  object["step"] = snapshot.step;
  object["totalSteps"] = snapshot.total_steps;
  object["epoch"] = snapshot.epoch;
  object["totalEpochs"] = snapshot.total_epochs;
  object["samples"] = snapshot.samples;
  Put(object, "etaSeconds", snapshot.eta_seconds);
  Put(object, "samplesPerSecond", snapshot.samples_per_second);
  Put(object, "ceiling", snapshot.ceiling);
  Put(object, "waitPercent", snapshot.wait_percent);
  Put(object, "verdict", snapshot.verdict);
  if (snapshot.waits) object["waits"] = Waits(*snapshot.waits);
  if (snapshot.phases) object["phases"] = Phases(*snapshot.phases);
  Put(object, "loss", snapshot.last_loss, 4);
  Put(object, "accuracy", snapshot.last_accuracy, 4);
  Put(object, "dollars", snapshot.dollars, 4);
  Put(object, "dollarsPerHour", snapshot.dollars_per_hour, 4);
  Put(object, "dollarsPerMillionSamples", snapshot.dollars_per_million_samples);
  Put(object, "waitingDollars", snapshot.waiting_dollars);
}

}  // namespace

char HeatOf(std::optional<double> share) {
  if (!share || !std::isfinite(*share)) return ' ';
  return static_cast<char>('0' + std::lround(std::clamp(*share, 0.0, 1.0) * 63));
}

json ToJson(const Snapshot& snapshot) {
  json object = {{"job", snapshot.job}, {"state", snapshot.state}, {"over", snapshot.over}};
  Put(object, "message", snapshot.message);
  // A number of this size is not exact in JavaScript.
  object["head"] = absl::StrCat(snapshot.head_incarnation);
  object["seconds"] = std::round(snapshot.seconds * 10) / 10;
  PutProgress(snapshot, object);
  json& findings = object["findings"] = json::array();
  for (const Finding& finding : snapshot.findings) findings.push_back(FindingJson(finding));
  json& members = object["members"] = json::object();
  for (const Member& member : snapshot.members) members[member.name] = MemberRow(member);
  json& operators = object["operators"] = json::array();
  for (const Operator& op : snapshot.operators) operators.push_back(OperatorJson(op));
  PutSeries(snapshot, object);
  object["lives"] = Lives(snapshot.lives);
  object["heat"] = HeatJson(snapshot.heat);
  object["log"] = Log(snapshot.log);
  return object;
}

std::string ToText(const json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

std::string ToText(const MemberDetail& detail) {
  json columns = json::array();
  for (const MemberDetail::Column& column : detail.columns) {
    const std::string gpus(column.gpus.begin(), column.gpus.end());
    columns.push_back(json::array({Figure(column.seconds, 8), Figure(column.span),
                                   absl::Base64Escape(column.cores), absl::Base64Escape(gpus)}));
  }
  json groups = json::object();
  for (size_t i = 0; i < std::min(detail.groups.size(), detail.group_seconds.size()); ++i) {
    groups[detail.groups[i]] = Figure(detail.group_seconds[i], 4);
  }
  return ToText(json{{"name", detail.name},
                     {"seconds", Figure(detail.seconds, 8)},
                     {"columns", std::move(columns)},
                     {"groups", std::move(groups)},
                     {"log", Log(detail.log)}});
}

}  // namespace hetero::live
