// Tickets of which a process before this one may have ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "runtime/feed/window.h"

namespace hetero::feed {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kTickets = 12;
constexpr int64_t kCapacity = 3;

base::Instant Moment(int64_t ms) { return base::Instant() + std::chrono::milliseconds(ms); }

// All tickets are served, by `workers` or else by the own cores; those that were guarded.
std::set<int64_t> Guarded(std::optional<int64_t> suspect, int workers = 0) {
  Window window({.tickets = kTickets,
                 .byte_budget = kCapacity,
                 .batch_bytes = 1,
                 .local = workers > 0 ? Window::Local::kOff : Window::Local::kLastResort,
                 .suspect = suspect});
  std::set<int64_t> guarded;
  std::map<int64_t, Window::Assignment> issued;  // and not arrived
  int64_t now = 0;
  const auto apply = [&](const Window::Event& event) {
    for (const Window::Assignment& one : window.Apply(event, Moment(++now)).issue) {
      issued[one.ticket] = one;
    }
  };
  apply(Window::Tick{});
  for (ProducerId id = 1; id <= workers; ++id) {
    apply(Window::WorkerAdded{id});
    apply(Window::StreamUp{id});
  }
  while (!issued.empty()) {
    const Window::Assignment first = issued.begin()->second;
    issued.erase(first.ticket);
    if (first.guarded) guarded.insert(first.ticket);
    apply(Window::Arrived{.producer = first.producer, .ticket = first.ticket});
    apply(Window::Consumed{});
  }
  EXPECT_EQ(window.head_state(), Window::HeadState::kEnd);
  return guarded;
}

TEST(WindowSuspectTest, OwnCoresGuardWhatIsBeforeThePlaceAndAWindowFromThereOn) {
  EXPECT_THAT(Guarded(0), ElementsAre(0, 1, 2));
  EXPECT_THAT(Guarded(2), ElementsAre(0, 1, 2, 3, 4));
  // The stream was opened again beyond it.
  EXPECT_THAT(Guarded(-2), ElementsAre(0));
  EXPECT_THAT(Guarded(-kCapacity), IsEmpty());
}

TEST(WindowSuspectTest, WhereNoProcessEndedNothingIsGuarded) {
  EXPECT_THAT(Guarded(std::nullopt), IsEmpty());
}

// They are charged with what ends them.
TEST(WindowSuspectTest, WorkersGuardNothingForThat) { EXPECT_THAT(Guarded(2, 1), IsEmpty()); }

}  // namespace
}  // namespace hetero::feed
