// Who speaks for a job: the operator and its heads know each other by their certificates.
#include <gtest/gtest.h>

#include <memory>

#include "base/tls.h"
#include "tests/unit/operator/reconcile/head_follower_fixture.h"

namespace hetero::reconcile {
namespace {

using State = plan::HeadReport::State;

// The head's side of the pair that a job's Secret and ConfigMap make.
std::shared_ptr<grpc::ServerCredentials> HeadCredentials(const OperatorIdentity& identity,
                                                         const children::Leaf& leaf) {
  return *base::MakePeerServerCredentials({.ca_pem = identity.ca_pem,
                                           .certificate_pem = leaf.certificate_pem,
                                           .key_pem = leaf.key_pem,
                                           .allowed_uris = {kOperatorUri}});
}

TEST_F(HeadFollowerTest, SpeaksMutualTls) {
  const JobTrust trust = *IssueJobTrust("job-1", base::Clock::Real().WallNow());
  StatusServer server(HeadCredentials(identity_, trust.head));
  plan::HeadTarget target = Target(server);
  target.ca_pem = trust.ca_pem;
  follower_->Follow("a/x", target);
  ASSERT_TRUE(WaitForState("a/x", State::kWaiting));
}

TEST_F(HeadFollowerTest, HeadsDialledAfterARenewalAreShownTheNewCertificate) {
  const base::WallTime now = base::Clock::Real().WallNow();
  // As if the operator had led for longer than its certificate is good for.
  const OperatorIdentity expired = *IssueOperatorIdentity(now - std::chrono::hours(24 * 400));
  const JobTrust trust = *IssueJobTrust("job-1", now);
  StatusServer server(HeadCredentials(expired, trust.head));
  plan::HeadTarget target = Target(server);
  target.ca_pem = trust.ca_pem;
  follower_ =
      std::make_unique<HeadFollower>(base::Clock::Real(), expired, announcements_.Listener());
  follower_->Follow("a/early", target);
  follower_->UseCertificate(RenewOperatorIdentity(expired, now)->leaf);
  follower_->Follow("a/x", target);
  EXPECT_TRUE(WaitForState("a/x", State::kWaiting));
  EXPECT_TRUE(WaitForState("a/early", State::kWaiting)) << "it is dialled again by itself";
}

TEST_F(HeadFollowerTest, RefusesAnotherIdentity) {
  const JobTrust trust = *IssueJobTrust("job-1", base::Clock::Real().WallNow());
  StatusServer worker(HeadCredentials(identity_, trust.cpu_worker));
  StatusServer head(HeadCredentials(identity_, trust.head));
  plan::HeadTarget wrong_role = Target(worker);
  wrong_role.ca_pem = trust.ca_pem;
  plan::HeadTarget wrong_job = Target(head);
  wrong_job.ca_pem = trust.ca_pem;
  wrong_job.job_uid = "job-2";
  plan::HeadTarget right = Target(head);
  right.ca_pem = trust.ca_pem;
  follower_->Follow("a/role", wrong_role);
  follower_->Follow("a/job", wrong_job);
  follower_->Follow("a/right", right);
  ASSERT_TRUE(WaitForState("a/right", State::kWaiting));
  EXPECT_FALSE(follower_->Report("a/role")->connected);
  EXPECT_FALSE(follower_->Report("a/job")->connected);
  EXPECT_EQ(announcements_.Count("a/role"), 0);
}

}  // namespace
}  // namespace hetero::reconcile
