#include "operator/program/identity_renewal.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace hetero::program {
namespace {

constexpr base::Duration kDay = std::chrono::hours(24);
constexpr base::Duration kTryAgain = std::chrono::hours(1);

}  // namespace

IdentityRenewal::IdentityRenewal(base::Clock& clock, Calls calls)
    : clock_(clock), calls_(std::move(calls)) {}

void IdentityRenewal::Run(reconcile::OperatorIdentity identity, std::stop_token stop) {
  base::Duration pause = base::Duration::zero();
  for (;;) {
    // Day by day: wall clocks are set right now and then.
    const base::Duration left = identity.expires - kRenewBefore - clock_.WallNow();
    if (!clock_.SleepFor(std::clamp<base::Duration>(left, pause, kDay), stop)) return;
    if (clock_.WallNow() < identity.expires - kRenewBefore) continue;
    absl::StatusOr<reconcile::OperatorIdentity> loaded = calls_.load();
    pause = kTryAgain;
    if (!loaded.ok()) {
      log::Warning("the operator's certificate cannot be renewed; trying again in an hour",
                   {{"error", loaded.status().message()}});
      continue;
    }
    if (loaded->ca_pem != identity.ca_pem) {
      log::Warning("the operator has another authority now; ending to begin with it");
      calls_.replaced();
      clock_.SleepFor(base::Duration::max(), stop);
      return;
    }
    identity = *std::move(loaded);
    calls_.renewed(identity);
  }
}

}  // namespace hetero::program
