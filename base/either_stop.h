#pragma once

#include <optional>
#include <stop_token>
#include <utility>

namespace hetero::base {

// A stop that comes as soon as one of two does. It ends with this object.
class EitherStop {
 public:
  EitherStop(const std::stop_token& one, const std::stop_token& other) {
    if (!one.stop_possible() || !other.stop_possible()) {
      token_ = one.stop_possible() ? one : other;
      return;
    }
    token_ = source_.get_token();
    on_one_.emplace(one, Request{source_});
    on_other_.emplace(other, Request{source_});
  }
  EitherStop(const EitherStop&) = delete;
  EitherStop& operator=(const EitherStop&) = delete;

  const std::stop_token& token() const { return token_; }

 private:
  struct Request {
    std::stop_source source;
    void operator()() { source.request_stop(); }
  };

  std::stop_source source_;
  std::stop_token token_;
  std::optional<std::stop_callback<Request>> on_one_, on_other_;
};

}  // namespace hetero::base
