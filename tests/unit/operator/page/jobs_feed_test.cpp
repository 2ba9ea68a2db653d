#include "operator/page/jobs_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/fake_clock.h"
#include "tests/support/paths.h"
#include "tests/unit/operator/page/observed_jobs.h"

namespace hetero::jobs_page {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kGolden = testing::SourceDir() + "/tests/unit/operator/page/golden_jobs.json";

class Feed : public ::testing::Test {
 protected:
  void Put(plan::ObservedJob job) {
    job.resource_version = std::to_string(++version_);
    const kube::ObjectKey key{job.job.metadata.name_space, job.job.metadata.name};
    store_.Put(key, std::make_shared<const plan::ObservedJob>(std::move(job)));
  }
  json Whole() { return json::parse(feed_.Whole()); }
  // As a page takes it up (RFC 7386, by the library).
  json Changed(json value) {
    const std::string change = feed_.Change();
    if (!change.empty()) value.merge_patch(json::parse(change));
    return value;
  }

  base::FakeClock clock_;
  kube::Store<plan::ObservedJob> store_;
  bool ready_ = true;
  JobsFeed feed_{store_, clock_, [this] { return ready_; }, 1200};

 private:
  int version_ = 0;
};

TEST_F(Feed, TheValueIsWhatThePageReads) {
  clock_.Advance(std::chrono::hours(3));
  for (int number = 0; number < 10; ++number) Put(PlayedJob(number));
  feed_.Change();
  const std::string found = Whole().dump(1) + "\n";
  if (std::getenv("HETERO_WRITE_GOLDEN") != nullptr) std::ofstream(kGolden) << found;
  std::ostringstream wanted;
  wanted << std::ifstream(kGolden).rdbuf();
  EXPECT_EQ(found, wanted.str()) << "HETERO_WRITE_GOLDEN=1 writes it";
}

TEST_F(Feed, ChangesMakeTheSameOfAnOldValue) {
  EXPECT_EQ(
      Whole(),
      json({{"ready", false}, {"now", Whole()["now"]}, {"hidden", 0}, {"jobs", json::object()}}));
  json value = Whole();
  for (int number = 0; number < 30; ++number) Put(PlayedJob(number));
  value = Changed(value);
  EXPECT_EQ(value["jobs"].size(), 30u);
  EXPECT_EQ(value, Whole());
  EXPECT_EQ(feed_.Change(), "") << "nothing has happened";

  plan::ObservedJob job = PlayedJob(2);
  job.status.progress->step += 1;
  Put(job);
  store_.Remove({"team-3", "vit-large-sweep-0003"});
  ready_ = false;
  const json patch = json::parse(feed_.Change());
  EXPECT_EQ(patch["ready"], false);
  EXPECT_EQ(patch["jobs"].size(), 2u) << patch;
  EXPECT_TRUE(patch["jobs"]["team-3/vit-large-sweep-0003"].is_null());
  const json& told = patch["jobs"]["team-2/vit-large-sweep-0002"];
  EXPECT_EQ(told.size(), 1u) << "only the figures: " << told;
  EXPECT_EQ(told["figures"][0], 103);
  value.merge_patch(patch);
  EXPECT_EQ(value, Whole());

  job.status.findings.clear();
  Put(job);
  value = Changed(value);
  EXPECT_FALSE(value["jobs"]["team-2/vit-large-sweep-0002"].contains("finding"));
  EXPECT_EQ(value, Whole());
}

TEST_F(Feed, AJobWhoseObjectIsTheSameIsNotLookedAtAgain) {
  plan::ObservedJob job = PlayedJob(2);
  Put(job);
  feed_.Change();
  job.resource_version = "1";  // as stored
  job.status.progress->step = 777;
  store_.Put({"team-2", "vit-large-sweep-0002"}, std::make_shared<const plan::ObservedJob>(job));
  EXPECT_EQ(feed_.Change(), "");
  job.resource_version = "2";
  store_.Put({"team-2", "vit-large-sweep-0002"}, std::make_shared<const plan::ObservedJob>(job));
  EXPECT_THAT(feed_.Change(), HasSubstr("777"));
}

// What lies in the operator's memory and on the way to each page.
TEST_F(Feed, AThousandJobsAreThreeHundredKilobytes) {
  for (int number = 0; number < 1000; ++number) Put(PlayedJob(number));
  feed_.Change();
  const std::string whole = feed_.Whole();
  RecordProperty("bytes_of_whole", static_cast<int>(whole.size()));
  EXPECT_GT(whole.size(), 150'000u);
  EXPECT_LT(whole.size(), 350'000u);
  EXPECT_EQ(json::parse(whole)["jobs"].size(), 1000u);
  for (int number = 0; number < 1000; ++number) {
    plan::ObservedJob job = PlayedJob(number);
    if (job.status.progress) ++job.status.progress->step;
    Put(std::move(job));
  }
  const std::string change = feed_.Change();
  RecordProperty("bytes_of_change", static_cast<int>(change.size()));
  EXPECT_GT(change.size(), 50'000u);
  EXPECT_LT(change.size(), 120'000u) << "steps of all jobs within one second";
}

// The longest that a status may say.
TEST_F(Feed, TextsAreBounded) {
  for (int number = 0; number < 100; ++number) {
    plan::ObservedJob job = PlayedJob(number);
    const std::string text(100'000, 'x');
    job.status.findings = {
        {.rule = text, .message = text, .remedy = text, .field = text, .member = text}};
    job.status.registered = text;
    SetTrue(job, api::ConditionType::kStalled, text, text);
    Put(std::move(job));
  }
  feed_.Change();
  EXPECT_LT(feed_.Whole().size(), 100 * 4'500u);
}

TEST_F(Feed, JobsBeyondTheLimitAreCounted) {
  for (int number = 0; number < 1250; ++number) Put(PlayedJob(number));
  json value = Changed(Whole());
  EXPECT_EQ(value["hidden"], 50);
  EXPECT_EQ(value["jobs"].size(), 1200u);
  for (int number = 0; number < 100; ++number) {
    const plan::ObservedJob job = PlayedJob(number);
    store_.Remove({job.job.metadata.name_space, job.job.metadata.name});
  }
  value = Changed(value);
  EXPECT_EQ(value["hidden"], 0);
  EXPECT_EQ(value["jobs"].size(), 1150u);
  EXPECT_EQ(value, Whole());
}

TEST_F(Feed, HostileTextsStayText) {
  const std::string hostile = "a\"]}</script><img src=x onerror=alert(1)>\n\x1b[2J\xff\xe2\x80";
  plan::ObservedJob job = PlayedJob(2);
  job.job.metadata.name = hostile;
  job.status.findings.front().message = hostile;
  job.status.findings.front().remedy = hostile;
  SetTrue(job, api::ConditionType::kStalled, hostile, hostile);
  Put(job);
  const json value = Changed(Whole());
  ASSERT_EQ(value["jobs"].size(), 1u);
  const auto told = value["jobs"].begin();
  EXPECT_EQ(told.key(),
            "team-2/a\"]}</script><img src=x onerror=alert(1)>\n\x1b[2J\uFFFD\uFFFD\uFFFD");
  const std::string line = "a\"]}</script><img src=x onerror=alert(1)>  [2J\uFFFD\uFFFD\uFFFD";
  EXPECT_EQ(told.value()["finding"][1], line);
  EXPECT_EQ(told.value()["finding"][2], line);
  EXPECT_THAT(feed_.Whole(), Not(HasSubstr("\n"))) << "an event's line";
}

}  // namespace
}  // namespace hetero::jobs_page
