# Interface target and helper functions that every folder uses.
#   hetero_library(NAME  SOURCES ... [PUBLIC targets] [PRIVATE targets] [APART ...] [ALONE ...])   static library
#                                                        hetero_NAME, alias hetero::NAME; APART names sources that share
#                                                        private names with others, ALONE those of which each is compiled
#                                                        by itself in unity builds, too
#   hetero_program(NAME  SOURCES ... [LINK targets])                       executable in <build>/bin
#   hetero_test(NAME     SOURCES ... [LINK targets] [LABEL unit] [TIMEOUT 180] [ENV A=1] [LAUNCHER program...] [OPTIMIZED]
#                        [WAITS] [READS_LIBTORCH] [APART ...] [ALONE ...] [PLAIN ...] [FULL ...])   one GoogleTest
#                                                        program; a LAUNCHER gets it as its last argument and may leave with 77:
#                                                        skipped; OPTIMIZED: it computes much itself; WAITS: mostly for
#                                                        other processes; READS_LIBTORCH: compiled as that, or its
#                                                        precompiled header does not fit; PLAIN: files of it that the caller
#                                                        compiles; FULL names tests (Suite.Name) that only `ctest -C full`
#                                                        runs, as NAME_full
#   hetero_test_sources(NAME)                            compile a test program's own files quickly
# Every folder sees the whole tree; which headers it may include is in scripts/dependencies.txt, and checked.
add_library(hetero_options INTERFACE)
target_include_directories(hetero_options INTERFACE "${CMAKE_SOURCE_DIR}" "${CMAKE_SOURCE_DIR}/include")
# No contracted FMA and no errno from libm: the stream of samples is the same on every machine.
set(HETERO_CXX_OPTIONS -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -Werror=return-type
    -Werror=unused-result -ffp-contract=off)
target_compile_options(hetero_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${HETERO_CXX_OPTIONS}>")
# Where an assertion of a test is: relative to the tree, and the same in each clone, in which ccache finds it again.
target_compile_options(hetero_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=>")
# GCC 12 sees uninitialised, overlapping and endless text in std::string where there is none; a file of a unity build is
# included, so that its private types look like a header's.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(hetero_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized;-Wno-restrict>"
                         "$<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overread;-Wno-subobject-linkage>")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")  # which alone reads the locks' annotations
  target_compile_options(hetero_options INTERFACE -Wthread-safety -Werror=thread-safety)
endif()
if(HETERO_SANITIZE)
  target_compile_options(hetero_options INTERFACE -fsanitize=${HETERO_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(hetero_options INTERFACE -fsanitize=${HETERO_SANITIZE})
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # g++'s paths in the tree are told relative: another clone finds what this one has compiled. A precompiled header of clang
  # is refused there.
  set(ccache_basedir "")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(ccache_basedir "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}")
    if(HETERO_SANITIZE)  # with the path of the tree in their debug information
      add_compile_options("-fdebug-prefix-map=${CMAKE_SOURCE_DIR}=.")
    endif()
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env ${ccache_basedir}
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE_PROGRAM})
endif()
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  add_link_options(-fuse-ld=mold)
endif()

# Sets `names` to what a source file declares at the beginning of a line, most of it private, of the kinds given after it.
set(HETERO_FUNCTIONS "^[A-Za-z][^(]* [&*]?([A-Z][A-Za-z0-9]*)[(]")
set(HETERO_CONSTANTS_AND_TYPES "^[a-z][^=(]* (k[A-Z][A-Za-z0-9]*)" "^using ([A-Z][A-Za-z0-9]*) ="
    "^struct ([A-Z][A-Za-z0-9]*)" "^class ([A-Z][A-Za-z0-9]*)" "^enum [a-z ]*([A-Z][A-Za-z0-9]*)")
function(hetero_names_in source names)
  get_filename_component(path "${source}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  file(STRINGS "${path}" lines REGEX "^[A-Za-z]")
  set(found "")
  foreach(line IN LISTS lines)
    foreach(kind IN LISTS ARGN)
      if(line MATCHES "${kind}")
        list(APPEND found "${CMAKE_MATCH_1}")
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES found)
  set(${names} "${found}" PARENT_SCOPE)
endfunction()

# Which sources of a target are compiled together in unity builds: `batch` at a time of those in ORDINARY; of those in
# APART, which share private names with others, as many as have none in common; each of those in ALONE by itself.
function(hetero_compile_together target batch)
  cmake_parse_arguments(arg "" "" "ORDINARY;APART;ALONE" ${ARGN})
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  list(REMOVE_ITEM arg_ORDINARY ${arg_APART} ${arg_ALONE} "")
  set(count 0)
  foreach(source IN LISTS arg_ORDINARY)
    math(EXPR group "${count} / ${batch}")
    math(EXPR count "${count} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${target}_${group})
  endforeach()
  set(groups 0)
  foreach(source IN LISTS arg_APART)
    hetero_names_in("${source}" names ${HETERO_FUNCTIONS} ${HETERO_CONSTANTS_AND_TYPES})
    set(group 0)
    while(group LESS groups)
      set(common FALSE)
      foreach(name IN LISTS names)
        if(name IN_LIST taken_${group})
          set(common TRUE)
          break()
        endif()
      endforeach()
      if(NOT common)
        break()
      endif()
      math(EXPR group "${group} + 1")
    endwhile()
    if(group EQUAL groups)
      math(EXPR groups "${groups} + 1")
      set(taken_${group} "")
    endif()
    list(APPEND taken_${group} ${names})
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${target}_apart_${group})
  endforeach()
endfunction()

# Reads every library of the product; clang checks the annotations of its locks. Those that no fuzz target and no test
# under a sanitizer needs are not compiled for that: HETERO_ONLY_CHECKED names them.
add_custom_target(clang_check)
set(HETERO_ONLY_CHECKED cli fake_head install jobs_page local operator_options operator_program test_support)
# What computes little in the tests that are sanitized is not optimised under sanitizers: half the time of its compilation.
set(HETERO_QUICK_UNDER_SANITIZERS "")
if(HETERO_FUZZ)
  set(HETERO_QUICK_UNDER_SANITIZERS agent api certificates children compare controller head insight
      interpreter kube plan process reconcile)
elseif(HETERO_SANITIZE STREQUAL "thread")
  set(HETERO_QUICK_UNDER_SANITIZERS api proto)
endif()
# Release builds optimise by -O3 what the data plane runs for each sample. The rest computes little: by -O1 it compiles in
# a third less time than by -O2.
set(HETERO_DATA_PLANE base feed pipeline source storage storage_http tls train_gpu_kernels)
function(hetero_optimize target name)
  if(NOT name IN_LIST HETERO_DATA_PLANE)
    target_compile_options(${target} PRIVATE "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>")
  endif()
endfunction()

# The headers of other projects that most files read, precompiled for what is compiled by -O1: 4 of the 6 seconds that
# they take. g++ takes them for -O3, too, and then crashes in its optimiser. clang reads every library without them, and
# so finds what a file forgets to include.
set(HETERO_COMMON_HEADERS <algorithm> <atomic> <chrono> <cmath> <condition_variable> <deque> <filesystem> <fstream> <functional>
    <map> <memory> <mutex> <optional> <set> <span> <stop_token> <string> <string_view> <thread> <utility> <vector>
    <absl/container/flat_hash_map.h> <absl/status/status.h> <absl/status/statusor.h> <absl/strings/match.h>
    <absl/strings/numbers.h> <absl/strings/str_cat.h> <absl/strings/str_format.h> <absl/strings/str_join.h>
    <absl/strings/str_split.h> <nlohmann/json.hpp>)
set(HETERO_READS_OTHER_HEADERS ${HETERO_DATA_PLANE} interpreter train no_gpu train_gpu train_gpu_kernels golden_weights script_file)
function(hetero_precompile target name)
  if(NOT HETERO_PCH OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR name IN_LIST HETERO_READS_OTHER_HEADERS
     OR name IN_LIST HETERO_QUICK_UNDER_SANITIZERS OR CMAKE_CURRENT_SOURCE_DIR MATCHES "^${CMAKE_SOURCE_DIR}/tests/")
    return()
  endif()
  if(NOT TARGET hetero_headers)
    file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/headers.cpp" CONTENT "")
    add_library(hetero_headers OBJECT EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/headers.cpp")
    target_link_libraries(hetero_headers PRIVATE hetero_options nlohmann_json::nlohmann_json absl::statusor)
    target_compile_options(hetero_headers PRIVATE "$<$<CONFIG:Release>:-O1>" -pthread)
    target_precompile_headers(hetero_headers PRIVATE ${HETERO_COMMON_HEADERS})
  endif()
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-pthread>)
  target_precompile_headers(${target} REUSE_FROM hetero_headers)
endfunction()

function(hetero_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;PUBLIC;PRIVATE;APART;ALONE" ${ARGN})
  add_library(hetero_${name} STATIC ${arg_SOURCES})
  hetero_optimize(hetero_${name} ${name})
  add_library(hetero::${name} ALIAS hetero_${name})
  target_link_libraries(hetero_${name} PUBLIC hetero_options ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  hetero_compile_together(hetero_${name} 24 ORDINARY ${arg_SOURCES} APART ${arg_APART} ALONE ${arg_ALONE})
  hetero_precompile(hetero_${name} ${name})
  if(name IN_LIST HETERO_QUICK_UNDER_SANITIZERS)
    target_compile_options(hetero_${name} PRIVATE -O0)
  endif()
  if(HETERO_FUZZ AND name IN_LIST HETERO_ONLY_CHECKED)
    add_library(hetero_${name}_check OBJECT EXCLUDE_FROM_ALL ${arg_SOURCES})
    set_target_properties(hetero_${name}_check PROPERTIES UNITY_BUILD_MODE GROUP)  # in the library's groups
    target_link_libraries(hetero_${name}_check PRIVATE hetero_options ${arg_PUBLIC} ${arg_PRIVATE})
    target_compile_options(hetero_${name}_check PRIVATE -fsyntax-only)
    target_compile_definitions(hetero_${name}_check PRIVATE $<TARGET_PROPERTY:hetero_${name},COMPILE_DEFINITIONS>)
    add_dependencies(clang_check hetero_${name}_check)
  else()
    add_dependencies(clang_check hetero_${name})
  endif()
endfunction()

function(hetero_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE hetero_options ${arg_LINK})
  target_compile_options(${name} PRIVATE "$<$<CONFIG:Release>:-O1>")  # main(): options, and a call of the library
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)  # as the libraries, or their precompiled header does not fit
  hetero_precompile(${name} ${name})
endfunction()

# Test files are more than half of the build: they share one precompiled header and are not optimised.
# Compile options of tests' own files; all alike, or the precompiled header does not fit. Linked last, because the last
# option wins. UBSan watches what is tested, not the tests: its checks double the time of their compilation.
add_library(hetero_quick INTERFACE)
target_compile_options(hetero_quick INTERFACE -O0 -pthread)
if(HETERO_SANITIZE MATCHES "undefined")
  target_compile_options(hetero_quick INTERFACE -fno-sanitize=undefined)
endif()

function(hetero_test_sources name)
  target_link_libraries(${name} PRIVATE hetero_quick)
  get_target_property(type ${name} TYPE)
  if(NOT type STREQUAL "EXECUTABLE")  # as a program's own files, or the precompiled header does not fit
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIE)
    target_compile_definitions(${name} PRIVATE GTEST_HAS_PTHREAD=1)  # as GTest::gtest says
  endif()
  if(NOT HETERO_PCH)
    return()
  endif()
  if(NOT TARGET hetero_test_headers)
    file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/test_headers.cpp" CONTENT "int main() {}\n")
    add_executable(hetero_test_headers EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/test_headers.cpp")
    target_link_libraries(hetero_test_headers PRIVATE hetero_options nlohmann_json::nlohmann_json GTest::gmock
                          absl::statusor hetero_quick)
    target_precompile_headers(hetero_test_headers PRIVATE ${HETERO_COMMON_HEADERS} <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  target_precompile_headers(${name} REUSE_FROM hetero_test_headers)
endfunction()

# Fails where two files that are compiled together have private functions of one name: a call might take the other
# file's overload, and nothing would say so.
function(hetero_check_private_names program)
  set(all "")
  foreach(source ${ARGN})
    hetero_names_in("${source}" names ${HETERO_FUNCTIONS})
    foreach(name IN LISTS names)
      if(name IN_LIST all)
        message(SEND_ERROR "${program}: ${source} and another of its files have a private ${name}(): rename it, or name "
                           "the file after APART in the program's hetero_test()")
      endif()
    endforeach()
    list(APPEND all ${names})
  endforeach()
endfunction()

# A unit test that is about to be ended by its time limit tells where its threads are.
function(hetero_report_hangs name)
  if(NOT TARGET hetero_hang_report)
    add_library(hetero_hang_report OBJECT EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/tests/support/hang_report.cpp")
    target_link_libraries(hetero_hang_report PRIVATE hetero_options)
  endif()
  target_sources(${name} PRIVATE $<TARGET_OBJECTS:hetero_hang_report>)
endfunction()

# Minutes of a slow test that shows again what a quicker one shows are not the gate's. Sets `gate` and `full` to the
# filters of a program's tests in both, and fails where no source has a test of a name: a renamed one would run nowhere.
function(hetero_full_tests gate full names)
  set(text "")
  foreach(source ${ARGN})
    get_filename_component(path "${source}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    file(READ "${path}" one)
    string(APPEND text "${one}")
  endforeach()
  foreach(name IN LISTS names)
    string(REGEX REPLACE "^.*/([^/]+[.])" "\\1" plain "${name}")  # of a suite with parameters
    string(REGEX REPLACE "/.*$" "" plain "${plain}")
    string(REGEX MATCH "^(.*)[.](.*)$" parts "${plain}")
    string(REGEX MATCH "TEST(_[FP])?[(]${CMAKE_MATCH_1}, ${CMAKE_MATCH_2}[)]" found "${text}")
    if(NOT found)
      message(SEND_ERROR "FULL names ${name}, and no source has a test of this name")
    endif()
  endforeach()
  list(JOIN names ":" filter)
  set(${gate} "--gtest_filter=-${filter}" PARENT_SCOPE)
  set(${full} "--gtest_filter=${filter}" PARENT_SCOPE)
endfunction()

add_custom_target(unit_tests)
# What the gate runs under sanitizers, with the label `sanitized`: what reads bytes from outside, and what has threads,
# sockets and buffers of its own. `make test-full` runs every test that can be sanitized.
set(HETERO_SANITIZED_IN_GATE base_test base_tls_test api_test operator_kube_test kube_transport_test
    operator_controller_test runtime_storage_test runtime_source_test pipeline_test feed_test runtime_head_test agent_test)
if(HETERO_SANITIZE STREQUAL "thread")  # what shares data between threads of its own; the others are the full layer's
  set(HETERO_SANITIZED_IN_GATE base_test operator_controller_test feed_test)
endif()
# Of those, what the gate does not build and run a second time without sanitizers (HETERO_GATE): what computes pixels and
# streams is left in, because it is compiled otherwise for users.
set(HETERO_ONLY_SANITIZED_IN_GATE base_test base_tls_test api_test operator_kube_test kube_transport_test
    operator_controller_test runtime_storage_test runtime_source_test runtime_head_test agent_test)
add_custom_target(sanitized_tests)
function(hetero_test name)
  cmake_parse_arguments(arg "OPTIMIZED;READS_LIBTORCH;WAITS" "LABEL;TIMEOUT" "SOURCES;PLAIN;LINK;ENV;APART;ALONE;FULL;LAUNCHER" ${ARGN})
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 180)
  endif()
  if(HETERO_SANITIZE STREQUAL "thread")  # which takes many times as long
    math(EXPR arg_TIMEOUT "3 * ${arg_TIMEOUT}")
  endif()
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests"
                        UNITY_BUILD ${HETERO_UNITY_TESTS})
  hetero_compile_together(${name} 16 ORDINARY ${arg_SOURCES} APART ${arg_APART} ALONE ${arg_ALONE})
  set(together ${arg_SOURCES})
  list(REMOVE_ITEM together ${arg_APART} ${arg_ALONE} "")
  hetero_check_private_names(${name} ${together})
  target_link_libraries(${name} PRIVATE hetero_options ${arg_LINK} hetero_test_paths GTest::gmock GTest::gtest_main)
  if(arg_OPTIMIZED)  # half the time of -O3 to compile
    target_compile_options(${name} PRIVATE -O1)
    if(HETERO_SANITIZE MATCHES "undefined")
      target_compile_options(${name} PRIVATE -fno-sanitize=undefined)
    endif()
  elseif(NOT arg_READS_LIBTORCH)
    hetero_test_sources(${name})
  endif()
  if(HETERO_GATE AND name IN_LIST HETERO_ONLY_SANITIZED_IN_GATE)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  set(tests ${name})
  set(gate_filter "")
  if(arg_FULL)
    hetero_full_tests(gate_filter full_filter "${arg_FULL}" ${arg_SOURCES} ${arg_PLAIN})
    add_test(NAME ${name}_full CONFIGURATIONS full COMMAND ${arg_LAUNCHER} $<TARGET_FILE:${name}> ${full_filter})
    list(APPEND tests ${name}_full)
  endif()
  add_test(NAME ${name} COMMAND ${arg_LAUNCHER} $<TARGET_FILE:${name}> ${gate_filter})
  # scripts/test.sh runs ctest with seven slots: clang-tidy has one, the build of the clusters one, the end-to-end suite
  # two, a test with a control plane two. Of these, two computing at a time are enough for two cores, and three that wait
  # for processes most of the time. Sanitizers run them two at a time.
  set(slots 3)
  if(arg_WAITS OR (arg_LABEL STREQUAL "unit" AND NOT arg_READS_LIBTORCH))
    set(slots 2)
  endif()
  if(HETERO_SANITIZE)
    set(slots 1)
  endif()
  set_tests_properties(${tests} PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} PROCESSORS ${slots}
                       SKIP_RETURN_CODE 77)
  if(arg_LABEL STREQUAL "unit")
    add_dependencies(unit_tests ${name})
    if(NOT HETERO_SANITIZE)
      hetero_report_hangs(${name})
      list(APPEND arg_ENV HETERO_TEST_TIMEOUT=${arg_TIMEOUT})
    endif()
  endif()
  if(name IN_LIST HETERO_SANITIZED_IN_GATE)
    set_property(TEST ${name} APPEND PROPERTY LABELS sanitized)
    add_dependencies(sanitized_tests ${name})
  endif()
  if(arg_ENV)
    set_tests_properties(${tests} PROPERTIES ENVIRONMENT "${arg_ENV}")
  endif()
endfunction()
