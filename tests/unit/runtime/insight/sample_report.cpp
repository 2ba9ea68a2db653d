#include "tests/unit/runtime/insight/sample_report.h"

#include <optional>

namespace hetero::insight {

Report FullReport() {
  Report report;
  report.job = "quickstart";
  report.state = "Succeeded";
  report.attempt = 1;
  report.attempts = {{1, "2026-01-01T00:00:00.000Z", 31.0625, ""}};
  report.generations = 2;
  report.epochs = 4;
  report.steps = 6;
  report.samples_consumed = 6000;
  report.duplicates_dropped = 1;
  report.tickets_reissued = 3;
  report.bad_samples = 1;
  report.bad_sample_list = {{1417, 322, "train/cat/0004.jpg: premature end of <JPEG> file"}};
  report.stream_digest = "00112233445566778899aabbccddeeff";
  report.seed = 7;
  report.startup_seconds = 1.25;
  report.train_seconds = 28.5;
  report.wall_seconds = 31.0625;
  report.samples_per_second = 210.526315789;
  report.ceiling_samples_per_second = 240;
  report.data_wait_percent = 12.5;
  report.phase_seconds = PhaseSeconds{3.5625, 0.25, 8, 12, 2, 1.1875, 0.5, 0.75, 0.25};
  report.ceiling_source = "Probe";
  report.wait_seconds = WaitSeconds{0.5, 2.5, 0.5, 0.0625};
  report.time_lines = {{0, {{3, 14.25, {1.5, 0.125, 4, 6}}, {6, 28.5, *report.phase_seconds}}}};
  report.predictions = {{"cpu", 3, 240, 0.75}};
  report.placement = {{.op = "RandomResizedCrop",
                       .where = "CPUWorker",
                       .reason = "the trainer has no idle core",
                       .worker_seconds = 0.0011,
                       .trainer_seconds = 0.0009,
                       .bytes_out = 150528},
                      {.op = "Python",
                       .function = "augment.transform",
                       .where = "CPUWorker",
                       .reason = "Python operators run on CPU workers",
                       .worker_seconds = 0.0033,
                       .python_seconds = 0.00325,
                       .bytes_in = 150528,
                       .bytes_out = 150528}};
  UsePoint first{.seconds = 15, .span = 14};
  first.cpu_seconds = {3.5, 0.25, 0, 0, 0, 0, 0.25};
  first.rss_bytes = 40'000'000;
  first.machine_busy_cores = 1.5;
  first.cores = 2;
  UsePoint second = first;
  second.seconds = 29;
  second.cpu_seconds = {2, 0.25, 0, 0, 0, 0.125, 0.125};
  second.gpus = {{.index = 0, .utilization = 0.5}};
  report.resources = {{.member = "cpu-0",
                       .role = "cpu",
                       .seconds = 28,
                       .cores = 2,
                       .cpu_seconds = {5.5, 0.5, 0, 0, 0, 0.125, 0.375},
                       .busy_cores_median = 0.25,
                       .busy_cores_p95 = 0.5,
                       .run_queue_seconds = 0.75,
                       .throttled_seconds = 0,
                       .peak_rss_bytes = 41943040,
                       .received_bytes = 1000,
                       .sent_bytes = 9830400,
                       .time_line = {first, second}}};
  report.batch_lives = {
      {"queued", 10, 0.001, 0.002, 0.003, 0.004},   {"work", 10, 0.05, 0.06, 0.07, 0.0812345678},
      {"transfer", 10, 0.002, 0.003, 0.003, 0.003}, {"window", 10, 0.01, 0.02, 0.02, 0.02},
      {"handover", 10, 0.001, 0.001, 0.001, 0.001}, {"step", 10, 0.1, 0.1, 0.11, 0.12},
      {"read", 10, 0.025, 0.03, 0.03, 0.04},        {"wholeStep", 6, 0.1, 0.11, 0.11, 0.12}};
  report.loss = 0.412;
  report.accuracy = 0.9133333;
  report.evaluations = {{1, 2, 1.5, 0.5, 300}, {2, 4, 0.75, 0.8, 300}, {4, 6, 0.5, 0.9133333, 300}};
  for (int64_t step = 1; step <= 6; ++step) {
    report.loss_curve.push_back({step, 2.5 / static_cast<double>(step), 0.25});
  }
  report.workers = {{"cpu-0", "cpu", 0, "node-a", 100, 3200, 9830400, 6.5, 41943040, 0},
                    {"cpu-1", "cpu", 1, "node-b", 88, 2816, 8650752, 5.75, 41943040, 1},
                    {"gpu-0", "gpu", 0, "node-a", 188, 6016, 18481152, 27, 612368384, 0}};
  report.cpu_seconds_per_sample = {{"cpu", 0.00204}, {"gpu", 0.0045}};
  report.faults = {{"2026-03-01T12:00:07Z", "cpu-1 was lost: exit by signal 9", 0.75},
                   {"2026-03-01T12:00:09Z", "cpu-0 was silent for 5 s", std::nullopt}};
  report.disruptions = {{.time = "2026-03-01T12:00:09Z",
                         .member = "cpu-0",
                         .sign = "node a: taint karpenter.sh/disrupted",
                         .checkpoint_seconds = 1.5,
                         .checkpoint_step = 40}};
  report.steps_redone = 3;
  report.cost_dollars = 0.0123;
  report.cost_per_million_samples = 2.05;
  report.verdict = "input-bound: 12.5 % of each step waits for data";
  report.checkpoint_uri = "file:///out/checkpoint";
  report.config_json = R"({"kind":"HeteroTrainingJob","metadata":{"name":"quickstart"}})";
  report.findings = {{.rule = "SlowWorker",
                      .message = "cpu-1 takes 3.0 times as long for a batch as the others",
                      .remedy = "look at the node of cpu-1, or set roles.cpu.replicas to 3",
                      .field = "roles.cpu.replicas",
                      .member = "cpu-1",
                      .seconds = 2.5,
                      .dollars = 0.0011,
                      .since = "2026-03-01T12:00:05Z",
                      .active = true},
                     {.rule = "CheckpointStall",
                      .message = "training stood still for 500 ms while a checkpoint was written",
                      .seconds = 0.5}};
  report.versions = {{"hetero", "0.1.0"}, {"libtorch", "2.11.0"}};
  return report;
}

}  // namespace hetero::insight
