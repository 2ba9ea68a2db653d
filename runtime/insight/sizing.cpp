#include "runtime/insight/sizing.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/insight/figures.h"

namespace hetero::insight {
namespace {

constexpr double kSmoothingSeconds = 10;
constexpr double kReserve = 1.05;   // the jump covers the demand this many times
constexpr double kSpare = 1.15;     // and the last replica goes when the others do so much
constexpr double kWaitPercent = 5;  // below, trainers do not need more
constexpr int kMostPatience = 16;

}  // namespace

void Sizing::Smoothed::Add(double measured, base::Instant now) {
  if (!value) {
    value = measured;
  } else {
    // A long gap makes old values worth less; a short one must not make a new value worth nothing.
    const double seconds = std::max(1.0, base::ToSeconds(now - at));
    *value += (1 - std::exp(-seconds / kSmoothingSeconds)) * (measured - *value);
  }
  at = now;
}

void Sizing::Measure(const SizingInput& input, base::Instant now) {
  if (input.demand > 0) demand_.Add(input.demand, now);
  for (const SizingRole& role : input.roles) {
    const auto [entry, fresh] = roles_.try_emplace(role.name);
    if (fresh)
      entry->second.target = std::clamp(role.replicas, role.min_replicas, role.max_replicas);
    for (size_t i = 0; i < role.rates.size(); ++i) {
      if (role.rates[i] && *role.rates[i] > 0) {
        entry->second.rates[static_cast<int32_t>(i)].Add(*role.rates[i], now);
      }
    }
    Role& known = entry->second;
    if (known.rates.empty()) continue;
    double sum = 0;
    for (const auto& [replica, rate] : known.rates) sum += *rate.value;
    known.mean = sum / static_cast<double>(known.rates.size());
  }
}

double Sizing::Rate(const std::string& role, int32_t replica) const {
  const auto& rates = roles_.at(role).rates;
  const auto found = rates.find(replica);
  return found == rates.end() ? Mean(role) : *found->second.value;
}

double Sizing::Supply() const {
  double supply = 0;
  for (const auto& [name, role] : roles_) {
    for (int32_t i = 0; i < role.target; ++i) supply += Rate(name, i);
  }
  return supply;
}

std::vector<const SizingRole*> Sizing::Preferred(const SizingInput& input) const {
  const bool priced = std::all_of(input.roles.begin(), input.roles.end(), [](const SizingRole& r) {
    return r.price_per_hour.value_or(0) > 0;
  });
  std::vector<const SizingRole*> order;
  for (const SizingRole& role : input.roles) {
    if (Mean(role.name) > 0) order.push_back(&role);
  }
  if (!priced) return order;
  std::stable_sort(order.begin(), order.end(), [this](const SizingRole* a, const SizingRole* b) {
    return Mean(a->name) / *a->price_per_hour > Mean(b->name) / *b->price_per_hour;
  });
  return order;
}

void Sizing::Jump(const SizingInput& input) {
  // From nothing, so that a job that begins too large comes down in the same jump.
  double lacking = kReserve * *demand_.value;
  const std::vector<const SizingRole*> order = Preferred(input);
  std::map<std::string, int32_t> wanted;
  const auto take = [&](const SizingRole& role, int32_t limit) {
    int32_t& count = wanted[role.name];
    while (count < limit && (lacking > 0 || count < role.min_replicas)) {
      lacking -= Rate(role.name, count++);
    }
  };
  for (const SizingRole* role : order) take(*role, role->min_replicas);
  for (const SizingRole* role : order) take(*role, role->max_replicas);
  for (const auto& [name, count] : wanted) {
    Role& role = roles_[name];
    // Trainers that do not wait have enough, whatever the rates say.
    if (count > role.target && input.data_wait_percent < kWaitPercent) continue;
    role.target = count;
  }
}

void Sizing::StepUp(const SizingInput& input) {
  for (const SizingRole* role : Preferred(input)) {
    Role& known = roles_[role->name];
    if (known.target >= role->max_replicas) continue;
    ++known.target;
    return;
  }
}

const SizingRole* Sizing::Removable(const SizingInput& input) const {
  const std::vector<const SizingRole*> order = Preferred(input);
  const double spare = Supply() - kSpare * *demand_.value;
  for (auto role = order.rbegin(); role != order.rend(); ++role) {
    const int32_t target = roles_.at((*role)->name).target;
    if (target > (*role)->min_replicas && Rate((*role)->name, target - 1) <= spare) return *role;
  }
  return nullptr;
}

void Sizing::StepDown(const SizingInput& input) { --roles_[Removable(input)->name].target; }

// Whether the change in this direction may be made; counts it.
bool Sizing::Move(Direction direction, base::Instant now) {
  std::optional<base::Instant>& since = direction == Direction::kUp ? lacking_since_ : spare_since_;
  const base::Duration hold = direction == Direction::kUp ? kUpAfter : kDownAfter;
  if (!since) since = now;
  if (last_ != Direction::kNone && last_ != direction) {
    if (now - *since < 2 * patience_ * hold) return false;
    patience_ = std::min(2 * patience_, kMostPatience);
  } else if (now - *since < patience_ * hold) {
    return false;
  }
  last_ = direction;
  lacking_since_.reset();
  spare_since_.reset();
  return true;
}

void Sizing::Explain(const SizingInput& input) {
  const std::string demand = NumberText(*demand_.value);
  for (const SizingRole& role : input.roles) {
    Role& known = roles_[role.name];
    const double mean = Mean(role.name);
    if (mean <= 0) {
      known.reason = "none of its replicas has been measured";
      continue;
    }
    known.reason = absl::StrCat("the trainers can take ", demand, " samples/s, one replica makes ",
                                NumberText(mean));
    if (known.target == role.max_replicas && Supply() < *demand_.value) {
      absl::StrAppend(&known.reason, "; maxReplicas (", role.max_replicas, ") is too low");
    }
  }
}

std::vector<SizingTarget> Sizing::Step(const SizingInput& input, base::Instant now) {
  Measure(input, now);
  const bool known = demand_.value && !Preferred(input).empty();
  if (!known) return {};
  if (!first_) first_ = now;
  if (now - *first_ < kFirstLook) return {};
  if (!jumped_) {
    Jump(input);
    jumped_ = true;
  } else {
    const bool lacking = Supply() < *demand_.value && input.data_wait_percent >= kWaitPercent;
    const bool spare = Removable(input) != nullptr;
    if (!lacking) lacking_since_.reset();
    if (!spare) spare_since_.reset();
    if (lacking && Move(Direction::kUp, now)) StepUp(input);
    if (spare && !lacking && Move(Direction::kDown, now)) StepDown(input);
  }
  Explain(input);
  std::vector<SizingTarget> targets;
  for (const SizingRole& role : input.roles) {
    const Role& state = roles_[role.name];
    targets.push_back({role.name, state.target, state.reason});
  }
  return targets;
}

}  // namespace hetero::insight
