#include "runtime/process/consumer.h"

#include <memory>

#include "base/status_macros.h"

namespace hetero::process {
namespace {

absl::Status Consume(RankSession& session, base::Clock& clock) {
  RankReport& report = session.report();
  report.OnStart();
  feed::BatchStream& batches = session.BatchesFrom(0);
  base::Instant last = clock.Now();
  while (true) {
    absl::StatusOr<std::unique_ptr<feed::Batch>> batch = batches.Next(session.stop_token());
    if (absl::IsOutOfRange(batch.status())) return absl::OkStatus();
    HETERO_RETURN_IF_ERROR(batch.status());
    session.OnBatch(**batch);
    if ((*batch)->ticket.split != job::Split::kTrain) continue;
    const base::Instant now = clock.Now();
    report.OnStep((*batch)->ticket.step + 1, (*batch)->count(), 0, base::ToSeconds(now - last),
                  /*has_loss=*/false);
    last = now;
  }
}

}  // namespace

absl::Status RunConsumer(RankSession::Options options, base::Clock& clock, std::stop_token stop) {
  absl::StatusOr<std::unique_ptr<RankSession>> session =
      RankSession::Join(std::move(options), clock, std::move(stop));
  if (!session.ok()) {
    return absl::IsCancelled(session.status()) ? absl::OkStatus() : session.status();
  }
  return (*session)->Finish(Consume(**session, clock));
}

}  // namespace hetero::process
