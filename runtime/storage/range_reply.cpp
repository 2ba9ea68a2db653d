#include "runtime/storage/range_reply.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace hetero::storage {
namespace {

using Verdict = Judgement::Verdict;

constexpr char kRemedy[] = "; put the object back or start a new job";

Judgement Changed(std::string_view how) {
  return {Verdict::kFailed, absl::StatusCode::kFailedPrecondition,
          absl::StrCat("it was changed: ", std::string(how), kRemedy)};
}

// Something on the way, or a server that does not know what it does. It says nothing of the object:
// kDataLoss would be the fault of a sample that is in it.
Judgement Wrong(std::string why) {
  return {Verdict::kAgain, absl::StatusCode::kUnavailable, std::move(why)};
}

bool ReadNumber(std::string_view text, int64_t* number) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos &&
         absl::SimpleAtoi(absl::string_view(text.data(), text.size()), number);
}

}  // namespace

std::optional<ContentRange> ParseContentRange(std::string_view text) {
  absl::string_view rest(text.data(), text.size());
  if (!absl::ConsumePrefix(&rest, "bytes ")) return std::nullopt;
  const size_t dash = rest.find('-');
  const size_t slash = rest.find('/');
  if (dash == absl::string_view::npos || slash == absl::string_view::npos || slash < dash) {
    return std::nullopt;
  }
  ContentRange range;
  const absl::string_view size = rest.substr(slash + 1);
  const auto number = [](absl::string_view part, int64_t* value) {
    return ReadNumber({part.data(), part.size()}, value);
  };
  if (!number(rest.substr(0, dash), &range.first) ||
      !number(rest.substr(dash + 1, slash - dash - 1), &range.last) || range.last < range.first ||
      (size != "*" && !number(size, &range.size))) {
    return std::nullopt;
  }
  return range;
}

std::string RangeHeader(int64_t offset, int64_t length) {
  return absl::StrCat("bytes=", offset, "-", offset + length - 1);
}

Judgement JudgeRange(const HttpResponse& response, const Object& object, int64_t offset,
                     int64_t length, const std::function<Judgement(const HttpResponse&)>& judge,
                     const std::string& version) {
  if (response.status == 412) return Changed("it has another version now");
  if (response.status == 416) return Changed("it has fewer bytes now");
  if (response.status != 200 && response.status != 206) {
    Judgement judgement = judge(response);
    if (judgement.verdict == Verdict::kDone) {
      judgement = {Verdict::kFailed, absl::StatusCode::kInternal,
                   absl::StrCat("HTTP ", response.status, " in answer to a range")};
    }
    return judgement;
  }
  if (!object.version.empty() && !version.empty() && version != object.version) {
    return Changed(absl::StrCat("it was ", object.version, " and is ", version));
  }
  if (response.status == 200) {
    // Right when all of it was asked for.
    const bool whole = offset == 0 && length == object.size;
    if (whole && response.overflow) return Changed("it has more bytes now");
    if (!whole) {
      return {Verdict::kFailed, absl::StatusCode::kUnimplemented,
              "the server sends whole objects where a part was asked for; use one that serves "
              "ranges"};
    }
  } else {
    const std::optional<ContentRange> range = ParseContentRange(response.Header("content-range"));
    if (!range.has_value()) return Wrong("a part came without its Content-Range");
    if (range->size >= 0 && range->size != object.size) {
      return Changed(absl::StrCat("it had ", object.size, " bytes and has ", range->size));
    }
    if (range->first != offset || range->last != offset + length - 1) {
      return Wrong(absl::StrCat("bytes ", range->first, " to ", range->last, " came"));
    }
  }
  if (response.overflow) return Wrong("more bytes came");
  if (response.received != length) return Wrong(absl::StrCat("only ", response.received, " came"));
  return {};
}

Judgement JudgeWhole(const HttpResponse& response, int64_t limit,
                     const std::function<Judgement(const HttpResponse&)>& judge) {
  if (response.status != 200) {
    Judgement judgement = judge(response);
    if (judgement.verdict != Verdict::kDone) return judgement;
    return {Verdict::kFailed, absl::StatusCode::kInternal,
            absl::StrCat("HTTP ", response.status, " in answer to a request for all of it")};
  }
  if (response.overflow) {
    return {Verdict::kFailed, absl::StatusCode::kOutOfRange,
            absl::StrCat("it has more than ", limit, " bytes")};
  }
  int64_t length = 0;
  if (ReadNumber(response.Header("content-length"), &length) &&
      length != static_cast<int64_t>(response.body.size())) {
    return Wrong(absl::StrCat("only ", response.body.size(), " of ", length, " bytes came"));
  }
  return {};
}

}  // namespace hetero::storage
