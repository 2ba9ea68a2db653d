# Interface target and helper functions that every folder uses.
#   hetero_library(NAME  SOURCES ... [PUBLIC targets] [PRIVATE targets] [APART ...])   static library hetero_NAME, alias
#                                                        hetero::NAME; APART names sources that share private names with
#                                                        others and are left out of unity builds
#   hetero_program(NAME  SOURCES ... [LINK targets])                       executable in <build>/bin
#   hetero_test(NAME     SOURCES ... [LINK targets] [LABEL unit] [TIMEOUT 180] [ENV A=1] [LAUNCHER program...] [OPTIMIZED]
#                        [APART ...] [PLAIN ...] [FULL ...])  one GoogleTest program; a LAUNCHER gets it as its last argument and
#                                                        may leave with 77: skipped; OPTIMIZED: it computes much itself;
#                                                        PLAIN: files of it that the caller compiles; FULL names tests (Suite.Name) that only `ctest -C full` runs,
#                                                        as NAME_full
#   hetero_test_sources(NAME)                            compile a test program's own files quickly
# Every folder sees the whole tree; which headers it may include is in scripts/dependencies.txt, and checked.
add_library(hetero_options INTERFACE)
target_include_directories(hetero_options INTERFACE "${CMAKE_SOURCE_DIR}" "${CMAKE_SOURCE_DIR}/include")
# No contracted FMA and no errno from libm: the stream of samples is the same on every machine.
set(HETERO_CXX_OPTIONS -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -Werror=return-type
    -Werror=unused-result -ffp-contract=off)
target_compile_options(hetero_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${HETERO_CXX_OPTIONS}>")
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
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE_PROGRAM})
endif()
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  add_link_options(-fuse-ld=mold)
endif()

# Reads every library of the product; clang checks the annotations of its locks. Those that no fuzz target and no test
# under a sanitizer needs are not compiled for that: HETERO_ONLY_CHECKED names them.
add_custom_target(clang_check)
set(HETERO_ONLY_CHECKED cli install local operator_options operator_program fake_head test_support)
# What computes little is not optimised under clang's sanitizers: half the time of its compilation.
set(HETERO_QUICK_UNDER_CLANG agent api children compare controller head insight kube plan reconcile)
function(hetero_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;PUBLIC;PRIVATE;APART" ${ARGN})
  add_library(hetero_${name} STATIC ${arg_SOURCES})
  add_library(hetero::${name} ALIAS hetero_${name})
  target_link_libraries(hetero_${name} PUBLIC hetero_options ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  if(arg_APART)
    set_source_files_properties(${arg_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  if(HETERO_FUZZ AND name IN_LIST HETERO_QUICK_UNDER_CLANG)
    target_compile_options(hetero_${name} PRIVATE -O0)
  endif()
  if(HETERO_FUZZ AND name IN_LIST HETERO_ONLY_CHECKED)
    add_library(hetero_${name}_check OBJECT EXCLUDE_FROM_ALL ${arg_SOURCES})
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
    target_link_libraries(hetero_test_headers PRIVATE hetero_options nlohmann_json::nlohmann_json GTest::gmock hetero_quick)
    target_precompile_headers(hetero_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp>)
  endif()
  target_precompile_headers(${name} REUSE_FROM hetero_test_headers)
endfunction()

# Fails where two files that are compiled together have private functions of one name: a call might take the other
# file's overload, and nothing would say so.
function(hetero_check_private_names program)
  set(all "")
  foreach(source ${ARGN})
    get_filename_component(path "${source}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    file(STRINGS "${path}" lines REGEX "^[A-Za-z][^(]* [&*]?[A-Z][A-Za-z0-9]*[(]")
    set(names "")
    foreach(line IN LISTS lines)
      if(line MATCHES "^[A-Za-z][^(]* [&*]?([A-Z][A-Za-z0-9]*)[(]")
        list(APPEND names "${CMAKE_MATCH_1}")
      endif()
    endforeach()
    list(REMOVE_DUPLICATES names)
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
  cmake_parse_arguments(arg "OPTIMIZED" "LABEL;TIMEOUT" "SOURCES;PLAIN;LINK;ENV;APART;FULL;LAUNCHER" ${ARGN})
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 180)
  endif()
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests"
                        UNITY_BUILD ${HETERO_UNITY_TESTS} UNITY_BUILD_BATCH_SIZE 16)
  if(arg_APART)
    set_source_files_properties(${arg_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  set(together ${arg_SOURCES})
  list(REMOVE_ITEM together ${arg_APART})
  hetero_check_private_names(${name} ${together})
  target_link_libraries(${name} PRIVATE hetero_options ${arg_LINK} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    HETERO_SOURCE_DIR="${CMAKE_SOURCE_DIR}" HETERO_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  if(NOT arg_OPTIMIZED)
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
  # three, a test with a control plane two, and each of these three: many wait for processes most of the time. Sanitizers
  # run them two at a time.
  set(slots 3)
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
