#pragma once

#include <functional>
#include <stop_token>

#include "base/clock.h"
#include "operator/program/operator_identity.h"

namespace hetero::program {

// Keeps the operator's certificate from running out while this process leads.
class IdentityRenewal {
 public:
  // `load` is LoadOperatorIdentity: it renews what is old. `renewed` gets a new certificate of the
  // same authority. `replaced` is called instead when the authority is another one (after nine
  // years, or when somebody deleted the Secret): everything that knows the old one has to begin
  // anew.
  struct Calls {
    std::function<absl::StatusOr<reconcile::OperatorIdentity>()> load;
    std::function<void(const reconcile::OperatorIdentity&)> renewed;
    std::function<void()> replaced;
  };
  IdentityRenewal(base::Clock& clock, Calls calls);

  // Blocks until stop. `identity` is the one in use.
  void Run(reconcile::OperatorIdentity identity, std::stop_token stop);

 private:
  base::Clock& clock_;
  const Calls calls_;
};

}  // namespace hetero::program
