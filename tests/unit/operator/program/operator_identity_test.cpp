#include "operator/program/operator_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "base/fake_clock.h"
#include "operator/program/identity_renewal.h"

namespace hetero::program {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// An API server with room for one Secret.
class OneSecret : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> Send(const kube::Request& request, base::Duration,
                                      std::stop_token) override {
    calls.push_back(request.method + " " + request.path.substr(0, request.path.find('?')));
    if (before_each) before_each(request);
    if (forbidden) return Failure(403, "Forbidden");
    if (request.method == "GET") {
      return secret.is_null() ? Failure(404, "NotFound") : Found(200);
    }
    json given = json::parse(request.body, nullptr, false);
    if (request.method == "POST" && !secret.is_null()) return Failure(409, "AlreadyExists");
    if (request.method == "PUT" &&
        given["metadata"]["resourceVersion"] != secret["metadata"]["resourceVersion"]) {
      return Failure(409, "Conflict");
    }
    Store(std::move(given));
    return Found(request.method == "POST" ? 201 : 200);
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, base::Duration, base::Duration,
                                        const OnLine&, std::stop_token) override {
    return absl::UnimplementedError("not needed here");
  }
  void Store(json object) {
    secret = std::move(object);
    secret["metadata"]["resourceVersion"] = std::to_string(++version);
  }

  json secret;
  bool forbidden = false;
  int version = 0;
  std::vector<std::string> calls;
  std::function<void(const kube::Request&)> before_each;

 private:
  kube::Response Found(int status) const { return {.status = status, .body = secret.dump()}; }
  static kube::Response Failure(int status, const std::string& reason) {
    const json body = {{"kind", "Status"},    {"apiVersion", "v1"},
                       {"status", "Failure"}, {"message", "refused: " + reason},
                       {"reason", reason},    {"code", status}};
    return {.status = status, .body = body.dump()};
  }
};

class OperatorIdentityTest : public ::testing::Test {
 protected:
  absl::StatusOr<reconcile::OperatorIdentity> Load() {
    server_.calls.clear();
    return LoadOperatorIdentity(client_, clock_, kKey);
  }

  const kube::ObjectKey kKey{"ops", "identity"};
  const std::string kList = "/api/v1/namespaces/ops/secrets";
  const std::string kOne = kList + "/identity";
  base::FakeClock clock_;
  metrics::Registry registry_;
  OneSecret server_;
  kube::Client client_{server_, clock_, registry_, {}};
};

TEST_F(OperatorIdentityTest, IsMadeOnceAndThenRead) {
  const auto made = Load();
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(server_.calls, ElementsAre("GET " + kOne, "POST " + kList));
  EXPECT_EQ(server_.secret["type"], "kubernetes.io/tls");
  EXPECT_EQ(server_.secret["metadata"]["name"], "identity");

  const auto read = Load();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(server_.calls, ElementsAre("GET " + kOne));
  EXPECT_EQ(read->ca_pem, made->ca_pem);
  EXPECT_EQ(read->leaf.certificate_pem, made->leaf.certificate_pem);
  EXPECT_EQ(read->leaf.key_pem, made->leaf.key_pem);
  EXPECT_THAT(read->ca_pem, HasSubstr("BEGIN CERTIFICATE"));
  EXPECT_EQ(std::chrono::floor<std::chrono::seconds>(read->expires),
            std::chrono::floor<std::chrono::seconds>(made->expires));
}

TEST_F(OperatorIdentityTest, IsRenewedAMonthBeforeItExpires) {
  const auto made = Load();
  ASSERT_TRUE(made.ok());
  const base::Duration left = made->expires - kRenewBefore - clock_.WallNow();
  clock_.Advance(left - std::chrono::minutes(1));
  EXPECT_EQ(Load()->ca_pem, made->ca_pem);
  clock_.Advance(std::chrono::minutes(2));
  const auto renewed = Load();
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_THAT(server_.calls, ElementsAre("GET " + kOne, "PUT " + kOne));
  EXPECT_EQ(renewed->ca_pem, made->ca_pem) << "running jobs trust this one";
  EXPECT_NE(renewed->leaf.certificate_pem, made->leaf.certificate_pem);
  EXPECT_GT(renewed->expires, made->expires);
  EXPECT_EQ(Load()->leaf.certificate_pem, renewed->leaf.certificate_pem);
}

TEST_F(OperatorIdentityTest, OneWithoutTheKeyOfItsAuthorityIsRecreated) {
  const auto made = Load();
  ASSERT_TRUE(made.ok());
  server_.secret["data"].erase("ca.key");
  const auto recreated = Load();
  ASSERT_TRUE(recreated.ok()) << recreated.status();
  EXPECT_THAT(server_.calls, ElementsAre("GET " + kOne, "PUT " + kOne));
  EXPECT_NE(recreated->ca_pem, made->ca_pem);
  EXPECT_TRUE(server_.secret["data"].contains("ca.key"));
  EXPECT_EQ(Load()->ca_pem, recreated->ca_pem);
}

TEST_F(OperatorIdentityTest, AKeyOfAnotherAuthorityIsToldWithItsRemedy) {
  const auto made = Load();
  const auto other = reconcile::IssueOperatorIdentity(clock_.WallNow());
  ASSERT_TRUE(made.ok() && other.ok());
  reconcile::OperatorIdentity mixed = *made;
  mixed.ca_key_pem = other->ca_key_pem;
  server_.Store(IdentityToSecret(kKey, mixed));
  clock_.Advance(std::chrono::hours(24 * 350));
  const absl::Status status = Load().status();
  EXPECT_THAT(status.message(), HasSubstr("Secret ops/identity: cannot be renewed; delete it"));
}

// Two replicas start at once.
TEST_F(OperatorIdentityTest, TheOneThatComesSecondReadsWhatTheFirstMade) {
  const auto other = reconcile::IssueOperatorIdentity(clock_.WallNow());
  ASSERT_TRUE(other.ok());
  server_.before_each = [&](const kube::Request& request) {
    if (request.method == "POST") server_.Store(IdentityToSecret(kKey, *other));
  };
  const auto got = Load();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->ca_pem, other->ca_pem);
  EXPECT_THAT(server_.calls, ElementsAre("GET " + kOne, "POST " + kList, "GET " + kOne));
}

TEST_F(OperatorIdentityTest, AConflictOfRenewalsIsSettledByReadingAgain) {
  ASSERT_TRUE(Load().ok());
  clock_.Advance(std::chrono::hours(24 * 350));
  const auto other = reconcile::IssueOperatorIdentity(clock_.WallNow());
  ASSERT_TRUE(other.ok());
  server_.before_each = [&](const kube::Request& request) {
    if (request.method == "PUT") server_.Store(IdentityToSecret(kKey, *other));
  };
  const auto got = Load();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->ca_pem, other->ca_pem);
}

TEST_F(OperatorIdentityTest, MissingRightsNameTheSecretAndTheVerbs) {
  server_.forbidden = true;
  const absl::Status status = Load().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(status.message(), HasSubstr("Secret ops/identity: cannot be read"));
  EXPECT_THAT(status.message(), HasSubstr("get and update"));
}

TEST_F(OperatorIdentityTest, AServerThatIsAwayIsWaitedFor) {
  int tries = 0;
  const auto load = [&]() -> absl::StatusOr<reconcile::OperatorIdentity> {
    if (++tries < 4) return absl::UnavailableError("500 InternalError");
    return Load();
  };
  absl::StatusOr<reconcile::OperatorIdentity> identity;
  std::jthread waiting([&] { identity = AwaitOperatorIdentity(load, clock_, {}); });
  for (int pause = 0; pause < 3; ++pause) {
    ASSERT_TRUE(clock_.WaitForSleepers(1));
    clock_.Advance(std::chrono::seconds(5));  // longer than any of the pauses
  }
  waiting.join();
  EXPECT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(tries, 4);
}

TEST_F(OperatorIdentityTest, ARefusalIsNotWaitedOutAndStopEndsTheWait) {
  server_.forbidden = true;
  EXPECT_TRUE(
      absl::IsPermissionDenied(AwaitOperatorIdentity([&] { return Load(); }, clock_, {}).status()));
  std::stop_source stop;
  stop.request_stop();
  const auto away = [] { return absl::UnavailableError("away"); };
  EXPECT_TRUE(absl::IsCancelled(AwaitOperatorIdentity(away, clock_, stop.get_token()).status()));
}

TEST_F(OperatorIdentityTest, ASecretOfSomebodyElseIsLeftAlone) {
  for (const char* text : {R"({"metadata": {"name": "identity"}, "data": {"password": "eA=="}})",
                           R"({"metadata": 7, "data": []})", R"({"data": {"tls.crt": 5}})",
                           R"({"data": {"ca.crt": "%", "tls.crt": "%", "tls.key": "%"}})"}) {
    server_.secret = json::parse(text);
    const absl::Status status = Load().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << text;
    EXPECT_THAT(status.message(), HasSubstr("delete it"));
    EXPECT_THAT(server_.calls, ElementsAre("GET " + kOne));
  }
  EXPECT_FALSE(IdentityFromSecret(json("text")).ok());
  EXPECT_FALSE(IdentityFromSecret(json()).ok());
}

class IdentityRenewalTest : public OperatorIdentityTest {
 protected:
  void Start() {
    identity_ = *Load();
    thread_ = std::jthread([this](std::stop_token stop) {
      IdentityRenewal(clock_, {.load = [this] { return Load(); },
                               .renewed = [this](const auto& now) { renewed_.push_back(now); },
                               .replaced = [this] { ++replaced_; }})
          .Run(identity_, std::move(stop));
    });
  }
  // Lets the days of `time` pass one by one.
  void Pass(std::chrono::hours time) {
    for (int day = 0; day * std::chrono::hours(24) < time; ++day) {
      ASSERT_TRUE(clock_.WaitForSleepers(1));
      clock_.Advance(std::chrono::hours(24));
    }
    ASSERT_TRUE(clock_.WaitForSleepers(1));
  }

  reconcile::OperatorIdentity identity_;
  std::vector<reconcile::OperatorIdentity> renewed_;  // read while the thread sleeps
  int replaced_ = 0;
  std::jthread thread_;
};

TEST_F(IdentityRenewalTest, RenewsWhileItLeads) {
  Start();
  Pass(std::chrono::hours(24 * 334));
  EXPECT_TRUE(renewed_.empty());
  Pass(std::chrono::hours(24 * 2));
  ASSERT_EQ(renewed_.size(), 1u);
  EXPECT_EQ(renewed_[0].ca_pem, identity_.ca_pem);
  EXPECT_NE(renewed_[0].leaf.key_pem, identity_.leaf.key_pem);
  Pass(std::chrono::hours(24 * 336));
  EXPECT_EQ(renewed_.size(), 2u);
  EXPECT_EQ(replaced_, 0);
}

TEST_F(IdentityRenewalTest, KeepsTryingWhenItIsRefused) {
  Start();
  server_.forbidden = true;
  Pass(std::chrono::hours(24 * 340));
  EXPECT_TRUE(renewed_.empty());
  server_.forbidden = false;
  Pass(std::chrono::hours(24));
  EXPECT_EQ(renewed_.size(), 1u);
}

TEST_F(IdentityRenewalTest, AnotherAuthorityEndsTheProcess) {
  Start();
  server_.Store(IdentityToSecret(
      kKey, *reconcile::IssueOperatorIdentity(clock_.WallNow() + std::chrono::hours(24 * 200))));
  Pass(std::chrono::hours(24 * 336));
  EXPECT_EQ(replaced_, 1);
  EXPECT_TRUE(renewed_.empty());
}

}  // namespace
}  // namespace hetero::program
