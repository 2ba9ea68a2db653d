#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace hetero::testing {

// A TCP proxy in front of one server that can do to its connections what networks do. Thread-safe.
// "Down" is the direction from the server to whoever dialled.
class Proxy {
 public:
  // `target` is an IPv4 address and a port.
  explicit Proxy(std::string target);
  ~Proxy();

  std::string address() const;  // "127.0.0.1:port"

  // From now on each piece of bytes arrives this much later.
  void SetDelay(std::chrono::milliseconds delay) { delay_ms_ = delay.count(); }
  // No piece is larger than this.
  void SetPieces(int64_t bytes) { piece_bytes_ = bytes; }
  // One piece in `one_in` gets lost, as it looks above TCP: it and all behind it come 200 ms
  // later, the least that Linux waits before it sends again. 0: none.
  void SetLoss(int64_t one_in) { lost_one_in_ = one_in; }
  // Down no faster than this; 0: as fast as it goes.
  void SetRate(int64_t bytes_per_second) { rate_ = bytes_per_second; }
  // Nothing passes and no connection is opened until Heal(); connections stay open. What was
  // underway is kept, as TCP would.
  void Cut() { cut_ = true; }
  void Heal() { cut_ = false; }
  // Resets every connection.
  void BreakAll() { ++break_requests_; }
  // One bit of the bytes down is flipped about every `every_bytes`, `times` times.
  void FlipBits(int64_t every_bytes, int64_t times);

  int64_t flips_left() const { return flips_left_; }
  int64_t connections() const { return accepted_; }
  int64_t bytes_down() const { return bytes_down_; }

 private:
  struct Connection;
  void Loop();
  void Accept();
  void Damage(std::vector<char>* bytes);

  const std::string target_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int64_t> delay_ms_{0}, piece_bytes_{1 << 20}, lost_one_in_{0}, rate_{0};
  std::atomic<bool> cut_{false}, stop_{false};
  std::atomic<int64_t> break_requests_{0};
  std::atomic<int64_t> flip_every_{0}, flips_left_{0};
  std::atomic<int64_t> accepted_{0}, bytes_down_{0};
  int64_t until_flip_ = 0, pieces_ = 0;
  std::vector<std::unique_ptr<Connection>> connections_;  // of the loop's thread
  std::thread thread_;
};

}  // namespace hetero::testing
