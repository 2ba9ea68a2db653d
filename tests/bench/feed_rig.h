#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "runtime/feed/batch_producer.h"
#include "runtime/feed/ticket_client.h"
#include "runtime/feed/worker_server.h"

// Real CPU-worker servers and a real trainer's client in one process, with producers whose cost is
// given, and training that is given too.
namespace hetero::bench {

// Samples of 4 KB; `work` is called for each.
class CostlyProducer : public feed::BatchProducer {
 public:
  explicit CostlyProducer(std::function<void()> work) : work_(std::move(work)) {}
  absl::Status Check(const feed::Ticket&) const override { return absl::OkStatus(); }
  feed::Batch Allocate(const feed::Ticket& ticket, const feed::SlabSource& slabs) const override {
    const auto count = static_cast<size_t>(ticket.slots.count);
    feed::Batch batch;
    batch.ticket = ticket;
    batch.shape = {32, 32, 4};
    batch.images = slabs(kBytes * ticket.slots.count);
    batch.labels.resize(count);
    batch.sample_ids.resize(count);
    batch.crcs.resize(count);
    return batch;
  }
  absl::Status Produce(feed::Batch* batch, int64_t index,
                       std::optional<feed::BadSample>* bad) const override {
    bad->reset();
    work_();
    uint8_t* out = batch->images.data() + index * kBytes;
    std::fill(out, out + kBytes, static_cast<uint8_t>(index));
    batch->crcs[static_cast<size_t>(index)] = base::Crc32c(out, kBytes);
    return absl::OkStatus();
  }
  int64_t sample_bytes() const override { return kBytes; }

 private:
  static constexpr int64_t kBytes = 4096;
  std::function<void()> work_;
};

class FeedRig {
 public:
  struct Options {
    std::vector<std::function<void()>> workers;  // one thread each; called for each sample
    std::function<void()> local;                 // the own cores; empty: they do nothing
    feed::LocalShare share = feed::LocalShare::kLastResort;
    int local_threads = 1;
    int64_t batch = 4;
  };
  explicit FeedRig(const Options& options)
      : schedule_({.training = {.samples = int64_t{1} << 30,
                                .batch_size_per_worker = options.batch,
                                .ranks = 1,
                                .epochs = 1}},
                  0),
        local_(options.local ? options.local : [] {}) {
    std::string name = (std::filesystem::temp_directory_path() / "hetero-bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    folder_ = name;
    std::vector<feed::WorkerAddress> roster;
    for (size_t i = 0; i < options.workers.size(); ++i) {
      const std::string worker = "cpu-" + std::to_string(i);
      producers_.push_back(std::make_unique<CostlyProducer>(options.workers[i]));
      auto server = feed::WorkerServer::Start({.listen_address = "unix:" + folder_ + "/" + worker,
                                               .tls = {.plain_text = true},
                                               .name = worker,
                                               .threads = 1},
                                              base::Clock::Real());
      if (!server.ok()) std::abort();
      (*server)->SetProducer(producers_.back().get());
      servers_.push_back(*std::move(server));
      roster.push_back({worker, "unix:" + folder_ + "/" + worker, 1});
    }
    client_ = feed::TicketClient::Start({.max_window = 16,
                                         .local_threads = options.local ? options.local_threads : 0,
                                         .local_share = options.share,
                                         .tls = {.plain_text = true}},
                                        &schedule_, &local_, base::Clock::Real());
    client_->SetRoster(roster);
  }
  ~FeedRig() {
    client_.reset();
    servers_.clear();
    std::filesystem::remove_all(folder_);
  }

  // The next batch, waited for; aborts when there is none.
  std::unique_ptr<feed::Batch> Next() {
    auto batch = client_->Next({});
    if (!batch.ok()) std::abort();
    return *std::move(batch);
  }

 private:
  job::Schedule schedule_;
  CostlyProducer local_;
  std::string folder_;
  std::vector<std::unique_ptr<CostlyProducer>> producers_;
  std::vector<std::unique_ptr<feed::WorkerServer>> servers_;
  std::unique_ptr<feed::TicketClient> client_;
};

}  // namespace hetero::bench
