#pragma once

#include <memory>

#include "operator/kube/cluster_access.h"
#include "operator/kube/transport.h"

namespace hetero::kube {

// Transport over cpprestsdk, which stays inside rest_transport.cpp. Trusts the cluster's authority
// only, TLS 1.2 or newer.
absl::StatusOr<std::unique_ptr<Transport>> MakeRestTransport(ClusterAccess access);

// cpprestsdk reads the system's authorities for each connection, only for us to leave them
// out: 0.7 MB and 3 ms each. After this call, early in main while there is one thread, it finds
// none. Child processes and connections that want them still do.
void KeepSystemAuthoritiesFromCpprest();

}  // namespace hetero::kube
