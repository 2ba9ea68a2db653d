#pragma once

#include "operator/plan/pass.h"

// What the head of this attempt says about the process in a slot. The head is never behind what
// happened to its members; the watch that shows the pods may be.
namespace hetero::plan {

// Null: the head has said nothing, or no process of this name has joined it.
const HeadReport::Member* MemberOf(const Pass& pass, const Slot& slot);

// The slot's pod runs: its view says so, or the head has met this very process while the view still
// waits for it to start.
bool HasStarted(const Pass& pass, const Slot& slot);

// A process of this name works at the head now, perhaps one whose pod has not been seen yet.
bool WorksAtHead(const Pass& pass, const Slot& slot);

// The head has given this very process up. Its replacement is another one, whenever it was made.
bool HeadLostIt(const Pass& pass, const Slot& slot);

// A CPU worker that ended well, and not under the head that runs now: that one has never met it, so
// an earlier head told it to go, or it found none. The training still wants it.
bool LeftUnderEarlierHead(const Pass& pass, const Slot& slot);

}  // namespace hetero::plan
