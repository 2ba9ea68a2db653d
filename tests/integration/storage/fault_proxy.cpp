#include "tests/integration/storage/fault_proxy.h"

#include <utility>

namespace hetero::storage {
namespace {

std::string Head(const HttpResponse& response, const std::string& length) {
  std::string head = "HTTP/1.1 " + std::to_string(response.status) + " Passed\r\n";
  for (const auto& [name, value] : response.headers) {
    if (name != "content-length" && name != "transfer-encoding" && name != "connection") {
      head.append(name).append(": ").append(value).append("\r\n");
    }
  }
  return head + "Content-Length: " + length + "\r\n\r\n";
}

}  // namespace

FaultProxy::FaultProxy(std::string server_url, std::function<Fault(int number)> choose)
    : target_(std::move(server_url)),
      choose_(std::move(choose)),
      server_([this](const auto& request, auto& connection) { Serve(request, connection); },
              {.tls = false}) {}

void FaultProxy::Serve(const kube::ScriptedServer::Request& request,
                       kube::ScriptedServer::Connection& connection) {
  const Fault fault = choose_(number_++);
  if (fault == Fault::kSlowDown) {
    return connection.Respond(503,
                              "<Error><Code>SlowDown</Code><Message>Reduce your request rate."
                              "</Message></Error>",
                              "x-amz-request-id: PROXY\r\n");
  }
  if (fault == Fault::kServerError) return connection.Respond(500, "");
  if (fault == Fault::kNoReply) return connection.Close();
  HttpRequest passed{.method = request.method,
                     .url = target_ + request.target,
                     .body = request.body,
                     .most_body_bytes = 64 << 20};
  for (const auto& [name, value] : request.headers) {
    if (name != "content-length") passed.headers.emplace_back(name, value);
  }
  const absl::StatusOr<HttpResponse> response = client_.Send(passed);
  if (!response.ok()) return connection.Close();
  if (request.method == "HEAD") {
    return connection.Write(Head(*response, response->Header("content-length")));
  }
  const std::string& body = response->body;
  const std::string half = body.substr(0, body.size() / 2);
  HttpResponse reply = *response;
  switch (fault) {
    case Fault::kNone:
    case Fault::kSlowDown:
    case Fault::kServerError:
    case Fault::kNoReply:
      return connection.Write(Head(reply, std::to_string(body.size())) + body);
    case Fault::kCutBody:
      connection.Write(Head(reply, std::to_string(body.size())) + half);
      return connection.Close();
    case Fault::kLessBody:
      return connection.Write(Head(reply, std::to_string(half.size())) + half);
    case Fault::kMoreBody:
      return connection.Write(Head(reply, std::to_string(body.size() + 5)) + body + "more!");
    case Fault::kOtherRange:
      if (reply.headers.count("content-range") != 0) {
        reply.headers["content-range"] =
            "bytes 0-" + std::to_string(body.size() - 1) + "/" +
            response->Header("content-range")
                .substr(response->Header("content-range").find('/') + 1);
      }
      return connection.Write(Head(reply, std::to_string(body.size())) + body);
    case Fault::kSilence:
      connection.Write(Head(reply, std::to_string(body.size())) + half);
      return connection.AwaitClose();
  }
}

}  // namespace hetero::storage
