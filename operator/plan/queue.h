#pragma once

#include "operator/plan/pass.h"

// Jobs that wait in a queue of Kueue: those with the label kueue.x-k8s.io/queue-name. Such a job
// has a Workload, its claim on quota; pods exist only while that is admitted.
namespace hetero::plan {

// Whether the job has a queue, or a Workload from when it had one.
bool IsQueued(const Pass& pass);

// The job waits in its queue from now on; no pod of it is left.
void EnterQueue(Pass& pass);

// Nothing runs and nothing is to run: what is claimed of the queue's quota is given back.
void LeaveQueue(Pass& pass);

// Makes the Workload and sets pass.paused until it is admitted. An admission that is taken back
// stops the training with a checkpoint, then deletes the pods, then gives the quota back, so that
// the Workload is queued again; a later admission begins a new attempt at no cost, with a new
// startTime. Condition Queued. Where Kueue is missing, what runs goes on and nothing else begins.
void WaitInQueue(Pass& pass);

// The Workload's condition PodsReady, by which Kueue tells a gang that has started from one that
// only holds quota.
void TellPodsReady(Pass& pass);

// Of a job that is over: its Workloads are Finished once no pod of theirs runs any more.
void FinishWorkloads(Pass& pass);

}  // namespace hetero::plan
