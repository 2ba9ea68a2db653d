#include "runtime/source/tar.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/source/file.h"
#include "runtime/source/gzip.h"

namespace hetero::source {
namespace {

constexpr int64_t kBlock = 512;
// Of a long name or of a member's extended header.
constexpr int64_t kMaxExtended = 1 << 20;
constexpr int64_t kMaxSize = int64_t{1} << 56;

// Where a header's fields are.
constexpr size_t kName = 0, kNameSize = 100;
constexpr size_t kSize = 124, kSizeSize = 12;
constexpr size_t kChecksum = 148, kChecksumSize = 8;
constexpr size_t kType = 156;
constexpr size_t kMagic = 257;
constexpr size_t kPrefix = 345, kPrefixSize = 155;

using Header = std::span<const uint8_t>;

std::string TextAt(Header header, size_t begin, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(header.data()) + begin, size);
  return std::string(text.substr(0, text.find('\0')));
}

// Octal digits among spaces and NULs, or GNU's and star's big-endian binary. -1: no number.
int64_t NumberAt(Header header, size_t begin, size_t size) {
  const Header field = header.subspan(begin, size);
  int64_t number = 0;
  if ((field[0] & 0x80) != 0) {
    if (field[0] != 0x80) return -1;  // negative, or of more than 64 bits
    for (const uint8_t byte : field.subspan(1)) {
      if (number >= kMaxSize >> 8) return -1;
      number = number << 8 | byte;
    }
    return number;
  }
  size_t at = 0;
  while (at < size && field[at] == ' ') ++at;
  for (; at < size && field[at] >= '0' && field[at] <= '7'; ++at) {
    if (number >= kMaxSize >> 3) return -1;
    number = number << 3 | (field[at] - '0');
  }
  for (; at < size; ++at) {
    if (field[at] != ' ' && field[at] != 0) return -1;
  }
  return number;
}

bool HasItsChecksum(Header header) {
  int64_t sum = 0;
  int64_t signed_sum = 0;  // as old programs have it
  for (size_t i = 0; i < header.size(); ++i) {
    const bool own = i >= kChecksum && i < kChecksum + kChecksumSize;
    sum += own ? ' ' : header[i];
    signed_sum += own ? ' ' : static_cast<int8_t>(header[i]);
  }
  const int64_t said = NumberAt(header, kChecksum, kChecksumSize);
  return said == sum || said == signed_sum;
}

std::string NameOf(Header header) {
  std::string name = TextAt(header, kName, kNameSize);
  // GNU's own format, "ustar  ", keeps times there.
  if (TextAt(header, kMagic, 6) != "ustar") return name;
  const std::string prefix = TextAt(header, kPrefix, kPrefixSize);
  return prefix.empty() ? name : absl::StrCat(prefix, "/", name);
}

absl::Status NoHeader(const std::string& where, int64_t offset, Header header) {
  if (offset == 0 && IsGzip(header)) {
    return absl::InvalidArgumentError(
        absl::StrCat(where,
                     ": a compressed archive; samples inside cannot be read one by one, "
                     "unpack it to .tar (gunzip): pictures are compressed already"));
  }
  const std::string message = absl::StrCat(where, ": byte ", offset, ": ", FirstBytes(header),
                                           " begins no tar header (its checksum is wrong); ");
  if (offset == 0) return absl::InvalidArgumentError(message + "is this a tar archive?");
  return absl::DataLossError(message + "the archive is damaged, copy it again");
}

}  // namespace

int64_t PaddedInTar(int64_t size) { return (size + kBlock - 1) / kBlock * kBlock; }

absl::StatusOr<std::string> TarReader::ReadText(int64_t offset, int64_t size, const char* what) {
  if (size > kMaxExtended) {
    return absl::DataLossError(absl::StrCat(archive_.where(), ": byte ", offset, ": ", what, " of ",
                                            size, " bytes; ", kMaxExtended, " at most"));
  }
  HETERO_ASSIGN_OR_RETURN(const Header bytes, archive_.At(offset, static_cast<size_t>(size), what));
  return std::string(bytes.begin(), bytes.end());
}

// Records "LENGTH KEY=VALUE\n".
absl::Status TarReader::ReadPax(int64_t offset, int64_t size, Extended* extended) {
  HETERO_ASSIGN_OR_RETURN(const std::string text, ReadText(offset, size, "an extended header"));
  std::string_view left(text);
  while (!left.empty() && left.front() != '\0') {
    const size_t space = left.find(' ');
    uint32_t length = 0;
    if (space == std::string_view::npos ||
        !absl::SimpleAtoi(absl::string_view(left.data(), space), &length) || length <= space + 1 ||
        length > left.size() || left[length - 1] != '\n') {
      return absl::DataLossError(absl::StrCat(archive_.where(), ": byte ", offset,
                                              ": an extended header that is none; the archive is ",
                                              "damaged, copy it again"));
    }
    const std::string_view record = left.substr(space + 1, length - space - 2);
    left.remove_prefix(length);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(equals + 1);
    if (key == "path") extended->name = value;
    if (key == "size" &&
        (!absl::SimpleAtoi(absl::string_view(value.data(), value.size()), &extended->size) ||
         extended->size < 0 || extended->size > kMaxSize)) {
      return absl::DataLossError(absl::StrCat(archive_.where(), ": byte ", offset,
                                              ": an extended header with the size ",
                                              std::string(value)));
    }
    if (key.starts_with("GNU.sparse.")) {
      return absl::InvalidArgumentError(
          absl::StrCat(archive_.where(), ": byte ", offset,
                       ": a sparse file, which is not read; pack it without --sparse"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> TarReader::Next(TarMember* member) {
  Extended extended;
  member->header = next_;
  while (next_ < archive_.size()) {
    HETERO_ASSIGN_OR_RETURN(const Header header, archive_.At(next_, kBlock, "a tar header"));
    if (std::all_of(header.begin(), header.end(), [](uint8_t byte) { return byte == 0; })) {
      next_ = archive_.size();
      return false;
    }
    if (!HasItsChecksum(header)) return NoHeader(archive_.where(), next_, header);
    const char type = static_cast<char>(header[kType]);
    int64_t size = NumberAt(header, kSize, kSizeSize);
    const bool describes = type == 'x' || type == 'g' || type == 'L' || type == 'K';
    if (!describes && extended.size >= 0) size = extended.size;
    const int64_t offset = next_ + kBlock;
    // Links and folders may name a size, and have no bytes all the same.
    const bool has_bytes = type < '1' || type > '6';
    if (size < 0 || (has_bytes && PaddedInTar(size) > archive_.size() - offset)) {
      return absl::DataLossError(absl::StrCat(
          archive_.where(), ": byte ", next_, ": a member of ", size < 0 ? "no size" : "",
          size < 0 ? "" : absl::StrCat(size, " bytes"), ", but the file ends after ",
          archive_.size(), "; it is cut short or damaged, copy it again"));
    }
    member->name = extended.name.empty() ? NameOf(header) : extended.name;
    next_ = offset + (has_bytes ? PaddedInTar(size) : 0);
    switch (type) {
      case 'x': {
        HETERO_RETURN_IF_ERROR(ReadPax(offset, size, &extended));
        continue;
      }
      case 'L': {
        HETERO_ASSIGN_OR_RETURN(extended.name, ReadText(offset, size, "a long name"));
        extended.name.resize(std::min(extended.name.find('\0'), extended.name.size()));
        continue;
      }
      case 'S':
        return absl::InvalidArgumentError(
            absl::StrCat(archive_.where(), ": byte ", offset - kBlock,
                         ": a sparse file, which is not read; pack it without --sparse"));
      case 'g':
      case 'K':
        continue;
      case '0':
      case '\0':
      case '7':
        // Before POSIX a folder was a file whose name ends so.
        if (member->name.ends_with('/')) break;
        member->offset = offset;
        member->size = size;
        return true;
      default:
        break;
    }
    extended = {};
    member->header = next_;
  }
  return false;
}

}  // namespace hetero::source
