// Worlds drawn from their seeds.
#include "simulation/world.h"

namespace hetero::feed::simulation {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

World::Options World::Draw(uint64_t seed, bool tracing) {
  Dice dice(seed ^ 0xA5A5A5A5);
  const auto odds = [&dice](double most) { return dice.Chance(0.5) ? 0 : most * dice.Fraction(); };
  Options options;
  options.seed = seed;
  options.tracing = tracing;
  options.ranks = static_cast<int32_t>(dice.Between(1, 3));
  options.batch_size = dice.Between(1, 6);
  options.samples = dice.Between(20, 80) * options.ranks * options.batch_size + dice.Between(0, 5);
  options.epochs = dice.Between(1, 2);
  options.window = dice.Between(2, 40);
  options.sizes_known = dice.Chance(0.7);
  options.compute = dice.Time(microseconds(100), milliseconds(200));
  const int64_t workers = dice.Between(0, 6);
  for (int64_t i = 0; i < workers; ++i) {
    options.workers.push_back({.service = dice.Time(milliseconds(1), milliseconds(400)),
                               .spread = dice.Fraction() * 0.9,
                               .threads = static_cast<int>(dice.Between(1, 3)),
                               .memory = dice.Chance(0.5) ? 0 : dice.Between(1, 8),
                               .sending = dice.Time(milliseconds(1), milliseconds(100))});
    if (dice.Chance(0.1)) options.absent.push_back(static_cast<int>(i));
  }
  if (workers == 0 || dice.Chance(0.5)) {
    options.local = {.service = dice.Time(milliseconds(5), milliseconds(500))};
    if (dice.Chance(0.5)) options.local_mode = Window::Local::kShares;
  }
  options.weather = {.delay = dice.Time(microseconds(20), milliseconds(100)),
                     .jitter = dice.Time(microseconds(1), milliseconds(50)),
                     .reorder = odds(0.2),
                     .duplicate = odds(0.2),
                     .lose = odds(0.02),
                     .late_after_cut = odds(1),
                     .fail_ticket = odds(0.02),
                     .crash_per_second = odds(0.5),
                     .freeze_per_second = odds(0.5),
                     .slow_per_second = odds(0.3),
                     .cut_per_second = odds(0.2),
                     .pause_per_second = odds(0.3),
                     .notice_per_second = odds(0.3)};
  options.fault_time = seconds(dice.Between(1, 40));
  return options;
}

// All of it at once, more often than clusters of this size are known for.
World::Options World::DrawLarge(uint64_t seed, bool tracing) {
  Dice dice(seed ^ 0x5A5A5A5A);
  const auto odds = [&dice](double most) { return dice.Chance(0.1) ? 0 : most * dice.Fraction(); };
  Options options;
  options.seed = seed;
  options.tracing = tracing;
  options.head = true;
  options.ranks = 64;
  options.batch_size = dice.Between(1, 4);
  options.samples = dice.Between(20, 50) * options.ranks * options.batch_size + dice.Between(0, 5);
  options.window = dice.Between(4, 24);
  options.sizes_known = dice.Chance(0.7);
  options.compute = dice.Time(milliseconds(20), milliseconds(400));
  for (int i = 0; i < 500; ++i) {
    options.workers.push_back({.service = dice.Time(milliseconds(20), seconds(1)),
                               .spread = dice.Fraction() * 0.9,
                               .threads = static_cast<int>(dice.Between(1, 3)),
                               .memory = dice.Chance(0.5) ? 0 : dice.Between(2, 64),
                               .sending = dice.Time(milliseconds(1), milliseconds(50))});
    if (i >= 250 && dice.Chance(0.2)) options.absent.push_back(i);
  }
  if (dice.Chance(0.5)) options.local = {.service = dice.Time(milliseconds(50), seconds(1))};
  options.weather = {.delay = dice.Time(microseconds(20), milliseconds(20)),
                     .jitter = dice.Time(microseconds(1), milliseconds(20)),
                     .reorder = odds(0.05),
                     .duplicate = odds(0.05),
                     .lose = odds(0.002),
                     .late_after_cut = odds(1),
                     .fail_ticket = odds(0.005),
                     .crash_per_second = odds(10),
                     .freeze_per_second = odds(5),
                     .slow_per_second = odds(5),
                     .cut_per_second = odds(3),
                     .pause_per_second = odds(1),
                     .notice_per_second = odds(3),
                     .drain_per_second = odds(3),
                     .rank_death_per_second = odds(0.3),
                     .group_break_per_second = odds(0.2),
                     .head_loss_per_second = odds(0.2)};
  options.fault_time = seconds(dice.Between(5, 20));
  return options;
}

}  // namespace hetero::feed::simulation
