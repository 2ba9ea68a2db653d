#include "runtime/agent/session_feed.h"

#include <utility>

namespace hetero::agent {

feed::BatchStream& SessionFeed::TrainingFrom(int64_t step) {
  return session_.BatchesFrom(schedule().IndexOfStep(step));
}

RankFeed::Validation SessionFeed::OpenValidation() {
  process::RankSession::ValidationPass pass = session_.OpenValidation();
  return {.batches = pass.batches, .stream = std::move(pass.stream)};
}

void SessionFeed::OnPosition(const Position& position) {
  if (!std::exchange(started_, true)) session_.report().OnStart();
  session_.report().OnScriptPosition(position.step, position.digest, position.proven);
}

void SessionFeed::OnStep(int64_t step, int64_t samples, double seconds) {
  session_.report().OnStep(step, samples, 0, seconds, /*has_loss=*/false);
}

void SessionFeed::OnReported(const std::map<std::string, double>& values, int64_t step) {
  session_.report().OnReported(values, step);
}

}  // namespace hetero::agent
