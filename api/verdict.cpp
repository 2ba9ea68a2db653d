#include <algorithm>
#include <array>

#include "api/job_status.h"
#include "api/status_codec.h"
#include "base/ends_of_text.h"

namespace hetero::api {
namespace {

using nlohmann::json;

// The kubelet keeps 4,096 bytes of a container's termination message.
constexpr size_t kMaxVerdictBytes = 3072;
constexpr char kSucceeded[] = "Succeeded";
constexpr char kFailed[] = "Failed";

std::string Encode(const Verdict& verdict) {
  json object = {{"state", verdict.succeeded ? kSucceeded : kFailed}};
  if (!verdict.message.empty()) object["message"] = verdict.message;
  json result = EncodeStatusObject(verdict.result);
  if (!result.empty()) object["result"] = std::move(result);
  json failure = EncodeStatusObject(verdict.failure);
  if (!failure.empty()) object["failure"] = std::move(failure);
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Words go before addresses, and the longest words first; false: there is nothing left to cut.
bool CutLongest(Verdict& verdict, size_t excess) {
  std::string* longest =
      std::max({&verdict.message, &verdict.failure.message, &verdict.failure.reason},
               [](const std::string* a, const std::string* b) { return a->size() < b->size(); });
  if (!longest->empty()) {
    // A byte takes at most six in JSON (\u0000), so this never cuts more than needed.
    const size_t left = longest->size() - std::clamp<size_t>(excess / 6, 1, longest->size());
    *longest =
        verdict.succeeded ? Shortened(std::move(*longest), left) : base::EndsOfText(*longest, left);
    return true;
  }
  for (std::string* uri : {&verdict.result.checkpoint_uri, &verdict.result.report_uri}) {
    if (uri->empty()) continue;
    uri->clear();
    return true;
  }
  return false;
}

}  // namespace

std::string VerdictToJson(const Verdict& verdict) {
  Verdict shortened = verdict;
  std::string text = Encode(shortened);
  while (text.size() > kMaxVerdictBytes && CutLongest(shortened, text.size() - kMaxVerdictBytes)) {
    text = Encode(shortened);
  }
  return text;
}

std::optional<Verdict> VerdictFromJson(std::string_view text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return std::nullopt;
  const json state = object.value("state", json());
  const json message = object.value("message", json(""));
  if (!message.is_string() || (state != kSucceeded && state != kFailed)) return std::nullopt;
  Verdict verdict;
  verdict.succeeded = state == kSucceeded;
  verdict.message = message.get_ref<const std::string&>();
  const auto read = [&object](const char* name, auto& part) {
    const auto found = object.find(name);
    return found == object.end() || found->is_null() || DecodeStatusObject(*found, name, part).ok();
  };
  if (!read("result", verdict.result) || !read("failure", verdict.failure)) return std::nullopt;
  return verdict;
}

}  // namespace hetero::api
