// An operator that dies at each of its writes, or is away.
#include <gtest/gtest.h>
#include <signal.h>

#include <deque>
#include <thread>

#include "tests/integration/operator/fault_fixture.h"

namespace hetero::testing {
namespace {

// Killed before the n-th write reaches the server, or after it was carried out but before the reply
// arrives: in turn, beginning with the latter or not.
void KillAtEveryWrite(bool first_carried_out) {
  int writes;
  {
    Lane calm("calm");
    calm.process.Start();
    JobUnderTest job(calm.space.name(), EventfulJob("job"));
    ExpectTheEnd(calm, job);
    std::this_thread::sleep_for(seconds(1));
    writes = static_cast<int>(calm.proxy.writes().size());
  }
  std::printf("an undisturbed life with one failure takes %d writes\n", writes);
  ASSERT_GE(writes, 15);
  ASSERT_LE(writes, 40);
  struct Case {
    int write;
    bool carried_out;
  };
  std::deque<Case> cases;
  for (int n = 1; n <= writes; ++n) cases.push_back({n, (n % 2 == 1) == first_carried_out});
  std::mutex mutex;  // guards cases
  auto run_lane = [&] {
    while (true) {
      Case one;
      {
        std::lock_guard lock(mutex);
        if (cases.empty()) return;
        one = cases.front();
        cases.pop_front();
      }
      SCOPED_TRACE("write " + std::to_string(one.write) + (one.carried_out ? " done" : " lost"));
      Lane lane("kill");
      std::atomic<int> count = 0;
      std::atomic<bool> killed = false;
      auto kill_now = [&] {
        if (!killed.exchange(true)) kill(lane.process.pid(), SIGKILL);
      };
      lane.proxy.SetRule([&](const ProxiedRequest& request) -> ProxyAction {
        if (!request.write() || killed) return {};
        if (++count != one.write) return {};
        if (one.carried_out) return {.kind = ProxyAction::Kind::kLoseReply};
        kill_now();
        return {.kind = ProxyAction::Kind::kLose};
      });
      lane.proxy.SetAfterWrite([&](const ProxiedRequest&, int) {
        if (one.carried_out && count >= one.write) kill_now();
      });
      lane.process.Start();
      JobUnderTest job(lane.space.name(), EventfulJob("job"));
      // The last writes are events and progress, whose number differs by one or two from life to
      // life.
      WaitFor(
          "the operator was killed or had no such write to make",
          [&] {
            return !lane.process.running() || (job.Is("Succeeded") && job.Children().empty());
          },
          seconds(60), [&] { return job.Describe(); });
      if (lane.process.running()) kill_now();
      lane.process.Start();
      ExpectTheEnd(lane, job);
    }
  };
  std::vector<std::thread> lanes;
  for (int i = 0; i < 6; ++i) lanes.emplace_back(run_lane);
  for (std::thread& lane : lanes) lane.join();
}

TEST_F(Fault, KilledAtEveryWrite) { KillAtEveryWrite(/*first_carried_out=*/true); }

TEST_F(Fault, KilledAtEveryWriteTheOtherWay) { KillAtEveryWrite(/*first_carried_out=*/false); }

TEST_F(Fault, DownForTheWholeLife) {
  Lane lane("late");
  lane.process.Start();
  JobUnderTest job(lane.space.name(), MakeJob("job", {{"steps", 40}, {"stepMillis", 50}}));
  ASSERT_TRUE(job.WaitIs("Running"));
  lane.process.Kill();
  WaitFor(
      "the head's pod ended",
      [&] {
        const json pod = job.Pod("head", 0);
        return pod.is_object() && pod["status"]["phase"] == "Succeeded";
      },
      seconds(60), [&] { return job.Describe(); });
  lane.process.Start();
  ASSERT_TRUE(job.WaitIs("Succeeded"));
  EXPECT_EQ(job.Status()["result"]["steps"], 40) << job.Status().dump(1);
  EXPECT_TRUE(job.WaitGone());
}

}  // namespace
}  // namespace hetero::testing
