#include <stop_token>

#include "base/fake_clock.h"
#include "base/metrics.h"
#include "operator/kube/line_framer.h"
#include "operator/kube/watcher.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/operator/kube/instant_clock.h"

// An API server's replies to a list and to a watch: their bytes come in pieces, the framer cuts
// them into lines, the client makes events of these and the watcher acts on them.
namespace hetero::kube {
namespace {

constexpr size_t kLongestLine = 4096;

// What LineFramer's contract says of a whole reply; false: it has a line that is too long.
bool NaiveLines(std::string_view bytes, size_t longest, std::vector<std::string>* lines) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    std::string line(bytes.substr(0, end));
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    if (line.ends_with('\r')) line.pop_back();
    if (line.size() > longest) return false;
    if (!line.empty()) lines->push_back(std::move(line));
  }
  return true;
}

absl::Status FeedInPieces(std::string_view bytes, size_t piece, LineFramer& framer,
                          const LineFramer::OnLine& on_line) {
  while (!bytes.empty() && !framer.stopped()) {
    const absl::Status status = framer.Feed(bytes.substr(0, piece), on_line);
    if (!status.ok()) return status;
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  return framer.End(on_line);
}

void CheckFramer(std::string_view bytes, size_t piece, size_t longest) {
  std::vector<std::string> expected;
  const bool fits = NaiveLines(bytes, longest, &expected);
  std::vector<std::string> lines;
  LineFramer framer(longest);
  const absl::Status status = FeedInPieces(bytes, piece, framer, [&](std::string_view line) {
    lines.emplace_back(line);
    return true;
  });
  fuzz::Require(status.ok() == fits,
                fits ? "lines within the limit are refused" : "a line above the limit is accepted");
  fuzz::Require(lines == expected, "other lines than those of the reply");
}

// Replies with the input's lists and watches, then asks the watcher to stop.
class ScriptedServer : public Transport {
 public:
  ScriptedServer(fuzz::Input input, InstantClock& clock) : input_(input), clock_(clock) {}

  std::stop_token stop() const { return stop_.get_token(); }

  absl::StatusOr<Response> Send(const Request&, base::Duration, std::stop_token) override {
    if (Over()) return absl::CancelledError("stopped");
    Response response;
    response.status = Status();
    response.body = Body();
    return response;
  }
  absl::StatusOr<Response> Stream(const Request&, base::Duration, base::Duration,
                                  const OnLine& on_line, std::stop_token) override {
    if (Over()) return absl::CancelledError("stopped");
    Response response;
    response.status = Status();
    const size_t piece = size_t{1} + input_.Byte();
    clock_.Advance(std::chrono::milliseconds(input_.Short()));
    const std::string body = Body();
    if (response.status != 200) {
      response.body = body;
      return response;
    }
    LineFramer framer(kLongestLine);
    const absl::Status status = FeedInPieces(body, piece, framer, on_line);
    if (!status.ok()) return status;
    return response;
  }

 private:
  bool Over() {
    if (input_.empty() || ++calls_ > 64) stop_.request_stop();
    return stop_.stop_requested();
  }
  int Status() {
    constexpr int kCodes[] = {200, 200, 200, 410, 429, 500, 403, 400};
    return kCodes[input_.Byte() % std::size(kCodes)];
  }
  std::string Body() { return input_.Text(input_.Short()); }

  fuzz::Input input_;
  InstantClock& clock_;
  std::stop_source stop_;
  int calls_ = 0;
};

// Between the beginning and the end of a list nothing is removed, and every list that ends began.
class Listener {
 public:
  Watcher::Handler Handler() {
    return {.list_begins = [this] { listing_ = true; },
            .apply = [](nlohmann::json object) { Check(object); },
            .remove =
                [this](nlohmann::json object) {
                  fuzz::Require(!listing_, "an object is removed while listing");
                  Check(object);
                },
            .list_ends =
                [this] {
                  fuzz::Require(listing_, "a list ends that never began");
                  listing_ = false;
                }};
  }

 private:
  static void Check(const nlohmann::json& object) {
    fuzz::Require(object.is_object(), "an object that is none");
    ObjectKey::Of(object);
  }

  bool listing_ = false;
};

void RunWatcher(const fuzz::Input& input) {
  InstantClock clock;
  metrics::Registry registry;
  ScriptedServer server(input, clock);
  Client client(server, clock, registry, {.qps = 0});
  Listener listener;
  Watcher watcher(client, clock, registry, {.resource = kPods, .page_size = 2}, listener.Handler(),
                  [] { return 0.0; });
  watcher.Run(server.stop());
}

}  // namespace
}  // namespace hetero::kube

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hetero;
  fuzz::Silence();
  if (size < 2) return 0;
  kube::CheckFramer(fuzz::TextOf(data + 2, size - 2), size_t{1} + data[0], data[1]);
  kube::RunWatcher(fuzz::Input(data, size));
  return 0;
}
