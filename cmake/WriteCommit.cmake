# Writes a C++ file that holds the commit of a source tree, and touches it only when the commit has changed:
#   cmake -DSOURCE=folder -DOUTPUT=file.cpp [-DCOMMIT=name] -P WriteCommit.cmake
# COMMIT names it where git cannot, as in a container; of a full hash the first seven digits are kept, as git abbreviates.
set(commit "${COMMIT}")
if(commit MATCHES "^[0-9a-f]+$")
  string(SUBSTRING "${commit}" 0 7 commit)
endif()
if(commit STREQUAL "" AND EXISTS "${SOURCE}/.git")  # a folder, or the file of a worktree
  find_program(GIT_PROGRAM git)
  if(GIT_PROGRAM)
    execute_process(COMMAND "${GIT_PROGRAM}" -C "${SOURCE}" describe --always --abbrev=7 --exclude=* --dirty
                    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
if(NOT commit MATCHES "^[0-9A-Za-z.-]+$")
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [[
// Written by cmake/WriteCommit.cmake.
namespace hetero::base {
extern const char kCommit[];
const char kCommit[] = "@commit@";
}  // namespace hetero::base
]])
