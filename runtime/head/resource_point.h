#pragma once

#include <optional>

#include "hetero/v1/resources.pb.h"
#include "runtime/insight/resource_use.h"

// Points of what a process uses, to and from the wire. Pure.
namespace hetero::head {

inline constexpr int kMostCores = 256;  // of one point
inline constexpr int kMostGpus = 32;

// Without `seconds`, which the head finds. Empty: it has numbers that cannot be (negative, not
// finite, beyond what machines have) or is longer than a point is.
std::optional<insight::UsePoint> ReadPoint(const v1::ResourcePoint& told);
// Groups that have no threads and did nothing are left out.
void WritePoint(const insight::UsePoint& point, v1::ResourcePoint* out);

}  // namespace hetero::head
