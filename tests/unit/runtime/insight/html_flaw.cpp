#include "tests/unit/runtime/insight/html_flaw.h"

#include <cctype>
#include <vector>

namespace hetero::insight {
namespace {

// The tag that starts at `*at`, which moves behind it: "/p", "p", or "p/" for an empty element.
// Empty when it is not a well-formed tag: a name, then attributes name="value" without < inside.
std::string ReadTag(const std::string& html, size_t* at) {
  size_t i = *at + 1;
  const bool closing = i < html.size() && html[i] == '/';
  if (closing) ++i;
  const size_t name_begin = i;
  while (i < html.size() && std::isalnum(static_cast<unsigned char>(html[i]))) ++i;
  const std::string name = html.substr(name_begin, i - name_begin);
  if (name.empty()) return "";
  while (i < html.size() && html[i] == ' ') {
    ++i;
    while (i < html.size() && (std::isalpha(static_cast<unsigned char>(html[i])) || html[i] == '-'))
      ++i;
    if (html.compare(i, 2, "=\"") != 0) return "";
    const size_t end = html.find_first_of("\"<", i + 2);
    if (end == std::string::npos || html[end] != '"') return "";
    i = end + 1;
  }
  const bool empty = html.compare(i, 2, "/>") == 0;
  if (empty) ++i;
  if (i >= html.size() || html[i] != '>') return "";
  *at = i + 1;
  return (closing ? "/" : "") + name + (empty ? "/" : "");
}

}  // namespace

std::string FirstFlaw(const std::string& html) {
  const std::string doctype = "<!DOCTYPE html>";
  if (html.rfind(doctype, 0) != 0) return "no doctype";
  for (size_t i = html.find('&'); i != std::string::npos; i = html.find('&', i + 1)) {
    const std::string entity = html.substr(i, html.find(';', i) - i);
    if (entity != "&amp" && entity != "&lt" && entity != "&gt" && entity != "&quot" &&
        entity != "&#39") {
      return "stray & in: " + html.substr(i, 40);
    }
  }
  std::vector<std::string> open;
  for (size_t at = html.find('<', doctype.size()); at != std::string::npos;
       at = html.find('<', at)) {
    const size_t begin = at;
    const std::string tag = ReadTag(html, &at);
    if (tag.empty()) return "not a tag: " + html.substr(begin, 60);
    if (tag.front() == '/') {
      if (open.empty() || "/" + open.back() != tag) return "out of turn: " + tag;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag);
    }
  }
  return open.empty() ? "" : "never closed: " + open.back();
}

}  // namespace hetero::insight
