#include "tests/integration/prometheus/prometheus_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/support/paths.h"

namespace hetero::testing {
namespace {

using nlohmann::json;

// One that was free a moment ago.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

std::string Program(const std::string& name) {
  const char* deps = std::getenv("HETERO_PROMETHEUS_DEPS");
  const std::string folder = deps == nullptr ? testing::SourceDir() + "/.deps/prometheus" : deps;
  return absl::StrCat(folder, "/bin/", name);
}

}  // namespace

PrometheusServer::PrometheusServer(const std::string& scrape_configs,
                                   const std::vector<std::string>& rules)
    : port_(FreePort()) {
  const std::string config = folder_.Write(
      "prometheus.yml",
      absl::StrCat("global: {scrape_interval: 500ms, scrape_timeout: 400ms, "
                   "evaluation_interval: 500ms}\n",
                   "rule_files: ", json(rules).dump(), "\nscrape_configs:\n", scrape_configs));
  process_.emplace(std::vector<std::string>{Program("prometheus"), "--config.file=" + config,
                                            "--storage.tsdb.path=" + (folder_ / "data"),
                                            absl::StrCat("--web.listen-address=127.0.0.1:", port_)},
                   folder_ / "log", [this] {
                     const httplib::Result answer =
                         httplib::Client("127.0.0.1", port_).Get("/-/ready");
                     return answer && answer->status == 200;
                   });
}

json PrometheusServer::Ask(const std::string& path, const std::string& expression) const {
  httplib::Params parameters;
  if (!expression.empty()) parameters.emplace("query", expression);
  httplib::Client client("127.0.0.1", port_);
  const httplib::Result answer = client.Get(path, parameters, httplib::Headers());
  if (!answer) {
    ADD_FAILURE() << "no answer to " << path;
    return json::object();
  }
  json body = json::parse(answer->body, nullptr, /*allow_exceptions=*/false);
  if (body.is_discarded() || body["status"] != "success") {
    ADD_FAILURE() << path << " " << expression << ": " << answer->body;
    return json::object();
  }
  return body["data"];
}

json PrometheusServer::Query(const std::string& expression) const {
  return Ask("/api/v1/query", expression).value("result", json::array());
}

std::optional<double> PrometheusServer::Number(const std::string& expression) const {
  const json result = Query(expression);
  double number = 0;
  if (result.size() != 1 || !absl::SimpleAtod(result[0]["value"][1].get<std::string>(), &number)) {
    return std::nullopt;
  }
  return number;
}

json PrometheusServer::Rules() const {
  json rules = json::array();
  for (const json& group : Ask("/api/v1/rules", "").value("groups", json::array())) {
    for (const json& rule : group["rules"]) rules.push_back(rule);
  }
  return rules;
}

std::vector<std::string> PrometheusServer::Firing() const {
  std::vector<std::string> names;
  for (const json& alert : Ask("/api/v1/alerts", "").value("alerts", json::array())) {
    if (alert["state"] == "firing") names.push_back(alert["labels"]["alertname"]);
  }
  return names;
}

PromtoolResult Promtool(const std::string& arguments, const std::string& input) {
  const TemporaryFolder folder;
  const std::string command = absl::StrCat(Program("promtool"), " ", arguments, " <'", input, "' >",
                                           folder / "output", " 2>&1");
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadFileOrDie(folder / "output")};
}

}  // namespace hetero::testing
