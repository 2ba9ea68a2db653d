#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/job_status.h"
#include "base/clock.h"

// What a job's pods have cost: the arithmetic. Pure.
//
// Units. A price is in micro-dollars per hour, an amount in micro-dollars per hour times seconds
// (kAmountPerDollar make a dollar), times are whole seconds as Kubernetes writes them: all of it is
// integers, so that a sum does not depend on the order and is exact. Only dollars for people are
// numbers with a fraction, rounded to a millionth. Amounts stop at the largest that 64 bits hold,
// which is 2.5 billion dollars.
//
// Rules. A pod bills from the moment it was bound to a node until its end, at the price that it had
// then. An account keeps two sums for each role: of pods that are gone, and of those that are
// there, as of `as_of`: what happened later is not in it. The second is worked out anew each time
// from the pods themselves, so that nothing is added twice; the first grows when pods go. How many
// there were in the second sum tells, after a restart, whether any went unseen. What those cost
// until `as_of` is in the sum then; of what came after nobody knows more than that it is not
// negative, and not above what they would have cost until now, which is what they are billed and by
// how much the account may be off. An end that is reported so late that it lies before `as_of`
// lessens the sums; the total stands until it is reached again, and the difference is doubt.
namespace hetero::plan {

// How late the news of a pod comes by all likelihood, where its node and the watch work.
inline constexpr base::Duration kNewsDelay = std::chrono::seconds(10);

inline constexpr int64_t kAmountPerDollar = 3'600'000'000;

struct Price {
  int64_t paid = 0;       // micro-dollars per hour
  int64_t on_demand = 0;  // what the same would cost on demand
  bool operator==(const Price&) const = default;
};

double DollarsOf(int64_t amount);  // rounded to millionths

struct PodLife {
  std::string role;
  int64_t incarnation = 0;
  std::optional<base::WallTime> start;  // none: no node has it yet
  std::optional<base::WallTime> end;    // none: it has not ended
  std::optional<Price> price;           // none: not known
  // Of one that is gone and whose end is a guess: it may be wrong by so much.
  base::Duration uncertain = base::Duration::zero();
};

// What an account is brought up to date with.
struct Sighting {
  std::vector<PodLife> there;     // every pod that is there
  std::vector<PodLife> departed;  // gone since the account was made, in order of their going
  base::WallTime as_of;           // all that happened until then has been seen, by all likelihood
  base::WallTime now;             // when it was found that others are gone
  bool training = false;          // since the account was stored
  // The pods of the account, and those made since, are there or departed: none went unseen.
  bool continuous = false;
};

// The account after the sighting. `account`: as it was last stored, none at the beginning. Of
// `departed`, the account of a sighting that is not continuous may know some, the first, to be gone
// already: they are passed over. Only
// the sums are set (ledgers, `as_of`, `incarnation`); Present() makes the figures of them.
// `role_names`: of the job, pods of others are in no sum unless the account has the role.
api::JobCost BringUpToDate(const std::optional<api::JobCost>& account, const Sighting& sighting,
                           const std::vector<std::string>& role_names);

// Over all roles.
int64_t AmountOf(const api::JobCost& account);
int64_t RateOf(const api::JobCost& account);  // micro-dollars per hour of what runs

// Sets the figures for people from the sums. `waiting_share`: of the training time, 0 to 1, none:
// not known. `samples`: that were trained, 0: none.
void Present(api::JobCost& account, const std::vector<std::string>& gpu_roles,
             std::optional<double> waiting_share, int64_t samples);

}  // namespace hetero::plan
