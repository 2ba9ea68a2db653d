#include "runtime/head/history_keeper.h"

#include <utility>

#include "base/atomic_file.h"
#include "base/log.h"
#include "base/thread.h"
#include "runtime/head/history_builder.h"
#include "runtime/head/history_codec.h"

namespace hetero::head {

HistoryKeeper::HistoryKeeper(std::string run, std::string file)
    : run_(std::move(run)), file_(std::move(file)) {
  if (file_.empty()) return;
  writer_ = std::jthread([this](std::stop_token stop) { WriteFiles(std::move(stop)); });
}

HistoryKeeper::~HistoryKeeper() = default;

HistoryKeeper::Mark HistoryKeeper::MarkOf(const JobRecord& record) {
  int64_t open = 0;
  int64_t restarts = 0;
  size_t finished = 0;
  for (const Fault& fault : record.faults) open += fault.open();
  int64_t saved = 0;  // disruptions
  for (const Disruption& disruption : record.disruptions) {
    saved += disruption.checkpoint_seconds.has_value();
  }
  for (const auto& [key, member] : record.members) {
    restarts += member.restarts;
    finished += member.finished.has_value();
  }
  return {record.faults.size(),
          open,
          record.disruptions.size(),
          saved,
          record.generation,
          record.members.size(),
          restarts,
          finished,
          record.startup_seconds.has_value(),
          record.evaluations.size(),
          record.script_failures.size(),
          record.checkpoint_uri,
          record.irreproducible,
          record.ended.has_value()};
}

const std::string& HistoryKeeper::Look(const JobRecord& record, Moment now) {
  Mark mark = MarkOf(record);
  if (mark_ == mark && now.steady - made_ < kInterval) return text_;
  mark_ = std::move(mark);
  made_ = now.steady;
  const v1::History history = BuildHistory(record, run_, now);
  text_ = EncodeHistory(history, kMaxHistoryText);
  if (!file_.empty()) {
    const base::MutexLock lock(mutex_);
    unwritten_ = EncodeHistory(history, kMaxHistoryFile);
    changed_.NotifyAll();
  }
  return text_;
}

void HistoryKeeper::WriteFiles(std::stop_token stop) {
  base::SetThreadName("head-history");
  base::MutexLock lock(mutex_);
  const auto there = [this]()
                         ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return unwritten_.has_value(); };
  while (changed_.Wait(mutex_, stop, there)) {
    const std::string text = *std::exchange(unwritten_, std::nullopt);
    lock.Unlock();
    if (const absl::Status written = base::WriteFileAtomically(file_, text); !written.ok()) {
      log::Warning("what the next head has to know could not be written",
                   {{"reason", std::string(written.message())}});
    }
    lock.Lock();
  }
}

}  // namespace hetero::head
