#include "operator/reconcile/pod_set_difference.h"

#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "operator/reconcile/json_access.h"

namespace hetero::reconcile {
namespace {

using nlohmann::json;

// By "container runtime cpu".
using Requests = std::map<std::string, std::string>;

struct Set {
  int64_t count = 0;
  Requests requests;
};

std::string TextOfQuantity(const json& quantity) {
  return quantity.is_string() ? quantity.get<std::string>() : Dump(quantity);
}

// A limit is a request, too, where there is none: the API server makes one of it.
void AddRequests(const json& spec, const char* list, Requests& requests) {
  for (const json& container : ListOf(spec, list)) {
    const json& resources = FieldOf(container, "resources");
    for (const char* kind : {"requests", "limits"}) {
      for (const auto& [resource, quantity] : base::ObjectOf(resources, kind).items()) {
        requests.emplace(absl::StrCat("container ", TextOf(container, "name"), ": ", resource),
                         TextOfQuantity(quantity));
      }
    }
  }
}

std::map<std::string, Set> SetsOf(const json& workload) {
  std::map<std::string, Set> sets;
  for (const json& set : ListOf(FieldOf(workload, "spec"), "podSets")) {
    Set& read = sets[TextOf(set, "name")];
    read.count = IntegerOf(set, "count");
    const json& spec = FieldOf(FieldOf(set, "template"), "spec");
    AddRequests(spec, "containers", read.requests);
    AddRequests(spec, "initContainers", read.requests);
  }
  return sets;
}

bool SameQuantity(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const std::optional<double> left = QuantityValue(a);
  const std::optional<double> right = QuantityValue(b);
  return left && right && std::abs(*left - *right) <= 1e-9 * std::abs(*right);
}

std::string Or(const Requests& requests, const std::string& key) {
  const auto found = requests.find(key);
  return found == requests.end() ? "nothing" : found->second;
}

std::string RequestDifference(const Requests& has, const Requests& needs) {
  Requests all = has;
  all.insert(needs.begin(), needs.end());
  for (const auto& [key, unused] : all) {
    const std::string here = Or(has, key);
    const std::string there = Or(needs, key);
    if (!SameQuantity(here, there)) {
      return absl::StrCat(key, " is ", here, " and has to be ", there);
    }
  }
  return "";
}

}  // namespace

std::optional<double> QuantityValue(std::string_view quantity) {
  static const std::map<std::string_view, double>* const kSuffixes =
      new std::map<std::string_view, double>{
          {"n", 1e-9},    {"u", 1e-6},    {"m", 1e-3},    {"", 1},
          {"k", 1e3},     {"M", 1e6},     {"G", 1e9},     {"T", 1e12},
          {"P", 1e15},    {"E", 1e18},    {"Ki", 0x1p10}, {"Mi", 0x1p20},
          {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60}};
  const size_t digits = quantity.find_last_of("0123456789.");
  if (digits == std::string_view::npos) return std::nullopt;
  const auto suffix = kSuffixes->find(quantity.substr(digits + 1));
  double value = 0;
  if (suffix == kSuffixes->end() ||
      !absl::SimpleAtod(std::string(quantity.substr(0, digits + 1)), &value)) {
    return std::nullopt;
  }
  return value * suffix->second;
}

std::string PodSetDifference(const json& workload, const json& needed) {
  const std::map<std::string, Set> has = SetsOf(workload);
  const std::map<std::string, Set> needs = SetsOf(needed);
  for (const auto& [name, set] : has) {
    if (!needs.contains(name)) return absl::StrCat("the job has no pod set ", name);
  }
  for (const auto& [name, set] : needs) {
    const auto found = has.find(name);
    if (found == has.end()) return absl::StrCat("it has no pod set ", name);
    if (found->second.count != set.count) {
      return absl::StrCat("its pod set ", name, " is of ", found->second.count,
                          " pods and has to be of ", set.count);
    }
    const std::string requests = RequestDifference(found->second.requests, set.requests);
    if (!requests.empty()) return absl::StrCat("pod set ", name, ", ", requests);
  }
  return "";
}

}  // namespace hetero::reconcile
