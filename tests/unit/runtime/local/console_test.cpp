#include "runtime/local/console.h"

#include <gtest/gtest.h>

namespace hetero::local {
namespace {

TEST(DescribeStatus, SaysWhoIsMissing) {
  v1::JobStatus status;
  status.set_state(v1::JobStatus::WAITING);
  v1::RoleStatus* role = status.add_roles();
  role->set_name("cpu");
  role->set_desired(2);
  role->set_registered(1);
  role->add_missing("cpu-1");
  EXPECT_EQ(DescribeStatus(status), "waiting for cpu 1/2 (cpu-1)");
}

TEST(DescribeStatus, SaysHowFarItIs) {
  v1::JobStatus status;
  status.set_state(v1::JobStatus::RUNNING);
  status.set_eta_seconds(62);
  v1::Progress& progress = *status.mutable_progress();
  progress.set_step(120);
  progress.set_total_steps(188);
  progress.set_epoch(3);
  progress.set_total_epochs(4);
  progress.set_loss(0.4121);
  progress.set_samples_per_second(210);
  progress.set_data_wait_percent(3);
  EXPECT_EQ(DescribeStatus(status),
            "step 120/188  epoch 3/4  loss 0.4121  210 samples/s  wait 3.0 %  eta 1:02");
}

}  // namespace
}  // namespace hetero::local
