#include "tests/bench/operator_scale/slow_webhook.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <fstream>
#include <iterator>

#include "absl/strings/escaping.h"
#include "tests/integration/operator/support/control_plane.h"

namespace hetero::bench {
namespace {

using testing::ControlPlane;
using testing::json;

const kube::Resource kWebhooks{"admissionregistration.k8s.io", "v1",
                               "validatingwebhookconfigurations", false};
constexpr char kHookName[] = "slow";
// The API server keeps its connections, each of which takes a thread here.
constexpr size_t kThreads = 500;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

json Configuration(const std::string& name_space, int port, const std::string& ca_pem) {
  const json hook = {
      {"name", "slow.hetero.example"},
      {"clientConfig",
       {{"url", "https://127.0.0.1:" + std::to_string(port) + "/"},
        {"caBundle", absl::Base64Escape(ca_pem)}}},
      {"rules", json::array({{{"apiGroups", {""}},
                              {"apiVersions", {"v1"}},
                              {"operations", {"CREATE"}},
                              {"resources", {"pods"}}}})},
      {"namespaceSelector", {{"matchLabels", {{"kubernetes.io/metadata.name", name_space}}}}},
      {"sideEffects", "None"},
      {"timeoutSeconds", 30},
      {"admissionReviewVersions", {"v1"}}};
  return {{"apiVersion", "admissionregistration.k8s.io/v1"},
          {"kind", "ValidatingWebhookConfiguration"},
          {"metadata", {{"name", kHookName}}},
          {"webhooks", json::array({hook})}};
}

}  // namespace

struct SlowWebhook::Server {
  explicit Server(const testing::ApiProxy::Options& keys)
      : http(keys.certificate_file.c_str(), keys.key_file.c_str()) {
    http.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  }
  httplib::SSLServer http;
};

SlowWebhook::SlowWebhook(const std::string& name_space) {
  ControlPlane& plane = ControlPlane::Get();
  const testing::ApiProxy::Options keys = plane.ProxyOptions();
  server_ = std::make_unique<Server>(keys);
  server_->http.Post("/", [this](const httplib::Request& request, httplib::Response& response) {
    ++calls_;
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms_));
    const json review = json::parse(request.body, nullptr, false);
    const json answer = {{"apiVersion", "admission.k8s.io/v1"},
                         {"kind", "AdmissionReview"},
                         {"response", {{"uid", review["request"]["uid"]}, {"allowed", true}}}};
    response.set_content(answer.dump(), "application/json");
  });
  const int port = server_->http.bind_to_any_port("127.0.0.1");
  thread_ = std::jthread([this] { server_->http.listen_after_bind(); });
  const std::string folder = keys.certificate_file.substr(0, keys.certificate_file.rfind('/'));
  const auto created = plane.client().Create(
      kWebhooks, "", Configuration(name_space, port, ReadFile(folder + "/ca.crt")));
  EXPECT_TRUE(created.ok()) << created.status().message();
}

SlowWebhook::~SlowWebhook() {
  const absl::Status deleted = ControlPlane::Get().client().Delete(kWebhooks, {"", kHookName}, {});
  EXPECT_TRUE(deleted.ok()) << deleted.message();
  server_->http.stop();
}

}  // namespace hetero::bench
