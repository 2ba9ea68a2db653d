#include "operator/plan/cost.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace hetero::plan {
namespace {

using api::CostLedger;
using api::JobCost;
using api::RoleCost;
using std::chrono::seconds;

__extension__ using Wide = __int128;

constexpr size_t kMostRoles = 16;  // maxItems of the schema
constexpr char kFormerRoles[] = "(former roles)";
constexpr double kSecondsPerHour = 3600;
constexpr base::Duration kMostSkew = std::chrono::minutes(5);  // of the nodes' clocks
constexpr double kPlaces = 1e6;

int64_t Narrow(Wide wide) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::clamp<Wide>(wide, 0, kMost));
}
int64_t Sum(int64_t a, int64_t b) { return Narrow(Wide{a} + b); }
int64_t Product(int64_t a, int64_t b) { return Narrow(Wide{a} * b); }

int64_t SecondsIn(base::Duration duration) {
  return std::max<int64_t>(0, std::chrono::floor<seconds>(duration).count());
}

struct Bill {
  int64_t seconds = 0;
  int64_t amount = 0;
  int64_t on_demand = 0;
};

// What the pod cost until `until`, or its end before that, apart from what is in the ledger
// already.
Bill BillOf(const PodLife& life, base::WallTime until, const CostLedger& ledger) {
  if (!life.start) return {};
  base::WallTime from = *life.start;
  if (ledger.since && life.incarnation <= ledger.since_incarnation) {
    from = std::max(from, *ledger.since);
  }
  const base::WallTime to = std::min(life.end.value_or(until), until);
  Bill bill{.seconds = to > from ? SecondsIn(to - from) : 0};
  if (!life.price) return bill;
  bill.amount = Product(life.price->paid, bill.seconds);
  bill.on_demand = Product(life.price->on_demand, bill.seconds);
  return bill;
}

// It cost money at that moment.
bool RanAt(const PodLife& life, base::WallTime time) {
  return life.start && *life.start <= time && (!life.end || *life.end > time);
}

bool BoundBy(const PodLife& life, base::WallTime time) { return life.start && *life.start <= time; }

void AddToGone(const Bill& bill, CostLedger& ledger) {
  ledger.gone_seconds = Sum(ledger.gone_seconds, bill.seconds);
  ledger.gone_amount = Sum(ledger.gone_amount, bill.amount);
  ledger.gone_on_demand = Sum(ledger.gone_on_demand, bill.on_demand);
}

void Doubt(int64_t of_seconds, int64_t of_amount, CostLedger& ledger) {
  ledger.uncertain_seconds = Sum(ledger.uncertain_seconds, of_seconds);
  ledger.uncertain = Sum(ledger.uncertain, of_amount);
}

// One role's part of a sighting.
class RoleBook {
 public:
  // `ledger` is as it was at `stored`, and knows of pods up to `incarnation`.
  RoleBook(const CostLedger& ledger, base::WallTime stored, int64_t incarnation)
      : was_(ledger), ledger_(ledger), stored_(stored), incarnation_(incarnation) {}

  void Add(const PodLife& there) {
    there_.push_back(&there);
    if (there.price) ledger_.dearest = std::max(ledger_.dearest, there.price->paid);
    if (there.incarnation < incarnation_) known_.push_back(&there);
    if (there.incarnation == incarnation_) newest_.push_back(&there);
  }
  void AddDeparted(const PodLife& departed) {
    (departed.incarnation <= incarnation_ ? known_departed_ : new_departed_).push_back(&departed);
  }

  // `newest`: the largest incarnation that the account knows from now on.
  CostLedger Close(const Sighting& sighting, base::WallTime as_of, int64_t newest) {
    if (!sighting.continuous) FindWhatWentUnseen(sighting.now);
    for (const auto* departed : {&known_departed_, &new_departed_}) {
      for (const PodLife* life : *departed) Settle(*life);
    }
    CountThere(as_of, newest);
    return ledger_;
  }

 private:
  void FindWhatWentUnseen(base::WallTime now) {
    TellNewest();
    PassOverThoseOfOld();
    const int64_t unseen = was_.pods - static_cast<int64_t>(known_.size());
    if (unseen > 0) BillUnseen(unseen, now);
    if (unseen > 0 || PricesChanged()) BillAnewFromThen();
  }

  // Pods that are made together have one incarnation, and the account may have been stored between
  // the first and the last of them.
  void TellNewest() {
    std::stable_sort(newest_.begin(), newest_.end(), [](const PodLife* a, const PodLife* b) {
      return a->start.value_or(base::WallTime::max()) < b->start.value_or(base::WallTime::max());
    });
    const auto counted = std::clamp<int64_t>(was_.newest, 0, static_cast<int64_t>(newest_.size()));
    known_.insert(known_.end(), newest_.begin(), newest_.begin() + counted);
  }

  // Of those that the ledger might know, it has as many as are missing among the pods that are
  // there: the last to go. The others were settled by a write whose answer did not come back.
  void PassOverThoseOfOld() {
    const int64_t missing = std::max<int64_t>(0, was_.pods - static_cast<int64_t>(known_.size()));
    const auto count = static_cast<int64_t>(known_departed_.size());
    if (missing < count) {
      known_departed_.erase(known_departed_.begin(), known_departed_.end() - missing);
    }
    known_.insert(known_.end(), known_departed_.begin(), known_departed_.end());
  }

  // Pods went, and nobody saw how.
  void BillUnseen(int64_t count, base::WallTime now) {
    int64_t bound = was_.billed, priceless = was_.priceless, open = was_.open, rate = was_.rate;
    for (const PodLife* life : known_) {
      if (!BoundBy(*life, stored_)) continue;
      --bound;
      if (!life->price) --priceless;
      if (!life->price || !RanAt(*life, stored_)) continue;
      --open;
      rate -= life->price->paid;
    }
    bound = std::clamp<int64_t>(bound, 0, count);
    open = std::clamp<int64_t>(open, 0, bound);
    rate = open > 0 ? std::max<int64_t>(0, rate) : 0;
    const int64_t away = SecondsIn(now - stored_);
    Bill bill{.seconds = Product(open, away), .amount = Product(rate, away)};
    bill.on_demand =
        was_.amount > 0 ? Narrow(Wide{bill.amount} * was_.on_demand / was_.amount) : bill.amount;
    AddToGone(bill, ledger_);
    ledger_.gone_pods = Sum(ledger_.gone_pods, bound);
    ledger_.gone_priceless += std::clamp<int64_t>(priceless, 0, bound);
    Doubt(bill.seconds, bill.amount, ledger_);
    // A node may have been given to the others since, or just before, and nobody knew.
    const int64_t unbound = Product(count - bound, away + SecondsIn(kNewsDelay));
    Doubt(unbound, Product(ledger_.dearest, unbound), ledger_);
  }

  // The operator reads prices when it first sees a pod, and another one may read others.
  bool PricesChanged() const {
    if (was_.priceless > 0 || was_.open == 0) return false;
    int64_t open = 0, rate = 0;
    for (const PodLife* life : known_) {
      if (!RanAt(*life, stored_)) continue;
      ++open;
      if (life->price) rate = Sum(rate, life->price->paid);
    }
    return open == was_.open && rate != was_.rate;
  }

  // What stands in the ledger for the pods that were there stays, and those that still are bill
  // from then.
  void BillAnewFromThen() {
    AddToGone({was_.seconds, was_.amount, was_.on_demand}, ledger_);
    ledger_.since = stored_;
    ledger_.since_incarnation = incarnation_;
  }

  void Settle(const PodLife& life) {
    const int64_t doubt = SecondsIn(life.uncertain);
    Doubt(doubt, Product(doubt, life.price.value_or(Price{}).paid), ledger_);
    if (!life.start) return;
    AddToGone(BillOf(life, life.end.value_or(*life.start), ledger_), ledger_);
    ++ledger_.gone_pods;
    if (!life.price) ++ledger_.gone_priceless;
  }

  void CountThere(base::WallTime as_of, int64_t newest) {
    ledger_.pods = static_cast<int64_t>(there_.size());
    ledger_.newest = std::count_if(there_.begin(), there_.end(), [newest](const PodLife* life) {
      return life->incarnation == newest;
    });
    ledger_.billed = ledger_.priceless = ledger_.seconds = 0;
    ledger_.amount = ledger_.on_demand = ledger_.open = ledger_.rate = 0;
    for (const PodLife* life : there_) {
      if (!BoundBy(*life, as_of)) continue;
      const Bill bill = BillOf(*life, as_of, ledger_);
      ++ledger_.billed;
      ledger_.seconds = Sum(ledger_.seconds, bill.seconds);
      ledger_.amount = Sum(ledger_.amount, bill.amount);
      ledger_.on_demand = Sum(ledger_.on_demand, bill.on_demand);
      if (!life->price) {
        ++ledger_.priceless;
      } else if (RanAt(*life, as_of)) {
        ++ledger_.open;
        ledger_.rate = Sum(ledger_.rate, life->price->paid);
      }
    }
  }

  const CostLedger was_;
  CostLedger ledger_;
  const base::WallTime stored_;
  const int64_t incarnation_;
  std::vector<const PodLife*> there_;
  std::vector<const PodLife*> newest_;  // some of them are known to the ledger
  std::vector<const PodLife*> known_;   // to the ledger; of those departed only who is in it
  std::vector<const PodLife*> known_departed_, new_departed_;
};

int64_t SumOf(const CostLedger& ledger) { return Sum(ledger.gone_amount, ledger.amount); }
int64_t TotalOf(const CostLedger& ledger) { return Sum(SumOf(ledger), ledger.over); }

// All that is seen to have ended has; where one still runs, it may have ended unseen.
base::WallTime AsOf(const Sighting& sighting) {
  base::WallTime last = sighting.as_of;
  for (const PodLife& life : sighting.there) {
    if (life.start && !life.end) return sighting.as_of;
    if (life.start) last = std::max({last, *life.start, *life.end});
  }
  for (const PodLife& life : sighting.departed) last = std::max(last, life.end.value_or(last));
  return std::min(last, std::max(sighting.as_of, sighting.now + kMostSkew));
}

bool IsNamed(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A suspended job may be given other roles, again and again.
void MergeFormerRoles(const std::vector<std::string>& role_names, std::vector<RoleCost>& roles) {
  while (roles.size() > kMostRoles) {
    const auto former = [&](const RoleCost& role) {
      return role.ledger.pods == 0 && !IsNamed(role_names, role.name) && role.name != kFormerRoles;
    };
    const auto found = std::find_if(roles.begin(), roles.end(), former);
    if (found == roles.end()) return;
    const CostLedger from = found->ledger;
    roles.erase(found);
    auto to = std::find_if(roles.begin(), roles.end(),
                           [](const RoleCost& role) { return role.name == kFormerRoles; });
    if (to == roles.end()) to = roles.insert(roles.end(), RoleCost{.name = kFormerRoles});
    AddToGone({from.gone_seconds, from.gone_amount, from.gone_on_demand}, to->ledger);
    to->ledger.over = Sum(to->ledger.over, from.over);
    to->ledger.gone_pods += from.gone_pods;
    to->ledger.gone_priceless += from.gone_priceless;
    to->ledger.trained = Sum(to->ledger.trained, from.trained);
    Doubt(from.uncertain_seconds, from.uncertain, to->ledger);
  }
}

std::optional<double> Different(int64_t amount, int64_t from) {
  if (amount == from) return std::nullopt;
  return DollarsOf(amount);
}

std::optional<int64_t> UnlessNone(int64_t count) {
  return count == 0 ? std::nullopt : std::optional(count);
}

double Rounded(double value) { return std::round(value * kPlaces) / kPlaces; }

}  // namespace

double DollarsOf(int64_t amount) {
  constexpr int64_t kPerMicroDollar = kAmountPerDollar / 1'000'000;
  const int64_t micro =
      amount / kPerMicroDollar + (amount % kPerMicroDollar * 2 >= kPerMicroDollar);
  return static_cast<double>(micro) / kPlaces;
}

JobCost BringUpToDate(const std::optional<JobCost>& account, const Sighting& sighting,
                      const std::vector<std::string>& role_names) {
  const JobCost was = account.value_or(JobCost{});
  JobCost is = was;
  for (const std::string& name : role_names) {
    const bool known = std::any_of(is.roles.begin(), is.roles.end(),
                                   [&name](const RoleCost& role) { return role.name == name; });
    if (!known) is.roles.push_back({.name = name});
  }
  is.as_of = std::max(was.as_of, AsOf(sighting));
  for (const auto* lives : {&sighting.there, &sighting.departed}) {
    for (const PodLife& life : *lives) is.incarnation = std::max(is.incarnation, life.incarnation);
  }
  for (RoleCost& role : is.roles) {
    RoleBook book(role.ledger, was.as_of, was.incarnation);
    for (const PodLife& life : sighting.there) {
      if (life.role == role.name) book.Add(life);
    }
    for (const PodLife& life : sighting.departed) {
      if (life.role == role.name) book.AddDeparted(life);
    }
    const int64_t before = TotalOf(role.ledger);
    role.ledger = book.Close(sighting, is.as_of, is.incarnation);
    role.ledger.over = std::max<int64_t>(0, before - SumOf(role.ledger));
    const int64_t more = TotalOf(role.ledger) - before;
    if (sighting.training) role.ledger.trained = Sum(role.ledger.trained, more);
  }
  MergeFormerRoles(role_names, is.roles);
  return is;
}

int64_t AmountOf(const JobCost& account) {
  int64_t amount = 0;
  for (const RoleCost& role : account.roles) amount = Sum(amount, TotalOf(role.ledger));
  return amount;
}

int64_t RateOf(const JobCost& account) {
  int64_t rate = 0;
  for (const RoleCost& role : account.roles) rate = Sum(rate, role.ledger.rate);
  return rate;
}

void Present(JobCost& account, const std::vector<std::string>& gpu_roles,
             std::optional<double> waiting_share, int64_t samples) {
  int64_t amount = 0, on_demand = 0, waiting = 0, uncertain = 0, priceless = 0;
  account.uncertain_seconds = 0;
  for (RoleCost& role : account.roles) {
    const CostLedger& ledger = role.ledger;
    const int64_t total = TotalOf(ledger);
    const int64_t total_on_demand = Sum(Sum(ledger.gone_on_demand, ledger.on_demand), ledger.over);
    const int64_t total_priceless = ledger.gone_priceless + ledger.priceless;
    role.pods = ledger.gone_pods + ledger.billed;
    role.pod_hours =
        Rounded(static_cast<double>(Sum(ledger.gone_seconds, ledger.seconds)) / kSecondsPerHour);
    role.dollars = DollarsOf(total);
    role.on_demand_dollars = Different(total_on_demand, total);
    role.priceless_pods = UnlessNone(total_priceless);
    role.waiting_dollars.reset();
    if (waiting_share && IsNamed(gpu_roles, role.name)) {
      const double share = std::clamp(*waiting_share, 0.0, 1.0);
      const auto waited = static_cast<int64_t>(share * static_cast<double>(ledger.trained));
      role.waiting_dollars = DollarsOf(waited);
      waiting = Sum(waiting, waited);
    }
    amount = Sum(amount, total);
    on_demand = Sum(on_demand, total_on_demand);
    priceless += total_priceless;
    uncertain = Sum(uncertain, Sum(ledger.uncertain, ledger.over));
    account.uncertain_seconds = Sum(account.uncertain_seconds, ledger.uncertain_seconds);
  }
  account.dollars = DollarsOf(amount);
  account.on_demand_dollars = Different(on_demand, amount);
  account.waiting_dollars =
      waiting_share && !gpu_roles.empty() ? std::optional(DollarsOf(waiting)) : std::nullopt;
  account.uncertain_dollars = DollarsOf(uncertain);
  account.priceless_pods = UnlessNone(priceless);
  account.per_million_samples.reset();
  if (samples > 0) {
    account.per_million_samples = Rounded(DollarsOf(amount) * 1e6 / static_cast<double>(samples));
  }
}

}  // namespace hetero::plan
