#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace hetero::feed {

// Which of the tickets that trainers have asked a CPU worker for it takes up now: as many as its
// memory holds the batches of, from then on until they are sent, and always one. The trainer that
// holds least of the memory comes first, and of several the one whose ticket has waited longest:
// each has its turn however many they are. Where there are several, a quarter of the memory is for
// those that hold none of it, so that a few which take nothing, and keep what they hold, leave the
// others room. While there is room, all come in the order in which they were asked for. Pure; not
// thread-safe.
class TicketGate {
 public:
  using Owner = uint64_t;  // a trainer's stream
  using Key = uint64_t;    // of a ticket; no two are alike

  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  explicit TicketGate(int64_t most_bytes) : most_bytes_(most_bytes) {}

  // A trainer's stream begins, and ends.
  void Join() { ++streams_; }
  void Part() { --streams_; }
  void Ask(Owner owner, Key key, int64_t bytes);
  // It is no longer asked for. False when it does not wait here.
  bool Withdraw(Owner owner, Key key);
  // Takes out the next ticket; absent: none is there, or there is no room. Its bytes count until
  // Release().
  std::optional<Key> Next();
  void Release(Owner owner, int64_t bytes);

  int64_t held() const { return held_; }  // bytes
  bool waiting() const { return !turns_.empty(); }

 private:
  struct Waiting {
    uint64_t order;
    Key key;
    int64_t bytes;
  };
  struct Trainer {
    int64_t held = 0;
    std::deque<Waiting> waiting;
  };
  using Turn = std::tuple<int64_t, uint64_t, Owner>;  // held, order of its first ticket

  static Turn TurnOf(Owner owner, const Trainer& trainer) {
    return {trainer.held, trainer.waiting.front().order, owner};
  }
  // Around each change of a trainer.
  void Leave(Owner owner, const Trainer& trainer);
  void Return(Owner owner, const Trainer& trainer);

  int64_t most_bytes_;
  int64_t streams_ = 0;
  int64_t held_ = 0;
  uint64_t next_order_ = 0;
  std::map<Owner, Trainer> trainers_;  // that hold something, or wait
  std::set<Turn> turns_;               // of those that wait
};

}  // namespace hetero::feed
