#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/compare/comparison.h"

namespace hetero::compare {
namespace {

using Json = nlohmann::ordered_json;

void Put(Json& object, const char* name, const std::optional<double>& value) {
  if (value && std::isfinite(*value)) object[name] = *value;
}

void Put(Json& object, const char* name, const std::map<std::string, double>& values) {
  if (values.empty()) return;
  Json numbers = Json::object();
  for (const auto& [key, value] : values) numbers[key] = value;
  object[name] = std::move(numbers);
}

Json RunJson(const RunReport& run, const Noise& noise, const RunReport& first) {
  Json object = Json::object();
  object["place"] = run.place;
  object["job"] = run.job;
  object["state"] = run.state;
  if (!run.message.empty()) object["message"] = run.message;
  Put(object, "samplesPerSecond", run.samples_per_second);
  Put(object, "samplesPerSecondRatio", RatioOf(run.samples_per_second, first.samples_per_second));
  object["noise"] = noise.share;
  object["noiseMeasured"] = noise.measured;
  Put(object, "dataWaitPercent", run.wait_percent);
  Put(object, "stepSeconds", run.step_seconds);
  Put(object, "phaseSeconds", run.phase_seconds);
  Put(object, "cpuSecondsPerSample", run.cpu_seconds);
  Put(object, "startupSeconds", run.startup_seconds);
  Put(object, "trainSeconds", run.train_seconds);
  Put(object, "wallSeconds", run.wall_seconds);
  Put(object, "steps", run.steps);
  Put(object, "samplesConsumed", run.samples);
  object["faults"] = run.faults;
  Put(object, "loss", run.loss);
  Put(object, "accuracy", run.accuracy);
  Put(object, "reported", run.reported);
  object["cpuWorkers"] = run.cpu_workers;
  Put(object, "dollarsPerHour", run.dollars_per_hour);
  Put(object, "costDollars", run.dollars);
  Put(object, "costPerMillionSamples", run.dollars_per_million);
  const std::optional<double> training = run.TrainingDollarsPerMillion();
  Put(object, "trainingDollarsPerMillionSamples", training);
  Put(object, "trainingDollarsPerMillionSamplesRatio",
      RatioOf(training, first.TrainingDollarsPerMillion()));
  if (!run.digest.empty()) object["streamDigest"] = run.digest;
  return object;
}

Json SideJson(const PriceSide& side) {
  Json object = Json::object();
  Put(object, "samplesPerSecond", side.samples_per_second);
  Put(object, "dollarsPerHour", side.dollars_per_hour);
  Put(object, "dollarsPerMillionSamples", side.dollars_per_million);
  Put(object, "samplesPerDollar", side.samples_per_dollar());
  return object;
}

Json PricesJson(const PriceTable& table) {
  Json object = Json::object();
  object["alone"] = SideJson(table.alone);
  object["withCpuWorkers"] = SideJson(table.together);
  Put(object, "samplesPerSecondRatio",
      RatioOf(table.together.samples_per_second, table.alone.samples_per_second));
  Put(object, "leastRatio", table.least_ratio);
  Put(object, "greatestRatio", table.greatest_ratio);
  Put(object, "dollarsPerHourRatio",
      RatioOf(table.together.dollars_per_hour, table.alone.dollars_per_hour));
  Put(object, "samplesPerDollarRatio",
      RatioOf(table.together.samples_per_dollar(), table.alone.samples_per_dollar()));
  object["notes"] = table.notes;
  return object;
}

}  // namespace

std::string ToJson(const Comparison& comparison) {
  Json object = Json::object();
  object["runs"] = Json::array();
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    object["runs"].push_back(
        RunJson(comparison.runs[i], comparison.noises[i], comparison.runs.front()));
  }
  if (comparison.manifests_known) {
    object["differences"] = Json::array();
    for (const Difference& difference : comparison.differences) {
      Json values = Json::array();
      for (const auto& value : difference.values) values.push_back(value ? Json(*value) : Json());
      object["differences"].push_back({{"path", difference.path}, {"values", std::move(values)}});
    }
  }
  if (comparison.input.equal) object["equalInput"] = *comparison.input.equal;
  object["input"] = comparison.input.sentence;
  if (comparison.ranking.fastest) object["fastest"] = *comparison.ranking.fastest;
  if (comparison.ranking.cheapest) object["cheapest"] = *comparison.ranking.cheapest;
  object["verdict"] = comparison.ranking.sentence;
  object["notes"] = comparison.notes;
  if (comparison.prices) object["prices"] = PricesJson(*comparison.prices);
  return object.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hetero::compare
