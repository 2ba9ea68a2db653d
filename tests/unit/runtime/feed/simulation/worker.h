#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>

#include "runtime/feed/ticket_gate.h"
#include "simulation/process.h"

namespace hetero::feed::simulation {

// What a worker was asked for, and by whom.
struct Order {
  int32_t trainer = 0;
  int64_t connection = 0;
  int64_t ticket = 0;
};

// A producer of batches: a real TicketGate, a queue behind it, and threads that serve it in order.
// Like a CPU worker it remembers nothing but what waits, which dies with it.
class Worker : public Process {
 public:
  struct Options {
    base::Duration service = std::chrono::milliseconds(10);  // per ticket and thread
    double spread = 0.2;                                     // of it, either way
    int threads = 1;
    base::Duration distance{0};  // of the network to it, one way
    int64_t memory = 0;          // batches in the queue, in work and on their way; 0: any number
    base::Duration sending{0};   // of a batch, besides `distance`
  };
  struct Callbacks {
    std::function<void(const Order&)> on_started;
    std::function<void(const Order&, base::Duration work)> on_done;
  };

  Worker(Options options, Callbacks callbacks, Timeline* timeline, Dice* dice)
      : options_(options),
        callbacks_(std::move(callbacks)),
        timeline_(timeline),
        dice_(dice),
        gate_(GateOf(options)) {}

  bool alive() const { return alive_; }
  int64_t life() const { return life_; }
  double speed() const { return speed_; }
  void SetSpeed(double speed) { speed_ = speed; }  // 1: as in the options
  // Without a queue.
  void Start();
  // Everything it had is gone.
  void Crash();
  void Submit(const Order& order);
  void Cancel(int32_t trainer, int64_t ticket);
  // The stream to `trainer` broke: what was not begun for it is dropped.
  void CancelAll(int32_t trainer);
  int64_t served() const { return served_; }
  int64_t most_held() const;  // batches

 private:
  static TicketGate GateOf(const Options& options);
  void CancelIf(const std::function<bool(const Order&)>& goes);
  void TakeUp();
  void Release(const Order& order);
  void Serve();
  void Finish(const Order& order, base::Duration work);

  const Options options_;
  const Callbacks callbacks_;
  Timeline* timeline_;
  Dice* dice_;
  bool alive_ = false;
  int64_t life_ = 0;
  double speed_ = 1;
  TicketGate gate_;
  TicketGate::Key next_key_ = 1;
  std::map<TicketGate::Key, Order> waiting_;  // at the gate
  std::set<TicketGate::Owner> streams_;
  int64_t most_held_ = 0;  // bytes
  std::deque<Order> queue_;
  int busy_ = 0;
  int64_t served_ = 0;
};

}  // namespace hetero::feed::simulation
