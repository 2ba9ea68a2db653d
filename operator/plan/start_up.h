#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// Begins the first attempt of a job that is seen for the first time.
void BeginFirstAttempt(Pass& pass);

// Begins an attempt behind a time in which nothing was to run, and of which nothing is left: at no
// cost, with a new startTime, with the spec of now.
void BeginAgain(Pass& pass);

// runPolicy.startupDeadlineSeconds: from the attempt's start, or the resume, until all required
// members have registered; and from then on for as long as training does not run because one of
// them has to come back. An attempt starts when its pods are complete, at the latest when it was
// asked for.
void CheckStartUp(Pass& pass);

}  // namespace hetero::plan
