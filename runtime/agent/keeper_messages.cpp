#include "runtime/agent/keeper_messages.h"

#include <errno.h>
#include <sys/socket.h>

#include <cstring>
#include <string_view>

namespace hetero::agent {
namespace {

bool SendAll(int socket, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t sent = send(socket, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    data += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

bool ReceiveAll(int socket, char* data, size_t size) {
  while (size > 0) {
    const ssize_t received = recv(socket, data, size, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    data += received;
    size -= static_cast<size_t>(received);
  }
  return true;
}

// No variable, argument or path holds a zero byte.
void Append(const std::string& text, std::string* bytes) {
  bytes->append(text);
  bytes->push_back('\0');
}

std::string Take(std::string_view* bytes) {
  const size_t end = bytes->find('\0');
  std::string text(bytes->substr(0, end));
  bytes->remove_prefix(end == std::string_view::npos ? bytes->size() : end + 1);
  return text;
}

}  // namespace

std::string Encode(const ScriptCommand& command) {
  std::string bytes;
  Append(command.working_directory, &bytes);
  Append(std::to_string(command.arguments.size()), &bytes);
  for (const std::string& argument : command.arguments) Append(argument, &bytes);
  for (const std::string& variable : command.environment) Append(variable, &bytes);
  return bytes;
}

ScriptCommand DecodeCommand(const std::string& bytes) {
  std::string_view rest = bytes;
  ScriptCommand command{.working_directory = Take(&rest)};
  const int arguments = std::stoi(Take(&rest));
  for (int i = 0; i < arguments; ++i) command.arguments.push_back(Take(&rest));
  while (!rest.empty()) command.environment.push_back(Take(&rest));
  return command;
}

bool SendMessage(int socket, KeeperHeader::Kind kind, int64_t value, const std::string& bytes) {
  const KeeperHeader header{
      .kind = kind, .size = static_cast<uint32_t>(bytes.size()), .value = value};
  return SendAll(socket, reinterpret_cast<const char*>(&header), sizeof header) &&
         SendAll(socket, bytes.data(), bytes.size());
}

std::optional<KeeperMessage> ReceiveMessage(int socket) {
  KeeperMessage message;
  if (!ReceiveAll(socket, reinterpret_cast<char*>(&message.header), sizeof message.header)) {
    return std::nullopt;
  }
  message.bytes.resize(message.header.size);
  if (!ReceiveAll(socket, message.bytes.data(), message.bytes.size())) return std::nullopt;
  return message;
}

}  // namespace hetero::agent
