#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "tests/bench/operator_scale/big_job.h"
#include "tests/bench/operator_scale/many_jobs.h"
#include "tests/bench/operator_scale/slow_namespace.h"

// What the operator carries through a real control plane. Each inside a tests/cluster/run of its
// own:
//   operator_scale run --jobs 1000 --recording FILE       with auditing on
//   operator_scale replay --recording FILE                a plain client that repeats its writes
//   operator_scale big --gpu 512 --cpu 1024               one job under the chart's defaults
//   operator_scale slow-api, slow-webhook                 jobs beside a namespace that is slow
// scripts/operator_scale.sh runs them all.
int main(int argc, char** argv) {
  using namespace hetero::bench;
  ::testing::InitGoogleTest(&argc, argv);
  CLI::App app{"The operator at scale on a real control plane."};
  app.require_subcommand(1);
  int jobs = 1000, idle = 60;
  std::string recording = "recording.json", audit;
  CLI::App* run = app.add_subcommand("run", "Carry jobs through and record the operator's writes");
  run->add_option("--jobs", jobs)->capture_default_str();
  run->add_option("--idle-seconds", idle)->capture_default_str();
  run->add_option("--recording", recording)->capture_default_str();
  run->add_option("--audit-log", audit)->required();
  CLI::App* replay = app.add_subcommand("replay", "Repeat the recorded writes with a plain client");
  replay->add_option("--recording", recording)->capture_default_str();
  BigJobOptions big_options;
  CLI::App* big = app.add_subcommand("big", "One job of many pods");
  big->add_option("--gpu", big_options.gpu)->capture_default_str();
  big->add_option("--cpu", big_options.cpu)->capture_default_str();
  SlowNamespaceOptions slow;
  CLI::App* slow_api = app.add_subcommand("slow-api", "One namespace whose calls are slow");
  CLI::App* slow_webhook = app.add_subcommand("slow-webhook", "One with a slow admission webhook");
  for (CLI::App* one : {slow_api, slow_webhook}) {
    one->add_option("--jobs", slow.jobs, "In the slow namespace")->capture_default_str();
    one->add_option("--others", slow.others, "In other namespaces")->capture_default_str();
  }
  CLI11_PARSE(app, argc, argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (run->parsed()) return RunManyJobs(jobs, recording, audit, idle);
  if (replay->parsed()) return ReplayManyJobs(recording);
  if (big->parsed()) return RunBigJob(big_options);
  return slow_api->parsed() ? RunSlowApi(slow) : RunSlowWebhook(slow);
}
