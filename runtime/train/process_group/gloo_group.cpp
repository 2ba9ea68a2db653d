#include "runtime/train/process_group/gloo_group.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "runtime/train/process_group/exceptions.h"
#include "runtime/train/process_group/group_sockets.h"
#include "runtime/train/process_group/rendezvous_store.h"

namespace hetero::train {
namespace {

constexpr std::chrono::milliseconds kMeetTimeout = std::chrono::seconds(60);
// A collective waits for the slowest rank's data, which may take any time; a lost rank ends it by
// its connection, or by Cut(). This is only the last resort.
constexpr std::chrono::milliseconds kCollectiveTimeout = std::chrono::hours(6);

using Transport = std::shared_ptr<::gloo::transport::Device>;

// A process group of some of the ranks.
struct Ranks {
  std::string name;
  int32_t rank = 0;  // in it
  int32_t count = 1;
};

bool IsLoopback(const std::string& host) {
  return host.starts_with("127.") || host == "localhost" || host == "::1";
}

// Exercises the group, so that no later step needs the store.
void CountRanks(c10d::ProcessGroup& group, const std::string& name, torch::Device place) {
  std::vector<torch::Tensor> ones = {torch::ones({1}, torch::device(place).dtype(torch::kInt64))};
  group.allreduce(ones)->wait();
  const auto ranks = ones[0].item<int64_t>();
  TORCH_CHECK(ranks == group.getSize(), "process group ", name, " counts ", ranks,
              " ranks instead of ", group.getSize());
}

// The device's own group for gradients; null when it has none.
c10::intrusive_ptr<c10d::ProcessGroup> FormDeviceGroup(const c10::intrusive_ptr<c10d::Store>& store,
                                                       const Ranks& ranks, Device* device) {
  if (device == nullptr) return {};
  const auto backend = device->ConnectGradients(
      c10::make_intrusive<c10d::PrefixStore>("device-" + ranks.name, store), ranks.rank,
      ranks.count);
  if (!backend) return {};
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store, ranks.rank, ranks.count);
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::NCCL);
  group->setBackend(device->place().type(), c10d::ProcessGroup::BackendType::NCCL, backend);
  group->setGroupName("device");
  CountRanks(*group, "device", device->place());
  return group;
}

c10::intrusive_ptr<c10d::ProcessGroup> FormGroup(const Ranks& ranks, const Transport& device,
                                                 const c10::intrusive_ptr<c10d::Store>& store,
                                                 std::chrono::milliseconds connect_timeout,
                                                 int threads) {
  auto gloo_options = c10d::ProcessGroupGloo::Options::create(connect_timeout);
  gloo_options->devices = {device};
  gloo_options->threads = threads;
  auto backend = c10::make_intrusive<c10d::ProcessGroupGloo>(
      c10::make_intrusive<c10d::PrefixStore>(ranks.name, store), ranks.rank, ranks.count,
      gloo_options);
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store, ranks.rank, ranks.count);
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, backend);
  group->setGroupName(ranks.name);

  CountRanks(*group, ranks.name, torch::kCPU);
  backend->setTimeout(kCollectiveTimeout);
  return group;
}

}  // namespace

GlooGroup::GlooGroup(const Options& options, std::shared_ptr<KeyValueStore> store,
                     base::Clock& clock, std::stop_token stop)
    : rank_(options.rank),
      world_size_(options.world_size),
      place_(PipelinePlace::Of(options.rank, options.world_size, options.partitions)),
      device_(options.device) {
  IgnoreBrokenPipes();
  auto rendezvous = c10::make_intrusive<RendezvousStore>(
      std::move(store), absl::StrCat("generation/", options.generation, "/"), clock, stop,
      kMeetTimeout);

  Transport device;
  const std::string listener = ListenerOpenedBy(
      [&] { device = c10d::ProcessGroupGloo::createDeviceForHostname(options.host); });
  if (listener.empty()) {
    log::Warning(
        "cannot tell which port the process group listens on; a lost peer ends a "
        "collective only when its connection breaks");
  }
  rendezvous->set(absl::StrCat("listener/", options.rank), listener);
  for (int32_t rank = 0; rank < options.world_size; ++rank) {
    std::string other = rendezvous->get_to_str(absl::StrCat("listener/", rank));
    if (!other.empty()) listeners_.insert(std::move(other));
  }
  const auto form = [&](const Ranks& ranks, int threads) {
    return FormGroup(ranks, device, rendezvous, options.connect_timeout, threads);
  };
  if (place_.pipelines > 1) {
    const Ranks ranks{place_.partitioned() ? absl::StrCat("gradients-", place_.stage) : "gradients",
                      place_.pipeline, place_.pipelines};
    gradients_ = FormDeviceGroup(rendezvous, ranks, options.device);
    // Between hosts two buckets at once, PyTorch's default, hide each other's latency. On one host
    // there is none, and they only take turns in the caches (docs/performance.md).
    if (!gradients_) gradients_ = form(ranks, /*threads=*/IsLoopback(options.host) ? 1 : 2);
  }
  if (place_.partitioned()) {
    pipeline_ = form({absl::StrCat("pipeline-", place_.pipeline), place_.stage, place_.partitions},
                     /*threads=*/2);
  }
  control_ = form({"control", rank_, world_size_}, /*threads=*/1);
}

void GlooGroup::SumControl(torch::Tensor& values) {
  std::vector<torch::Tensor> tensors = {values};
  Collectively([&] { control_->allreduce(tensors)->wait(); });
}

void GlooGroup::BroadcastControl(torch::Tensor& values, int32_t root) {
  std::vector<torch::Tensor> tensors = {values};
  c10d::BroadcastOptions options;
  options.rootRank = root;
  Collectively([&] { control_->broadcast(tensors, options)->wait(); });
}

std::function<void()> GlooGroup::Cutter() const {
  return [device = device_, listeners = listeners_, rank = rank_] {
    if (device != nullptr) device->CutGradients();
    const int cut = CutConnections(listeners);
    log::Info("cut the connections of the process group", {{"rank", rank}, {"connections", cut}});
  };
}

}  // namespace hetero::train
