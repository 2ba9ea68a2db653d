#include "base/log.h"

#include <errno.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "base/recent_lines.h"

namespace hetero::log {
namespace {

// The level in five columns, so that what follows lines up.
class LevelColumn : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const std::string_view text = Text(message.level);
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<LevelColumn>();
  }

 private:
  static std::string_view Text(spdlog::level::level_enum level) {
    switch (level) {
      case spdlog::level::debug:
        return "debug";
      case spdlog::level::warn:
        return "warn ";
      case spdlog::level::err:
        return "error";
      default:
        return "info ";
    }
  }
};

std::unique_ptr<spdlog::formatter> MakeFormatter(std::string_view component) {
  std::string pattern = "%H:%M:%S.%e %^%*%$ ";
  for (char c : component) pattern.append(c == '%' ? "%%" : std::string(1, c));
  pattern += "  %v";
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<LevelColumn>('*').set_pattern(pattern);
  return formatter;
}

// Never destroyed: threads may log while the process ends.
spdlog::logger& Logger() {
  static spdlog::logger* const logger = [] {
    const char* no_color = std::getenv("NO_COLOR");
    const bool plain = no_color != nullptr && no_color[0] != '\0';
    auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(
        plain ? spdlog::color_mode::never : spdlog::color_mode::automatic);
    sink->set_formatter(MakeFormatter(program_invocation_short_name));
    return new spdlog::logger("hetero", std::move(sink));
  }();
  return *logger;
}

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
    case Level::kOff:
      return spdlog::level::off;
  }
  __builtin_unreachable();
}

std::optional<Level> ParseLevel(std::string_view text) {
  if (text == "debug") return Level::kDebug;
  if (text == "info") return Level::kInfo;
  if (text == "warning") return Level::kWarning;
  if (text == "error") return Level::kError;
  if (text == "off") return Level::kOff;
  return std::nullopt;
}

bool NeedsQuotes(std::string_view value) {
  if (value.empty()) return true;
  for (const unsigned char c : value) {
    if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c == 0x7F) return true;
  }
  return false;
}

void AppendEscaped(std::string_view text, std::string* line) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      line->push_back('\\');
      line->push_back(c);
    } else if (c == '\n') {
      line->append("\\n");
    } else if (c == '\t') {
      line->append("\\t");
    } else if (byte < ' ' || byte == 0x7F) {
      char code[8];
      std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned>(byte));
      line->append(code);
    } else {
      line->push_back(c);
    }
  }
}

void AppendField(const Field& field, std::string* line) {
  line->push_back(' ');
  line->append(field.key);
  line->push_back('=');
  if (!NeedsQuotes(field.value)) {
    line->append(field.value);
    return;
  }
  line->push_back('"');
  AppendEscaped(field.value, line);
  line->push_back('"');
}

void Write(spdlog::level::level_enum level, std::string_view message, Fields fields) {
  spdlog::logger& logger = Logger();
  if (!logger.should_log(level)) return;
  std::string line(message);
  for (const Field& field : fields) AppendField(field, &line);
  LinesOfThisProcess().Add(std::string(spdlog::level::to_string_view(level).data()) + "  " + line);
  logger.log(level, spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace

Field::Field(std::string_view k, double v) : key(k) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", v);
  value = text;
}

void Init(std::string_view component, Level level) {
  const char* wanted = std::getenv("HETERO_LOG_LEVEL");
  const std::optional<Level> parsed = wanted != nullptr ? ParseLevel(wanted) : std::nullopt;
  Logger().sinks().front()->set_formatter(MakeFormatter(component));
  Logger().set_level(ToSpdlog(parsed.value_or(level)));
  if (wanted != nullptr && wanted[0] != '\0' && !parsed) {
    Warning("HETERO_LOG_LEVEL is ignored; use debug, info, warning, error or off",
            {{"value", wanted}});
  }
}

void Debug(std::string_view message, Fields fields) {
  Write(spdlog::level::debug, message, fields);
}
void Info(std::string_view message, Fields fields) { Write(spdlog::level::info, message, fields); }
void Warning(std::string_view message, Fields fields) {
  Write(spdlog::level::warn, message, fields);
}
void Error(std::string_view message, Fields fields) { Write(spdlog::level::err, message, fields); }

}  // namespace hetero::log
