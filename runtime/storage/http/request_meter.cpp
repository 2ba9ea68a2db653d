#include "runtime/storage/http/request_meter.h"

#include <atomic>

namespace hetero::storage {
namespace {

constinit std::atomic<int64_t> g_requests = 0;
constinit std::atomic<int64_t> g_retries = 0;
constinit std::atomic<int64_t> g_bytes = 0;
constinit std::atomic<double> g_dollars = 0;
constinit std::atomic<int64_t> g_throttled = 0;
constinit std::atomic<double> g_seconds = 0;

}  // namespace

void RequestMeter::Count(const HttpRequest& request, const absl::StatusOr<HttpResponse>& response,
                         bool again, base::Duration time) const {
  const int64_t bytes =
      response.ok() ? response->received + static_cast<int64_t>(response->body.size()) : 0;
  g_requests.fetch_add(1, std::memory_order_relaxed);
  if (again) g_retries.fetch_add(1, std::memory_order_relaxed);
  g_bytes.fetch_add(bytes, std::memory_order_relaxed);
  g_seconds.fetch_add(base::ToSeconds(time), std::memory_order_relaxed);
  if (response.ok() && (response->status == 429 || response->status == 503)) {
    g_throttled.fetch_add(1, std::memory_order_relaxed);
  }
  double dollars = prices_.per_byte * static_cast<double>(bytes);
  const bool answered = response.ok() && response->status < 500;
  if (answered && (request.method == "GET" || request.method == "HEAD")) {
    dollars += prices_.per_request;
  }
  if (dollars > 0) g_dollars.fetch_add(dollars, std::memory_order_relaxed);
}

RequestFigures RequestMeter::OfProcess() {
  return {.requests = g_requests.load(std::memory_order_relaxed),
          .retries = g_retries.load(std::memory_order_relaxed),
          .bytes = g_bytes.load(std::memory_order_relaxed),
          .dollars = g_dollars.load(std::memory_order_relaxed),
          .throttled = g_throttled.load(std::memory_order_relaxed),
          .seconds = g_seconds.load(std::memory_order_relaxed)};
}

}  // namespace hetero::storage
