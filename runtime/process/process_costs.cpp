#include "runtime/process/process_costs.h"

#include "base/process_usage.h"
#include "runtime/storage/open_store.h"

namespace hetero::process {
namespace {

void Set(const base::ProcessUsage& usage, const storage::RequestFigures& figures,
         v1::Counters& counters) {
  counters.set_cpu_seconds(usage.cpu_seconds);
  counters.set_peak_rss_bytes(usage.peak_resident_bytes);
  counters.set_storage_requests(figures.requests);
  counters.set_storage_retries(figures.retries);
  counters.set_storage_bytes(figures.bytes);
  counters.set_storage_dollars(figures.dollars);
  counters.set_storage_throttled(figures.throttled);
  counters.set_storage_seconds(figures.seconds);
}

}  // namespace

void SetProcessCosts(v1::Counters& counters) {
  Set(base::ReadProcessUsage(), storage::RequestsOfProcess(), counters);
}

void ClearProcessCosts(v1::Counters& counters) { Set({}, {}, counters); }

}  // namespace hetero::process
