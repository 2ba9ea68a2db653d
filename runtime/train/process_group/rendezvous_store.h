#pragma once

#include <torch/torch.h>

#include <memory>
#include <stop_token>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "base/clock.h"
#include "runtime/train/process_group/key_value_store.h"

namespace hetero::train {

// The job's KeyValueStore as LibTorch's store, used only while a process group forms. Keys carry
// `prefix`, so generations never see each other's. An error of the store below, a time-out, and a
// requested `stop` are thrown as c10::Error, the way LibTorch expects it. As safe from threads as
// the KeyValueStore below.
class RendezvousStore : public c10d::Store {
 public:
  RendezvousStore(std::shared_ptr<KeyValueStore> store, std::string prefix, base::Clock& clock,
                  std::stop_token stop, std::chrono::milliseconds timeout);

  c10::intrusive_ptr<c10d::Store> clone() override;
  using c10d::Store::compareSet;
  using c10d::Store::set;
  void set(const std::string& key, const std::vector<uint8_t>& value) override;
  std::vector<uint8_t> get(const std::string& key) override;
  std::vector<uint8_t> compareSet(const std::string& key, const std::vector<uint8_t>& expected,
                                  const std::vector<uint8_t>& desired) override;
  int64_t add(const std::string& key, int64_t value) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  int64_t getNumKeys() override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;

 private:
  std::string Prefixed(const std::string& key) const { return prefix_ + key; }
  std::vector<std::string> Prefixed(const std::vector<std::string>& keys) const;

  std::shared_ptr<KeyValueStore> store_;
  std::string prefix_;
  base::Clock& clock_;
  std::stop_token stop_;
};

}  // namespace hetero::train
