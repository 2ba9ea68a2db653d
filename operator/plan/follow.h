#pragma once

#include <string>

#include "operator/plan/pass.h"

namespace hetero::plan {

// "10.96.0.7:7070": where the Service of the head stands; empty while it has no address.
std::string HeadJoinAddress(const Pass& pass);

// Whose status stream to keep open: that of the current attempt's head, once its container has run.
void FollowHead(Pass& pass);

}  // namespace hetero::plan
