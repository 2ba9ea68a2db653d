#pragma once

#include <map>
#include <string>

#include "runtime/agent/rank_feed.h"
#include "runtime/process/rank_session.h"

namespace hetero::agent {

// The feed of a rank of the job.
class SessionFeed : public RankFeed {
 public:
  // `session` outlives it.
  explicit SessionFeed(process::RankSession& session) : session_(session) {}

  const api::HeteroTrainingJob& job() const override { return session_.job(); }
  int32_t rank() const override { return session_.rank(); }
  const job::Schedule& schedule() const override { return session_.schedule(); }
  const feed::SampleProducer& producer() const override { return session_.producer(); }
  int64_t byte_budget() const override { return session_.byte_budget(); }
  void UseMemory(feed::SlabSource slabs, bool moves_shared) override {
    session_.UseMemory(std::move(slabs), moves_shared);
  }

  feed::BatchStream& TrainingFrom(int64_t step) override;
  Validation OpenValidation() override;

  void OnPosition(const Position& position) override;
  void OnBatch(const feed::Batch& batch) override { session_.OnBatch(batch); }
  void OnStep(int64_t step, int64_t samples, double seconds) override;
  void OnReported(const std::map<std::string, double>& values, int64_t step) override;

  std::stop_token stop_token() const override { return session_.stop_token(); }

 private:
  process::RankSession& session_;
  bool started_ = false;
};

}  // namespace hetero::agent
