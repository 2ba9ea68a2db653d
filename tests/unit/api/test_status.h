#pragma once

#include "api/job_status.h"

namespace hetero::api {

inline base::WallTime At(std::string_view text) { return ParseTime(text).value(); }

// A status in which every field has a value of its own.
inline JobStatus FullStatus() {
  JobStatus status;
  status.observed_generation = 3;
  status.conditions = {{.type = ConditionType::kRunning,
                        .status = ConditionStatus::kTrue,
                        .observed_generation = 2,
                        .last_transition_time = At("2026-01-01T00:00:05Z"),
                        .reason = "TrainingStarted",
                        .message = "step 1 of 10"},
                       {.type = ConditionType::kRegistered,
                        .status = ConditionStatus::kUnknown,
                        .last_transition_time = At("2026-01-01T00:00:04Z"),
                        .reason = "WaitingForPods"}};
  status.start_time = At("2026-01-01T00:00:00Z");
  status.completion_time = At("2026-01-01T01:00:00Z");
  status.attempt = 4;
  status.restarts = 5;
  status.spec_hash = "1-0123456789abcdef";
  status.images = AttemptImages{.runtime = "runtime:1", .trainer = "trainer:1"};
  status.uncounted = {"uid-a", "uid-b"};
  status.head_address = "10.96.0.7:7070";
  status.registered = "2/3";
  status.role_statuses = {{.name = "cpu",
                           .desired = 1,
                           .created = 2,
                           .running = 3,
                           .registered = 4,
                           .succeeded = 5,
                           .failed = 6,
                           .restarts = 7}};
  status.progress = JobProgress{.epoch = 1,
                                .step = 2,
                                .total_steps = 30,
                                .samples_per_second = 4.5,
                                .data_wait_percent = 5.25,
                                .loss = 0.125,
                                .eta_seconds = 60,
                                .last_update_time = At("2026-01-01T00:30:00Z")};
  status.result = JobResult{.loss = 0.25,
                            .accuracy = 0.75,
                            .samples_per_second = 100.5,
                            .steps = 30,
                            .stream_digest = "00ff",
                            .cost_dollars = 0.5,
                            .report_uri = "s3://bucket/report.json",
                            .checkpoint_uri = "s3://bucket/checkpoint"};
  status.first_failure = FirstFailure{.pod = "vit-gpu-0",
                                      .role = "gpu",
                                      .node = "node-a",
                                      .exit_code = 137,
                                      .signal = 9,
                                      .reason = "OOMKilled",
                                      .message = "line 1\nline \"2\"",
                                      .time = At("2026-01-01T00:10:00Z")};
  status.findings = {{.rule = "InputBound",
                      .message = "ranks waited 40 % of the time for data",
                      .remedy = "set roles.cpu.replicas to 4",
                      .field = "spec.roles[1].replicas",
                      .member = "cpu-0",
                      .seconds = 12.5,
                      .dollars = 0.75,
                      .since = At("2026-01-01T00:20:00Z"),
                      .active = true}};
  status.findings_told = {"InputBound/cpu-0"};
  return status;
}

}  // namespace hetero::api
