#pragma once

#include <string>
#include <vector>

#include "base/metrics.h"
#include "hetero/v1/membership.pb.h"
#include "runtime/process/gpu_readings.h"

// The metrics of CPU workers and ranks; docs/metrics.md lists them. Base units throughout: seconds,
// bytes, shares of 1, dollars. Every label takes its values from the manifest, from a short list
// here or from the machine's GPUs, never from samples or texts. Each function may be called again
// with newer figures; a counter follows a total that is kept elsewhere, and stays where a new total
// is smaller.
namespace hetero::process {

// Of every process: CPU time in seconds of it and of what it has started, and the memory that it
// has now. `peak_bytes` 0: the peak is this process's own.
void PublishProcess(double cpu_seconds, int64_t peak_bytes, metrics::Registry& registry);
void PublishGpus(const std::vector<GpuReading>& gpus, metrics::Registry& registry);

// Batches that were made here, and what that took. `operators` names the entries of spec.pipeline,
// in order; where the heartbeat has costs of another number of entries they are left out.
void PublishWorker(const v1::Heartbeat& heartbeat, const std::vector<std::string>& operators,
                   metrics::Registry& registry);

// Batches that were consumed here and, once the rank has progress, its steps, times and losses.
void PublishRank(const v1::Heartbeat& heartbeat, metrics::Registry& registry);
// How long this rank's steps took, in seconds.
metrics::Histogram StepSeconds(metrics::Registry& registry);

}  // namespace hetero::process
