#include "tests/unit/runtime/source/tar_files.h"

#include <cstdio>

namespace hetero::source {

std::string TarMemberOf(std::string_view name, std::string_view content, char type) {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(100, 7, "0000644");
  char size[12];
  std::snprintf(size, sizeof size, "%011zo", content.size());
  header.replace(124, 11, size);
  header.replace(148, 8, "        ");
  header[156] = type;
  header.replace(257, 8, std::string("ustar\00000", 8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  char checksum[8];
  std::snprintf(checksum, sizeof checksum, "%06o", sum);
  header.replace(148, 7, std::string(checksum, 7));
  std::string member = header + std::string(content);
  member.resize((member.size() + 511) / 512 * 512, '\0');
  return member;
}

std::string TarOf(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string archive;
  for (const auto& [name, content] : files) archive += TarMemberOf(name, content);
  return archive + std::string(1024, '\0');
}

}  // namespace hetero::source
