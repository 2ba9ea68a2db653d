#pragma once

#include <array>
#include <string>
#include <string_view>

#include "operator/page/job_row.h"

namespace hetero::jobs_page {

// A row as JSON in parts, so that a step more does not bring the finding again; jobs.js says which
// place means what.
inline constexpr std::array<const char*, 4> kParts = {"facts", "figures", "note", "finding"};
using RowParts = std::array<std::string, kParts.size()>;  // by kParts; empty: there is none

// Texts are at most kMostOfText bytes of UTF-8 without control characters; figures are rounded to
// what a person can see.
inline constexpr size_t kMostOfText = 400;
RowParts PartsOf(const JobRow& row);

// `text` in quotes; bytes that are not UTF-8 become U+FFFD.
std::string Quoted(std::string_view text);

}  // namespace hetero::jobs_page
