#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/storage/http/persistent_client.h"
#include "runtime/storage/store.h"

namespace hetero::storage {

// "bytes 0-99/1234"; size -1 for "*".
struct ContentRange {
  int64_t first = 0;
  int64_t last = 0;
  int64_t size = -1;
};
std::optional<ContentRange> ParseContentRange(std::string_view text);

// "bytes=0-99".
std::string RangeHeader(int64_t offset, int64_t length);

// Whether `response` brought exactly the bytes that were asked for, of exactly this object: status,
// Content-Range, length and version. `judge` is asked about other statuses, `version` which version
// a reply is of ("" where it does not say).
Judgement JudgeRange(const HttpResponse& response, const Object& object, int64_t offset,
                     int64_t length, const std::function<Judgement(const HttpResponse&)>& judge,
                     const std::string& version);

// The same of a reply to a request for all of an object, whatever its size: a 200 whose body, at
// most `limit` bytes, is in HttpResponse::body. kOutOfRange: it has more.
Judgement JudgeWhole(const HttpResponse& response, int64_t limit,
                     const std::function<Judgement(const HttpResponse&)>& judge);

}  // namespace hetero::storage
