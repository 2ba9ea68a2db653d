#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hetero::source {

// One member of a tar archive, laid out by hand (POSIX ustar): header, bytes, padding.
std::string TarMemberOf(std::string_view name, std::string_view content, char type = '0');
// Members and the two blocks of zeros at the end.
std::string TarOf(const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace hetero::source
