#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

namespace hetero::bench {

// A validating webhook that lets every pod of one namespace in, and takes its time. It shows the
// API server's own certificate.
class SlowWebhook {
 public:
  // Registers itself for the namespace; `delay` may be changed at any time.
  explicit SlowWebhook(const std::string& name_space);
  ~SlowWebhook();  // unregisters

  void SetDelay(std::chrono::milliseconds delay) { delay_ms_ = delay.count(); }
  int64_t calls() const { return calls_; }

 private:
  struct Server;
  std::unique_ptr<Server> server_;
  std::atomic<int64_t> delay_ms_ = 0;
  std::atomic<int64_t> calls_ = 0;
  std::jthread thread_;
};

}  // namespace hetero::bench
