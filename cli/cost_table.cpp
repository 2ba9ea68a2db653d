#include "cli/cost_table.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/sections.h"
#include "cli/text.h"

namespace hetero::cli {
namespace {

using nlohmann::json;

constexpr char kUnknown[] = "-";
constexpr double kCents = 100;

// Cents; of what is less than that, as far as it is known.
std::string Money(double dollars) {
  const bool small = dollars != 0 && std::abs(dollars) < 1 / kCents;
  return small ? absl::StrFormat("%.6f", dollars) : absl::StrFormat("%.2f", dollars);
}
std::string Money(const std::optional<double>& dollars) {
  return dollars ? Money(*dollars) : kUnknown;
}

std::string Share(double part, double whole) {
  return whole > 0 ? absl::StrFormat("%.1f %%", 100 * part / whole) : kUnknown;
}

Row RowOf(const api::RoleCost& role) {
  const double hours = role.pod_hours;
  return {Plain(role.name),
          absl::StrCat(role.pods),
          absl::StrFormat("%.2f", hours),
          hours > 0 && role.dollars > 0 ? Money(role.dollars / hours) : kUnknown,
          Money(role.dollars),
          Money(role.waiting_dollars)};
}

void Say(const char* name, const std::string& what, const Style& style, std::string& text) {
  const std::string line = absl::StrFormat("%-20s%s", name, what);
  for (const std::string& part : Wrap(line, style.width, 20)) absl::StrAppend(&text, part, "\n");
}

std::string Pods(int64_t count) {
  return absl::StrCat(count, count == 1 ? " pod has" : " pods have");
}

void Remarks(const JobView& view, const Style& style, std::string& text) {
  const api::JobCost& cost = *view.status.cost;
  if (cost.on_demand_dollars) {
    const double saved = *cost.on_demand_dollars - cost.dollars;
    Say("on demand",
        absl::StrCat(Money(*cost.on_demand_dollars), " dollars: ", Money(saved), " (",
                     Share(saved, *cost.on_demand_dollars), ") saved"),
        style, text);
  }
  if (cost.waiting_dollars) {
    Say("waiting for data",
        absl::StrCat(Money(*cost.waiting_dollars), " dollars, ",
                     Share(*cost.waiting_dollars, cost.dollars), " of all"),
        style, text);
  }
  if (cost.per_million_samples) {
    Say("per million samples", Money(*cost.per_million_samples) + " dollars", style, text);
  }
  double budget = 0;
  if (!view.max_dollars.empty() && absl::SimpleAtod(view.max_dollars, &budget)) {
    Say("budget", absl::StrCat(Money(budget), " dollars: ", Share(cost.dollars, budget), " spent"),
        style, text);
  }
  if (cost.uncertain_dollars > 0 || cost.uncertain_seconds > 0) {
    Say("uncertain",
        absl::StrCat(Money(cost.uncertain_dollars), " dollars: of ", cost.uncertain_seconds,
                     " pod seconds nobody saw whether the pod still ran"),
        style, text);
  }
  if (cost.priceless_pods) {
    Say("not counted",
        absl::StrCat(
            Pods(*cost.priceless_pods),
            " no price and cost more than this says: state pricePerHour of their roles, or "
            "have the operator given a price sheet"),
        style, text);
  }
}

std::string WithoutCost(const JobView& view) {
  return absl::StrCat("heterotrainingjob ", view.name_space, "/", view.name, " has no cost: ",
                      view.status.observed_generation == 0
                          ? "no operator has seen it yet"
                          : "nothing of it has a price; state spec.roles[].pricePerHour, or have "
                            "the operator given "
                            "a price sheet",
                      "\n");
}

struct Sums {
  double dollars = 0;
  double on_demand = 0;
  double waiting = 0;
  double uncertain = 0;
  int64_t without = 0;  // jobs
};

Sums SumsOf(const std::vector<JobView>& views) {
  Sums sums;
  for (const JobView& view : views) {
    if (!view.status.cost) {
      ++sums.without;
      continue;
    }
    const api::JobCost& cost = *view.status.cost;
    sums.dollars += cost.dollars;
    sums.on_demand += cost.on_demand_dollars.value_or(cost.dollars);
    sums.waiting += cost.waiting_dollars.value_or(0);
    sums.uncertain += cost.uncertain_dollars;
  }
  return sums;
}

}  // namespace

std::string CostOfJob(const JobView& view, base::WallTime now, const Style& style) {
  if (!view.status.cost) return WithoutCost(view);
  const api::JobCost& cost = *view.status.cost;
  std::vector<Row> rows = {{"ROLE", "PODS", "POD-HOURS", "PER HOUR", "DOLLARS", "WAITING"}};
  int64_t pods = 0;
  double hours = 0;
  for (const api::RoleCost& role : cost.roles) {
    rows.push_back(RowOf(role));
    pods += role.pods;
    hours += role.pod_hours;
  }
  rows.push_back({"total", absl::StrCat(pods), absl::StrFormat("%.2f", hours), "",
                  Money(cost.dollars), Money(cost.waiting_dollars)});
  std::string text =
      absl::StrCat(view.name_space, "/", view.name, "  ", Coloured(view.state(), style), "  as of ",
                   api::FormatTime(cost.as_of));
  if (!view.status.finished()) {
    absl::StrAppend(&text, ", ", FormatDuration(now - cost.as_of), " ago");
  }
  absl::StrAppend(&text, "\n\n", Table(std::move(rows), style.width, {"PER HOUR"}), "\n");
  Remarks(view, style, text);
  return text;
}

std::string CostOfJobs(const std::vector<JobView>& views, const ListStyle& style) {
  Row heading;
  if (style.namespaces) heading.push_back("NAMESPACE");
  heading.insert(heading.end(), {"NAME", "STATE", "POD-HOURS", "DOLLARS", "ON-DEMAND", "WAITING",
                                 "PER-MILLION", "UNCERTAIN", "MISSING"});
  std::vector<Row> rows = {std::move(heading)};
  double hours = 0;
  for (const JobView& view : views) {
    Row row;
    if (style.namespaces) row.push_back(view.name_space);
    row.insert(row.end(), {view.name, Coloured(view.state(), style.style)});
    if (!view.status.cost) {
      row.resize(rows.front().size(), kUnknown);
      rows.push_back(std::move(row));
      continue;
    }
    const api::JobCost& cost = *view.status.cost;
    double own = 0;
    for (const api::RoleCost& role : cost.roles) own += role.pod_hours;
    hours += own;
    row.insert(row.end(),
               {absl::StrFormat("%.2f", own), Money(cost.dollars),
                Money(cost.on_demand_dollars.value_or(cost.dollars)), Money(cost.waiting_dollars),
                Money(cost.per_million_samples), Money(cost.uncertain_dollars),
                cost.priceless_pods ? absl::StrCat(*cost.priceless_pods, " pods") : kUnknown});
    rows.push_back(std::move(row));
  }
  const Sums sums = SumsOf(views);
  Row total;
  if (style.namespaces) total.emplace_back();
  total.insert(total.end(),
               {"total", "", absl::StrFormat("%.2f", hours), Money(sums.dollars),
                Money(sums.on_demand), Money(sums.waiting), "", Money(sums.uncertain)});
  rows.push_back(std::move(total));
  std::string text = Table(std::move(rows), style.style.width,
                           {"POD-HOURS", "PER-MILLION", "ON-DEMAND", "MISSING", "UNCERTAIN"});
  if (sums.without > 0) {
    absl::StrAppend(&text, sums.without,
                    sums.without == 1 ? " job has no price and is" : " jobs have no price and are",
                    " not in the total\n");
  }
  return text;
}

json CostJson(const JobView& view) {
  json cost;
  if (view.status.cost) {
    api::JobStatus status;
    status.cost = view.status.cost;
    cost = json::parse(api::StatusToJson(status), nullptr, false).value("cost", json());
    if (cost.is_object()) {
      cost.erase("incarnation");
      for (json& role : cost["roles"]) role.erase("ledger");
    }
  }
  return {{"namespace", view.name_space}, {"name", view.name}, {"cost", std::move(cost)}};
}

json CostsJson(const std::vector<JobView>& views) {
  const Sums sums = SumsOf(views);
  json items = json::array();
  for (const JobView& view : views) items.push_back(CostJson(view));
  return {{"items", std::move(items)},
          {"dollars", sums.dollars},
          {"uncertainDollars", sums.uncertain},
          {"jobsWithoutPrice", sums.without}};
}

}  // namespace hetero::cli
