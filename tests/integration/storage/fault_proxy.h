#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>

#include "runtime/storage/http/curl_client.h"
#include "tests/integration/kube/scripted_server.h"

namespace hetero::storage {

// An HTTP proxy in front of one server, which does to replies what networks, balancers and busy
// servers do.
class FaultProxy {
 public:
  enum class Fault {
    kNone,
    kSlowDown,     // 503 with S3's code, in the server's stead
    kServerError,  // 500 without a body
    kCutBody,      // the connection ends in the middle of the body
    kLessBody,     // half of the body, with the length of that half
    kMoreBody,     // more bytes than were asked for
    kOtherRange,   // the right number of bytes, said to be from elsewhere
    kSilence,      // half of the body, and then nothing more
    kNoReply,      // the connection ends at once
  };
  static constexpr int kFaults = 9;

  // `choose` says what becomes of the n-th request, from 0 on; it is called by many threads.
  FaultProxy(std::string server_url, std::function<Fault(int number)> choose);

  std::string url() const { return server_.url(); }
  int requests() const { return number_; }

 private:
  void Serve(const kube::ScriptedServer::Request& request,
             kube::ScriptedServer::Connection& connection);

  const std::string target_;
  const std::function<Fault(int number)> choose_;
  std::atomic<int> number_ = 0;
  CurlClient client_;
  kube::ScriptedServer server_;  // last: it ends first
};

}  // namespace hetero::storage
