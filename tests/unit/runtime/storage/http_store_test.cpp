#include "runtime/storage/http_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/storage/open_store.h"
#include "tests/integration/kube/scripted_server.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/storage/jumping_clock.h"

namespace hetero::storage {
namespace {

using kube::ScriptedServer;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kBytes[] = "0123456789";

// A web server with one object of ten bytes, at "/data/a%20b".
void ServeObject(const ScriptedServer::Request& request, ScriptedServer::Connection& connection) {
  if (request.target != "/data/a%20b") return connection.Respond(404, "not here");
  const std::string etag = "ETag: \"v1\"\r\n";
  if (request.method == "HEAD") {
    return connection.Write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n" + etag + "\r\n");
  }
  if (const auto match = request.headers.find("if-match");
      match != request.headers.end() && match->second != "\"v1\"") {
    return connection.Respond(412, "");
  }
  int first = 0, last = 9;
  if (const auto range = request.headers.find("range"); range != request.headers.end()) {
    sscanf(range->second.c_str(), "bytes=%d-%d", &first, &last);
  }
  connection.Respond(206, std::string(kBytes).substr(first, last - first + 1),
                     etag + "Content-Range: bytes " + std::to_string(first) + "-" +
                         std::to_string(last) + "/10\r\n");
}

class HttpStoreTest : public ::testing::Test {
 protected:
  void Serve(ScriptedServer::Script script) {
    server_.emplace(std::move(script), ScriptedServer::Options{.tls = false});
    options_.clock = &clock_;
    store_ = *OpenStore(server_->url() + "/data/", options_);
  }
  absl::StatusOr<std::string> Read(const Object& object, int64_t offset, size_t length) {
    std::string text(length, '?');
    const absl::Status status =
        store_->Read(object, offset, {reinterpret_cast<uint8_t*>(text.data()), length});
    if (!status.ok()) return status;
    return text;
  }

  JumpingClock clock_;
  StoreOptions options_;
  std::optional<ScriptedServer> server_;
  std::unique_ptr<Store> store_;
};

TEST_F(HttpStoreTest, ReadsPartsOfTheVersionThatItFound) {
  Serve(ServeObject);
  const absl::StatusOr<Object> object = store_->Head("a b");
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ(*object, (Object{"a b", 10, "\"v1\""}));
  EXPECT_EQ(*Read(*object, 3, 4), "3456");
  EXPECT_EQ(*Read(*object, 0, 10), kBytes);
  EXPECT_TRUE(absl::IsOutOfRange(Read(*object, 5, 6).status()));
  const absl::Status changed = Read({"a b", 10, "\"v0\""}, 0, 1).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(changed));
  EXPECT_THAT(std::string(changed.message()),
              AllOf(HasSubstr(server_->url() + "/data/a%20b, bytes 0 to 0"), HasSubstr("changed"),
                    HasSubstr("tried 1 time")));
  const absl::Status missing = store_->Head("c").status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("/data/c: HTTP 404"));
}

TEST_F(HttpStoreTest, AllOfAnObjectIsOneRequestOfAnyServer) {
  Serve([](const auto& request, auto& connection) {
    if (request.target == "/data/none") return connection.Respond(404, "");
    connection.Respond(200, kBytes, "ETag: W/\"v1\"\r\n");
  });
  std::vector<uint8_t> bytes;
  const auto object = store_->ReadAll("a b", 10, &bytes);
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ(*object, (Object{"a b", 10, "W/\"v1\""}));
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), kBytes);
  EXPECT_EQ(server_->requests().size(), 1u);
  const absl::Status large = store_->ReadAll("a b", 9, &bytes).status();
  EXPECT_TRUE(absl::IsOutOfRange(large)) << large;
  EXPECT_THAT(std::string(large.message()), HasSubstr("/data/a%20b: it has more than 9 bytes"));
  EXPECT_TRUE(absl::IsNotFound(store_->ReadAll("none", 10, &bytes).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->ReadAll("../x", 10, &bytes).status()));
}

TEST_F(HttpStoreTest, ListingIsRefusedWithTheRemedy) {
  Serve(ServeObject);
  const absl::Status status = store_->List("").status();
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("/data"), HasSubstr("manifest")));
}

TEST_F(HttpStoreTest, AServerThatFailsForAMomentIsTriedAgain) {
  int request = 0;
  Serve([&](const auto& asked, auto& connection) {
    switch (request++) {
      case 0:
        return connection.Respond(503, "");
      case 1:
        connection.Write(
            "HTTP/1.1 206 P\r\nContent-Length: 4\r\nContent-Range: bytes 3-6/10\r\n"
            "\r\n34");
        return connection.Close();
      case 2:
        return connection.Respond(206, "345", "Content-Range: bytes 3-5/10\r\n");
      case 3:
        return connection.Respond(206, "0123", "Content-Range: bytes 0-3/10\r\n");
      default:
        return ServeObject(asked, connection);
    }
  });
  const absl::StatusOr<std::string> text = Read({"a b", 10, "\"v1\""}, 3, 4);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, "3456");
  EXPECT_EQ(clock_.sleeps.size(), 4);
}

TEST_F(HttpStoreTest, AServerWithoutRangesOrSizesIsNamed) {
  Serve([](const auto& request, auto& connection) {
    if (request.method == "HEAD") {
      return connection.Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    }
    connection.Respond(200, kBytes);
  });
  EXPECT_TRUE(absl::IsUnimplemented(store_->Head("a b").status()));
  EXPECT_EQ(*Read({"a b", 10, ""}, 0, 10), kBytes);
  const absl::Status status = Read({"a b", 10, ""}, 2, 3).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("serves ranges"));
}

}  // namespace
}  // namespace hetero::storage
