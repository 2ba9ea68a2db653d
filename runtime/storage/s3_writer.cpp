#include "runtime/storage/s3_writer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "runtime/storage/aws/xml.h"

namespace hetero::storage {
namespace {

using Verdict = Judgement::Verdict;

// S3's own limits.
constexpr int64_t kLeastPartBytes = 5 << 20;
constexpr int kMostParts = 10'000;

std::string Writing(const S3Connection& connection, std::string_view name) {
  return absl::StrCat("cannot write ", connection.UriOf(name));
}

// Of the reply to a PUT.
Object Written(const std::string& name, int64_t size, const HttpResponse& response) {
  return {name, size, WithoutQuotes(response.Header("etag"))};
}

class Writer : public ObjectWriter {
 public:
  Writer(S3Connection& connection, std::string name, int64_t part_bytes)
      : connection_(connection),
        name_(std::move(name)),
        part_bytes_(std::max(part_bytes, kLeastPartBytes)) {}
  ~Writer() override { Abort(); }

  absl::Status Append(absl::Span<const uint8_t> bytes) override {
    while (status_.ok() && !bytes.empty()) {
      // One byte more tells that this part is not the last one.
      if (static_cast<int64_t>(part_.size()) == part_bytes_) {
        status_ = SendPart();
        if (!status_.ok()) break;
      }
      const auto room = static_cast<size_t>(part_bytes_) - part_.size();
      const absl::Span<const uint8_t> taken = bytes.subspan(0, room);
      part_.append(reinterpret_cast<const char*>(taken.data()), taken.size());
      size_ += static_cast<int64_t>(taken.size());
      bytes.remove_prefix(taken.size());
    }
    return status_;
  }

  absl::StatusOr<Object> Close() override {
    HETERO_RETURN_IF_ERROR(status_);
    if (!upload_.empty()) return Complete();
    HETERO_ASSIGN_OR_RETURN(const PersistentClient::Answer answer,
                            connection_.Send(Writing(connection_, name_),
                                             {.method = "PUT", .key = Key(), .body = part_}));
    return Written(name_, size_, answer.response);
  }

 private:
  std::string Key() const { return connection_.address().Key(name_); }

  absl::Status SendPart() {
    const std::string what = Writing(connection_, name_);
    if (upload_.empty()) {
      HETERO_ASSIGN_OR_RETURN(
          const PersistentClient::Answer answer,
          connection_.Send(what, {.method = "POST", .key = Key(), .query = {{"uploads", ""}}}));
      absl::StatusOr<std::string> upload = ReadUploadId(answer.response.body);
      if (!upload.ok()) {
        return absl::Status(upload.status().code(),
                            absl::StrCat(what, ": ", upload.status().message()));
      }
      upload_ = *std::move(upload);
    }
    if (parts_.size() == kMostParts) {
      return absl::OutOfRangeError(absl::StrCat(what, ": more than ", kMostParts, " parts of ",
                                                part_bytes_, " bytes; write larger parts"));
    }
    HETERO_ASSIGN_OR_RETURN(
        const PersistentClient::Answer answer,
        connection_.Send(
            absl::StrCat(what, ", part ", parts_.size() + 1),
            {.method = "PUT",
             .key = Key(),
             .query = {{"partNumber", absl::StrCat(parts_.size() + 1)}, {"uploadId", upload_}},
             .body = part_}));
    parts_.push_back(WithoutQuotes(answer.response.Header("etag")));
    if (parts_.back().empty() || parts_.back().find_first_of("<&\"") != std::string::npos) {
      return absl::DataLossError(absl::StrCat(what, ": the reply to a part has no ETag"));
    }
    part_.clear();
    return absl::OkStatus();
  }

  absl::StatusOr<Object> Complete() {
    status_ = SendPart();
    HETERO_RETURN_IF_ERROR(status_);
    const std::string what = Writing(connection_, name_);
    std::string list = "<CompleteMultipartUpload>";
    for (size_t i = 0; i < parts_.size(); ++i) {
      absl::StrAppend(&list, "<Part><PartNumber>", i + 1, "</PartNumber><ETag>&quot;", parts_[i],
                      "&quot;</ETag></Part>");
    }
    list += "</CompleteMultipartUpload>";
    bool lost = false;
    HETERO_ASSIGN_OR_RETURN(const PersistentClient::Answer answer,
                            connection_.Send(what,
                                             {.method = "POST",
                                              .key = Key(),
                                              .query = {{"uploadId", upload_}},
                                              .headers = {{"content-type", "application/xml"}},
                                              .body = list},
                                             [&](const HttpResponse& response) {
                                               lost = response.status == 404;
                                               return lost ? Judgement() : JudgeS3(response);
                                             }));
    if (lost) {
      // It was completed by an attempt whose reply got lost, or it was aborted by somebody else.
      absl::StatusOr<Object> there = HeadS3(connection_, name_);
      if (answer.attempts == 1 || !there.ok() || there->size != size_) {
        return absl::AbortedError(absl::StrCat(what, ": its upload is gone: somebody aborted it"));
      }
      upload_.clear();
      return there;
    }
    upload_.clear();
    const absl::StatusOr<XmlElement> reply = ParseXml(answer.response.body);
    return Object{name_, size_, reply.ok() ? WithoutQuotes(reply->TextOf("ETag")) : ""};
  }

  void Abort() {
    if (upload_.empty()) return;
    const absl::Status status =
        connection_
            .Send(absl::StrCat("cannot abort the upload of ", connection_.UriOf(name_)),
                  {.method = "DELETE", .key = Key(), .query = {{"uploadId", upload_}}})
            .status();
    if (!status.ok() && !absl::IsNotFound(status)) {
      log::Warning("parts of an object are left in the bucket until a rule of it removes them",
                   {{"error", std::string(status.message())}});
    }
  }

  S3Connection& connection_;
  const std::string name_;
  const int64_t part_bytes_;
  std::string part_;
  std::string upload_;              // the upload's id; empty: there is none to be aborted
  std::vector<std::string> parts_;  // their ETags
  int64_t size_ = 0;
  absl::Status status_;
};

// Whether the object that is there now has these bytes: then an attempt whose reply got lost wrote
// it.
bool IsOurs(S3Connection& connection, const std::string& name, std::string_view bytes) {
  const absl::StatusOr<PersistentClient::Answer> answer =
      connection.Send(absl::StrCat("cannot read ", connection.UriOf(name)),
                      {.key = connection.address().Key(name),
                       .most_body_bytes = static_cast<int64_t>(bytes.size()) + 1});
  return answer.ok() && !answer->response.overflow && answer->response.body == bytes;
}

}  // namespace

absl::StatusOr<Object> HeadS3(S3Connection& connection, std::string_view name) {
  const std::string what = absl::StrCat("cannot find ", connection.UriOf(name));
  const std::string key = connection.address().Key(name);
  const S3Request head{.method = "HEAD", .key = key};
  absl::StatusOr<PersistentClient::Answer> answer = connection.Send(what, head);
  if (absl::IsPermissionDenied(answer.status()) || absl::IsInternal(answer.status())) {
    // Why is in the body of a reply, and a HEAD's has none.
    const absl::Status reason =
        connection.Send(what, {.key = key, .headers = {{"range", "bytes=0-0"}}}).status();
    // The first byte of an empty object is out of range.
    if (!reason.ok() && !absl::IsOutOfRange(reason)) return reason;
    answer = connection.Send(what, head);  // by other credentials, where those had ended
  }
  HETERO_RETURN_IF_ERROR(answer.status());
  const HttpResponse& response = answer->response;
  Object object{std::string(name), 0, WithoutQuotes(response.Header("etag"))};
  if (!absl::SimpleAtoi(response.Header("content-length"), &object.size) || object.size < 0) {
    return absl::DataLossError(absl::StrCat(what, ": the server does not say how large it is"));
  }
  return object;
}

std::unique_ptr<ObjectWriter> CreateS3Writer(S3Connection& connection, std::string name,
                                             int64_t part_bytes) {
  return std::make_unique<Writer>(connection, std::move(name), part_bytes);
}

absl::StatusOr<Object> PutS3If(S3Connection& connection, const std::string& name, const Object* old,
                               std::string_view bytes) {
  const std::string what = Writing(connection, name);
  if (bytes.size() > kMostConditionalBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": ", bytes.size(), " bytes at once, at most ", kMostConditionalBytes));
  }
  S3Request request{.method = "PUT", .key = connection.address().Key(name), .body = bytes};
  if (old == nullptr) {
    request.headers.emplace_back("if-none-match", "*");
  } else {
    request.headers.emplace_back("if-match", absl::StrCat("\"", old->version, "\""));
  }
  bool refused = false;
  HETERO_ASSIGN_OR_RETURN(const PersistentClient::Answer answer,
                          connection.Send(what, request, [&](const HttpResponse& response) {
                            // 404: there is none that could match.
                            refused = response.status == 412 ||
                                      (old != nullptr && response.status == 404 &&
                                       ReadS3Error(response.body).code != "NoSuchBucket");
                            return refused ? Judgement() : JudgeS3(response);
                          }));
  if (!refused) return Written(name, static_cast<int64_t>(bytes.size()), answer.response);
  if (answer.attempts > 1 && IsOurs(connection, name, bytes)) return HeadS3(connection, name);
  if (old == nullptr) return absl::AlreadyExistsError(absl::StrCat(what, ": it is there already"));
  return absl::FailedPreconditionError(
      absl::StrCat(what, " in the place of version ", old->version, ": another one is there now"));
}

absl::Status DeleteS3(S3Connection& connection, std::string_view name) {
  const absl::Status status = connection
                                  .Send(absl::StrCat("cannot delete ", connection.UriOf(name)),
                                        {.method = "DELETE", .key = connection.address().Key(name)})
                                  .status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

}  // namespace hetero::storage
