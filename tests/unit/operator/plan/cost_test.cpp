#include "operator/plan/cost.h"

#include <gtest/gtest.h>

#include "api/money.h"

// Hand-written lives: the dollars are worked out by hand in the comments.
namespace hetero::plan {
namespace {

using api::JobCost;
using std::chrono::seconds;

const base::WallTime kDawn = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);
const std::vector<std::string> kRoleNames = {"head", "cpu", "gpu"};
constexpr Price kHeadPrice{.paid = 100'000, .on_demand = 100'000};       // 0.10 dollars an hour
constexpr Price kCpuPrice{.paid = 600'000, .on_demand = 1'000'000};      // 0.60, instead of 1.00
constexpr Price kGpuPrice{.paid = 36'000'000, .on_demand = 36'000'000};  // 0.01 dollars a second

base::WallTime At(int64_t second) { return kDawn + seconds(second); }

PodLife Life(const std::string& role, int64_t incarnation, std::optional<int64_t> start,
             std::optional<int64_t> end, std::optional<Price> price) {
  PodLife life{.role = role, .incarnation = incarnation, .price = price};
  if (start) life.start = At(*start);
  if (end) life.end = At(*end);
  return life;
}
PodLife Gpu(int64_t incarnation, int64_t start, std::optional<int64_t> end = std::nullopt) {
  return Life("gpu", incarnation, start, end, kGpuPrice);
}

// All of it seen as it happens.
JobCost See(const std::optional<JobCost>& account, int64_t second, std::vector<PodLife> there,
            std::vector<PodLife> departed = {}) {
  JobCost cost = BringUpToDate(account,
                               {.there = std::move(there),
                                .departed = std::move(departed),
                                .as_of = At(second),
                                .now = At(second),
                                .training = true},
                               kRoleNames);
  Present(cost, {"gpu"}, std::nullopt, 0);
  return cost;
}

const api::RoleCost& RoleOf(const JobCost& cost, const std::string& name) {
  for (const api::RoleCost& role : cost.roles) {
    if (role.name == name) return role;
  }
  ADD_FAILURE() << "no role " << name;
  return cost.roles.front();
}

TEST(MicroDollarsTest, ReadsDecimals) {
  EXPECT_EQ(api::MicroDollars("2.48"), 2'480'000);
  EXPECT_EQ(api::MicroDollars("0"), 0);
  EXPECT_EQ(api::MicroDollars("0.0000014"), 1);
  EXPECT_EQ(api::MicroDollars("0.0000015"), 2);
  EXPECT_EQ(api::MicroDollars("12"), 12'000'000);
  EXPECT_EQ(api::MicroDollars("99999999999999999999"), std::numeric_limits<int64_t>::max());
  for (const char* wrong : {"", ".", "1.", ".5", "-1", "1e3", "1.2.3", " 1", "1,5"}) {
    EXPECT_EQ(api::MicroDollars(wrong), std::nullopt) << wrong;
  }
}

TEST(CostTest, OneLifeInWholeSeconds) {
  const JobCost cost = See({}, 100, {Gpu(1, 10, 90)});
  EXPECT_EQ(cost.dollars, 0.80);
  EXPECT_EQ(cost.uncertain_dollars, 0);
  EXPECT_EQ(cost.on_demand_dollars, std::nullopt);
  EXPECT_EQ(cost.priceless_pods, std::nullopt);
  EXPECT_EQ(RoleOf(cost, "gpu").pods, 1);
  EXPECT_EQ(RoleOf(cost, "gpu").pod_hours, 0.022222);  // 80 s
  EXPECT_EQ(RoleOf(cost, "cpu").pods, 0);
}

TEST(CostTest, OneThatStillRunsBillsUntilTheAccount) {
  JobCost cost = See({}, 100, {Gpu(1, 10)});
  EXPECT_EQ(cost.dollars, 0.90);
  EXPECT_EQ(RateOf(cost), kGpuPrice.paid);
  cost = See(cost, 160, {Gpu(1, 10)});
  EXPECT_EQ(cost.dollars, 1.50);
  EXPECT_EQ(cost.as_of, At(160));
}

TEST(CostTest, OneThatWaitsForANodeCostsNothing) {
  const JobCost cost = See({}, 100, {Life("gpu", 1, std::nullopt, std::nullopt, kGpuPrice)});
  EXPECT_EQ(cost.dollars, 0);
  EXPECT_EQ(RoleOf(cost, "gpu").pods, 0);
}

TEST(CostTest, AThirdOfACentComesOutRight) {
  // 7 s of 0.10 dollars an hour are 0.00019444...
  EXPECT_EQ(See({}, 100, {Life("head", 1, 0, 7, kHeadPrice)}).dollars, 0.000194);
  // Three such pods are 0.00058333..., not three times the rounded figure.
  EXPECT_EQ(See({}, 100,
                {Life("head", 1, 0, 7, kHeadPrice), Life("head", 2, 0, 7, kHeadPrice),
                 Life("head", 3, 0, 7, kHeadPrice)})
                .dollars,
            0.000583);
}

TEST(CostTest, SpotAndItsOnDemandEquivalent) {
  // An hour at 0.60 instead of 1.00, and an hour of a role without a discount.
  const JobCost cost =
      See({}, 4000, {Life("cpu", 1, 0, 3600, kCpuPrice), Life("head", 1, 0, 3600, kHeadPrice)});
  EXPECT_EQ(cost.dollars, 0.70);
  EXPECT_EQ(cost.on_demand_dollars, 1.10);
  EXPECT_EQ(RoleOf(cost, "cpu").on_demand_dollars, 1.0);
  EXPECT_EQ(RoleOf(cost, "head").on_demand_dollars, std::nullopt);
}

TEST(CostTest, TwoAttempts) {
  // Both trainers of the first attempt until 50, of the second from 60 to 100: 0.5+0.4+0.4+0.4.
  JobCost cost = See({}, 40, {Gpu(1, 0), Gpu(1, 10)});
  EXPECT_EQ(cost.dollars, 0.70);
  cost = See(cost, 55, {}, {Gpu(1, 0, 50), Gpu(1, 10, 50)});
  EXPECT_EQ(cost.dollars, 0.90);
  cost = See(cost, 100, {Gpu(2, 60), Gpu(2, 60)});
  EXPECT_EQ(cost.dollars, 1.70);
  EXPECT_EQ(RoleOf(cost, "gpu").pods, 4);
  EXPECT_EQ(cost.uncertain_dollars, 0);
}

TEST(CostTest, AutoscaledAndReplacedPods) {
  // 2 -> 4 -> 2 workers at 0.60 an hour, and one of the first two is replaced.
  JobCost cost =
      See({}, 1200, {Life("cpu", 1, 0, {}, kCpuPrice), Life("cpu", 1, 0, {}, kCpuPrice)});
  EXPECT_EQ(cost.dollars, 0.40);
  cost = See(cost, 1800,
             {Life("cpu", 1, 0, {}, kCpuPrice), Life("cpu", 1, 0, 1800, kCpuPrice),
              Life("cpu", 2, 600, {}, kCpuPrice), Life("cpu", 3, 1200, {}, kCpuPrice)});
  cost =
      See(cost, 3700, {Life("cpu", 1, 0, 3600, kCpuPrice), Life("cpu", 4, 1800, 3600, kCpuPrice)},
          {Life("cpu", 1, 0, 1800, kCpuPrice), Life("cpu", 2, 600, 1800, kCpuPrice),
           Life("cpu", 3, 1200, 1800, kCpuPrice)});
  // 3600 + 1800 + 1800 + 1200 + 600 = 9000 s.
  EXPECT_EQ(cost.dollars, 1.50);
  EXPECT_EQ(cost.on_demand_dollars, 2.50);
  EXPECT_EQ(RoleOf(cost, "cpu").pods, 5);
  EXPECT_EQ(RoleOf(cost, "cpu").pod_hours, 2.5);
  EXPECT_EQ(cost.uncertain_seconds, 0);
}

TEST(CostTest, NothingIsAddedTwice) {
  const JobCost once = See({}, 100, {Gpu(1, 0)}, {Gpu(1, 0, 50)});
  EXPECT_EQ(once.dollars, 1.50);
  // The answer to that write was lost: the same pods are told of as departed again.
  const JobCost again = See(once, 100, {Gpu(1, 0)}, {Gpu(1, 0, 50)});
  EXPECT_EQ(again, once);
  // And once more, together with one that has gone since.
  const JobCost later = See(once, 120, {}, {Gpu(1, 0, 50), Gpu(1, 0, 110)});
  EXPECT_EQ(later.dollars, 1.60);
  EXPECT_EQ(later.uncertain_dollars, 0);
}

TEST(CostTest, AnOperatorGoesOnFromTheStatusAlone) {
  JobCost cost = See({}, 100, {Gpu(1, 0), Gpu(1, 20, 80)});
  EXPECT_EQ(cost.dollars, 1.60);
  // The other operator sees the same pods, and what they cost meanwhile.
  cost = See(cost, 200, {Gpu(1, 0), Gpu(1, 20, 80), Gpu(2, 150)});
  EXPECT_EQ(cost.dollars, 3.10);
  EXPECT_EQ(cost.uncertain_dollars, 0);
}

TEST(CostTest, APodVanishedWhileTheOperatorWasAway) {
  // Two trainers since 0; at 400 one of them is gone, and was there at 100 for sure.
  JobCost cost = See({}, 100, {Gpu(1, 0), Gpu(1, 0)});
  cost = See(cost, 400, {Gpu(1, 0)});
  EXPECT_EQ(cost.dollars, 8.00);  // as if until 400
  EXPECT_EQ(cost.uncertain_dollars, 3.00);
  EXPECT_EQ(cost.uncertain_seconds, 300);
  // What remains is counted from then, exactly.
  cost = See(cost, 500, {Gpu(1, 0, 450)});
  EXPECT_EQ(cost.dollars, 8.50);
  EXPECT_EQ(cost.uncertain_dollars, 3.00);
  EXPECT_EQ(RoleOf(cost, "gpu").pods, 2);
}

TEST(CostTest, ThoseThatHadEndedLeaveNoDoubt) {
  JobCost cost = See({}, 100, {Gpu(1, 0, 60), Gpu(1, 0, 70)});
  cost = See(cost, 400, {});
  EXPECT_EQ(cost.dollars, 1.30);
  EXPECT_EQ(cost.uncertain_dollars, 0);
}

TEST(CostTest, OneThatWasNotBoundMayHaveRunUnseen) {
  JobCost cost = See({}, 100, {Gpu(1, 0), Life("gpu", 1, std::nullopt, std::nullopt, kGpuPrice)});
  cost = See(cost, 400, {Gpu(1, 0)});
  EXPECT_EQ(cost.dollars, 4.00);
  EXPECT_EQ(cost.uncertain_dollars, 3.10);  // from ten seconds before the account, for all we know
}

// Found by a random life: nobody of the role was left to tell the price.
TEST(CostTest, TheLastOfARoleThatWasNotBoundIsDoubtedAtItsPrice) {
  JobCost cost = See({}, 100, {Life("gpu", 1, std::nullopt, std::nullopt, kGpuPrice)});
  cost = See(cost, 400, {});
  EXPECT_EQ(cost.dollars, 0);
  EXPECT_EQ(cost.uncertain_dollars, 3.10);
}

TEST(CostTest, AReplacementIsNotTakenForTheOneThatVanished) {
  JobCost cost = See({}, 100, {Gpu(1, 0)});
  // Since another operator made a pod in its place.
  cost = See(cost, 400, {Gpu(7, 300)});
  EXPECT_EQ(cost.dollars, 5.00);
  EXPECT_EQ(cost.uncertain_dollars, 3.00);
}

TEST(CostTest, OfMixedPricesWhatIsLeftTellsWhoVanished) {
  constexpr Price kCheap{.paid = 3'600'000, .on_demand = 36'000'000};  // a tenth
  JobCost cost = See({}, 100, {Gpu(1, 0), Life("gpu", 1, 0, {}, kCheap)});
  EXPECT_EQ(cost.dollars, 1.10);
  cost = See(cost, 200, {Gpu(1, 0)});
  EXPECT_EQ(cost.dollars, 2.20);
  EXPECT_EQ(cost.uncertain_dollars, 0.10);
}

TEST(CostTest, PodsWithoutAPriceAreSaidToBeMissing) {
  JobCost cost = See({}, 100, {Gpu(1, 0), Life("cpu", 1, 0, {}, std::nullopt)});
  EXPECT_EQ(cost.dollars, 1.00);
  EXPECT_EQ(cost.priceless_pods, 1);
  EXPECT_EQ(RoleOf(cost, "cpu").priceless_pods, 1);
  EXPECT_EQ(RoleOf(cost, "gpu").priceless_pods, std::nullopt);
  cost = See(cost, 200, {}, {Gpu(1, 0, 150), Life("cpu", 1, 0, 150, std::nullopt)});
  EXPECT_EQ(cost.dollars, 1.50);
  EXPECT_EQ(cost.priceless_pods, 1);
}

TEST(CostTest, AnEndThatIsAGuessIsDoubted) {
  PodLife gone = Gpu(1, 0, 100);
  gone.uncertain = seconds(30);
  const JobCost cost = See(See({}, 50, {Gpu(1, 0)}), 100, {}, {gone});
  EXPECT_EQ(cost.dollars, 1.00);
  EXPECT_EQ(cost.uncertain_dollars, 0.30);
  EXPECT_EQ(cost.uncertain_seconds, 30);
}

TEST(CostTest, ALateEndTakesNothingBack) {
  JobCost cost = See({}, 100, {Gpu(1, 0), Gpu(1, 0)});
  EXPECT_EQ(cost.dollars, 2.00);
  // One had ended at 40: told now. What was said stands until the other has cost as much.
  cost = See(cost, 130, {Gpu(1, 0), Gpu(1, 0, 40)});
  EXPECT_EQ(cost.dollars, 2.00);
  EXPECT_EQ(cost.uncertain_dollars, 0.30);
  cost = See(cost, 200, {Gpu(1, 0), Gpu(1, 0, 40)});
  EXPECT_EQ(cost.dollars, 2.40);
  EXPECT_EQ(cost.uncertain_dollars, 0);
}

TEST(CostTest, OtherPricesCountFromThenOn) {
  JobCost cost = See({}, 100, {Gpu(1, 0)});
  PodLife dearer = Gpu(1, 0);
  dearer.price = Price{.paid = 72'000'000, .on_demand = 72'000'000};
  cost = See(cost, 200, {dearer});  // another operator, with another price sheet
  EXPECT_EQ(cost.dollars, 3.00);
}

TEST(CostTest, WaitingForDataIsAShareOfTheTrainersDollars) {
  JobCost cost = See({}, 100, {Gpu(1, 0), Life("cpu", 1, 0, {}, kCpuPrice)});
  Present(cost, {"gpu"}, 0.25, 2'000'000);
  EXPECT_EQ(cost.waiting_dollars, 0.25);
  EXPECT_EQ(RoleOf(cost, "gpu").waiting_dollars, 0.25);
  EXPECT_EQ(RoleOf(cost, "cpu").waiting_dollars, std::nullopt);
  // (1 + 100 * 0.60 / 3600) / 2.
  EXPECT_EQ(cost.per_million_samples, 0.508334);
}

TEST(CostTest, FormerRolesAreMergedAndLoseNothing) {
  std::optional<JobCost> cost;
  for (int i = 0; i < 40; ++i) {
    const std::string name = "role-" + std::to_string(i);
    PodLife life = Gpu(i + 1, i * 10, i * 10 + 10);
    life.role = name;
    cost = BringUpToDate(
        cost, {.departed = {life}, .as_of = At(i * 10 + 10), .now = At(i * 10 + 10)}, {name});
  }
  Present(*cost, {}, std::nullopt, 0);
  EXPECT_LE(cost->roles.size(), 16U);
  EXPECT_EQ(cost->dollars, 4.00);
}

TEST(CostTest, AmountsDoNotOverflow) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  JobCost cost = See({}, 1'000'000, {Life("gpu", 1, 0, {}, Price{kMost, kMost})});
  cost = See(cost, 2'000'000, {Life("gpu", 1, 0, {}, Price{kMost, kMost})});
  EXPECT_EQ(AmountOf(cost), kMost);
}

TEST(CostTest, TheStatusDoesNotGrowWithThePods) {
  std::vector<PodLife> lives;
  for (int i = 0; i < 10'000; ++i) lives.push_back(Life("cpu", i + 1, i, {}, kCpuPrice));
  api::JobStatus few, many;
  few.cost = See({}, 20'000, {lives.front()});
  many.cost = See({}, 20'000, lives);
  EXPECT_LT(api::StatusToJson(many).size(), api::StatusToJson(few).size() + 100);
  // And comes back as it went.
  const absl::StatusOr<api::JobStatus> read = api::StatusFromJson(api::StatusToJson(many));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, many);
}

}  // namespace
}  // namespace hetero::plan
