#pragma once

#include <string>

#include "operator/plan/pass.h"

// The end in order of a training whose pods are to be deleted: its head tells all ranks to stop
// after the same step and to leave a checkpoint of it.
namespace hetero::plan {

// Asks the head of a job that may train to stop it; nothing to do where none trains. For the pass
// that decides on the end: HasStopped() of the later ones asks a head that has not heard again.
// `reason` is for people.
void AskHeadToStop(Pass& pass, const std::string& reason);

// Whether the pods may be deleted now: the training has stopped, or there was none, or
// runPolicy.stopGraceSeconds are over since the decision, which stands in the status as read from
// `since` on. A head that runs and cannot be heard may train. Otherwise keeps the head's stream
// open, asks the head again every second until it has heard, and asks for a pass at the end of the
// grace.
bool HasStopped(Pass& pass, base::WallTime since, const std::string& reason);

}  // namespace hetero::plan
