#pragma once

#include "operator/plan/pass.h"

// The end in order of a training whose pods are to be deleted: its head tells all ranks to stop
// after the same step and to leave a checkpoint of it.
namespace hetero::plan {

// Asks the head of a job that trains to stop it; nothing to do where none trains. Once, in the pass
// that decides on the end: the head that did not hear it has its pod deleted after the grace.
void AskHeadToStop(Pass& pass);

// Whether the pods may be deleted now: the training has stopped, or there was none, or
// runPolicy.stopGraceSeconds are over since the status says that it no longer runs. Otherwise keeps
// the head's stream open, and asks for a pass at the end of the grace.
bool HasStopped(Pass& pass);

}  // namespace hetero::plan
