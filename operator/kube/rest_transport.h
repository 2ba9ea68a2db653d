#pragma once

#include <memory>

#include "operator/kube/cluster_access.h"
#include "operator/kube/transport.h"

namespace hetero::kube {

// Transport over cpprestsdk, which stays inside rest_transport.cpp. Trusts the cluster's authority
// only, TLS 1.2 or newer.
absl::StatusOr<std::unique_ptr<Transport>> MakeRestTransport(ClusterAccess access);

}  // namespace hetero::kube
