#include "base/refused_peers.h"

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"

namespace hetero::base {
namespace {

struct Complaints {
  Mutex mutex;
  RefusalThrottle throttle ABSL_GUARDED_BY(mutex);
};

}  // namespace

RefusalThrottle::Decision AdmitComplaint(const std::string& kind) {
  static Complaints& complaints = *new Complaints;  // gRPC logs until the process ends
  const MutexLock lock(complaints.mutex);
  return complaints.throttle.Admit(kind, Clock::Real().Now());
}

void ReportRefusedPeer(const std::string& who, const std::string& why) {
  const auto [tell, untold] = AdmitComplaint(who + '\n' + why);
  if (tell) log::Warning("peer refused", {{"peer", who}, {"reason", why}, {"before", untold}});
}

}  // namespace hetero::base
