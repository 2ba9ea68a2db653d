#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

// Structured logging to standard error: `12:00:01.234 info  head  member joined role=cpu index=0`.
// spdlog stays inside log.cpp (its fmt clashes with LibTorch's). Safe from any thread.
//   log::Info("member joined", {{"role", role}, {"index", index}});
namespace hetero::log {

enum class Level { kDebug, kInfo, kWarning, kError, kOff };

// One key=value pair. Values with spaces or quotes are quoted when printed.
struct Field {
  // std::string, std::string_view, absl::string_view.
  template <typename Text>
  requires requires(const Text& text) {
    { text.data() } -> std::convertible_to<const char*>;
    { text.size() } -> std::convertible_to<size_t>;
  }
  Field(std::string_view k, const Text& v) : key(k), value(v.data(), v.size()) {}
  Field(std::string_view k, const char* v) : key(k), value(v) {}
  Field(std::string_view k, bool v) : key(k), value(v ? "true" : "false") {}
  Field(std::string_view k, double v);
  template <typename T>
  requires std::is_integral_v<T> Field(std::string_view k, T v)
      : key(k), value(std::to_string(v)) {}

  std::string_view key;
  std::string value;
};
using Fields = std::initializer_list<Field>;

// `component` is in every line ("head", "cpu-0", "rank 1"). Call once, early in main.
// HETERO_LOG_LEVEL (debug, info, warning, error, off) overrides `level`.
void Init(std::string_view component, Level level = Level::kInfo);

void Debug(std::string_view message, Fields fields = {});
void Info(std::string_view message, Fields fields = {});
void Warning(std::string_view message, Fields fields = {});
void Error(std::string_view message, Fields fields = {});

}  // namespace hetero::log
