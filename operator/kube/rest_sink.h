#pragma once

#include <cpprest/astreambuf.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "operator/kube/exchange.h"

// For rest_transport.cpp only: nothing else includes cpprestsdk.
namespace hetero::kube {

// Hands the bytes of a reply to an Exchange as they arrive. Unlike cpprestsdk's own buffers it can
// pause the network and refuse what goes above a cap. Write-only.
class ExchangeSink : public concurrency::streams::details::streambuf_state_manager<uint8_t> {
 public:
  explicit ExchangeSink(std::shared_ptr<Exchange> exchange)
      : streambuf_state_manager<uint8_t>(std::ios_base::out), exchange_(std::move(exchange)) {}

  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  size_t buffer_size(std::ios_base::openmode) const override { return 0; }
  void set_buffer_size(size_t, std::ios_base::openmode) override {}
  size_t in_avail() const override { return 0; }
  pos_type getpos(std::ios_base::openmode) const override { return NoPosition(); }
  pos_type seekpos(pos_type, std::ios_base::openmode) override { return NoPosition(); }
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override {
    return NoPosition();
  }
  bool acquire(uint8_t*& data, size_t& count) override {
    data = nullptr;
    count = 0;
    return false;
  }
  void release(uint8_t*, size_t) override {}

  // cpprestsdk waits, on a thread of its own, until a sink that refuses bytes is closed, which its
  // own close() lets another one do: with every thread in there, all would wait for ever.
  using streambuf_state_manager::close;
  pplx::task<void> close(std::ios_base::openmode mode) override {
    if (mode & std::ios_base::in) m_stream_can_read = false;
    if (mode & std::ios_base::out) m_stream_can_write = false;
    return pplx::task_from_result();
  }

 protected:
  pplx::task<size_t> _putn(const uint8_t* data, size_t count) override {
    pplx::task_completion_event<size_t> resumed;
    switch (exchange_->OnBytes({reinterpret_cast<const char*>(data), count},
                               [resumed, count] { resumed.set(count); })) {
      case Exchange::Verdict::kGoOn:
        return pplx::task_from_result(count);
      case Exchange::Verdict::kPause:
        return pplx::create_task(resumed);
      case Exchange::Verdict::kRefuse:
        break;
    }
    return pplx::task_from_exception<size_t>(std::runtime_error("nobody wants this reply"));
  }
  pplx::task<int_type> _putc(uint8_t byte) override {
    return _putn(&byte, 1).then([byte](size_t) { return static_cast<int_type>(byte); });
  }
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }
  uint8_t* _alloc(size_t) override { return nullptr; }
  void _commit(size_t) override {}

  // Reading, which nobody does.
  pplx::task<int_type> _bumpc() override { return NothingLater(); }
  pplx::task<int_type> _getc() override { return NothingLater(); }
  pplx::task<int_type> _nextc() override { return NothingLater(); }
  pplx::task<int_type> _ungetc() override { return NothingLater(); }
  pplx::task<size_t> _getn(uint8_t*, size_t) override { return pplx::task_from_result<size_t>(0); }
  int_type _sbumpc() override { return traits::eof(); }
  int_type _sgetc() override { return traits::eof(); }
  size_t _sgetn(uint8_t*, size_t) { return 0; }
  size_t _scopy(uint8_t*, size_t) override { return 0; }

 private:
  static pos_type NoPosition() { return static_cast<pos_type>(traits::eof()); }
  static pplx::task<int_type> NothingLater() {
    return pplx::task_from_result<int_type>(traits::eof());
  }

  std::shared_ptr<Exchange> exchange_;
};

}  // namespace hetero::kube
