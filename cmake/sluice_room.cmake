# sluice_room(NAME [TORCH|SOME_TORCH] [OPTIMIZED_TESTS] SOURCES … [DEPENDS room …] [LIBRARIES target …] [TESTS file …]
#   [TEST_LIBRARIES target …])
#
# One room of the house: the static library sluice_NAME and, with tests on, one test binary sluice_NAME_test
# (OPTIMIZED_TESTS: as OPTIMIZED of sluice_test). A room with TORCH sees LibTorch's headers and is built in unity files
# even with CMAKE_UNITY_BUILD=OFF. One with SOME_TORCH uses a piece of it that needs no sanitizer of its own: it is built
# wherever LibTorch is found, so also for the thread sanitizer.
function(sluice_room name)
  cmake_parse_arguments(room "TORCH;SOME_TORCH;OPTIMIZED_TESTS" "" "SOURCES;DEPENDS;LIBRARIES;TESTS;TEST_LIBRARIES" ${ARGN})
  if((room_TORCH AND NOT SLUICE_TORCH) OR (room_SOME_TORCH AND NOT TARGET sluice::torch))
    return()
  endif()
  add_library(sluice_${name} STATIC ${room_SOURCES})
  sluice_compile_options(sluice_${name})
  target_include_directories(sluice_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  foreach(other ${room_DEPENDS})
    target_link_libraries(sluice_${name} PUBLIC sluice_${other})
  endforeach()
  target_link_libraries(sluice_${name} PUBLIC Threads::Threads PRIVATE ${room_LIBRARIES})
  if(room_TORCH OR room_SOME_TORCH)
    sluice_use_torch(sluice_${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY SLUICE_ROOMS ${name})
  sluice_linker_names(libraries ${room_LIBRARIES})
  set_property(GLOBAL PROPERTY SLUICE_ROOM_LIBRARIES_${name} ${libraries})
  set_property(GLOBAL PROPERTY SLUICE_ROOM_DEPENDS_${name} ${room_DEPENDS})
  if(SLUICE_TESTS AND room_TESTS)
    set(optimized)
    if(room_OPTIMIZED_TESTS)
      set(optimized OPTIMIZED)
    endif()
    sluice_test(sluice_${name}_test ${optimized} SOURCES ${room_TESTS} LIBRARIES sluice_${name} ${room_TEST_LIBRARIES})
    if(room_TORCH)
      set_target_properties(sluice_${name}_test PROPERTIES UNITY_BUILD ON)
    endif()
  endif()
endfunction()

# Names for the linker (curl, spng) of targets and paths: an exported file then names no folder of this machine and
# no other CMake package. Header-only targets give nothing.
function(sluice_linker_names result)
  set(names)
  foreach(item ${ARGN})
    if(TARGET ${item})
      get_target_property(type ${item} TYPE)
      if(type STREQUAL INTERFACE_LIBRARY)
        get_target_property(inner ${item} INTERFACE_LINK_LIBRARIES)
      else()
        get_target_property(inner ${item} LOCATION)
      endif()
      if(inner)
        sluice_linker_names(inner ${inner})
        list(APPEND names ${inner})
      endif()
    elseif(IS_ABSOLUTE "${item}")
      get_filename_component(name "${item}" NAME)
      string(REGEX REPLACE "^lib(.*)\\.(so|a)[.0-9]*$" "\\1" name "${name}")
      list(APPEND names ${name})
    elseif(item MATCHES "^-l")
      string(SUBSTRING "${item}" 2 -1 name)
      list(APPEND names ${name})
    elseif(NOT item MATCHES "^\\$|^-" AND NOT item STREQUAL Threads::Threads)
      list(APPEND names ${item})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES names)
  set(${result} ${names} PARENT_SCOPE)
endfunction()

# A GoogleTest binary. LABELS: fast (the default), slow or perf. A test's own code is compiled without an optimiser, in
# half the time; with OPTIMIZED as the rest is, for tests that compute much themselves.
function(sluice_test name)
  cmake_parse_arguments(test "OPTIMIZED" "LABELS" "SOURCES;LIBRARIES" ${ARGN})
  find_package(GTest REQUIRED)
  if(NOT test_LABELS)
    set(test_LABELS fast)
  endif()
  add_executable(${name} ${test_SOURCES})
  sluice_compile_options(${name})
  if(NOT test_OPTIMIZED)
    target_compile_options(${name} PRIVATE -O0 -U_FORTIFY_SOURCE)
  endif()
  target_link_libraries(${name} PRIVATE ${test_LIBRARIES} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${test_LABELS}
    ENVIRONMENT "${SLUICE_TEST_ENVIRONMENT}")
endfunction()

# A Python with the packages of scripts/python-test.txt; tests that need it are skipped where the file is missing.
set(SLUICE_TEST_PYTHON ${PROJECT_SOURCE_DIR}/.deps/python/bin/python3)

# LibTorch and the plugins are not instrumented and keep memory until the process ends. XLA's compiler allocates so much
# that remembering who did costs a fifth of the tests' time: for a report's whole stacks, set malloc_context_size=30.
# Pages that go back to the system and come again cost most on a virtual machine: freed memory is kept, and little of it:
# with 1 MB that waits before it is used again, and without filling new memory, a test of compiling takes 4.7 s for 7.3.
set(SLUICE_ASAN_OPTIONS "detect_leaks=0:malloc_context_size=1:quarantine_size_mb=1:thread_local_quarantine_size_kb=128")
string(APPEND SLUICE_ASAN_OPTIONS ":max_malloc_fill_size=0:allocator_release_to_os_interval_ms=-1")
# The tests' machine has no accelerator: they run on the CPU wherever SLUICE_PLUGIN does not say otherwise.
set(SLUICE_NO_ACCELERATORS ${PROJECT_BINARY_DIR}/no_accelerators)
file(MAKE_DIRECTORY ${SLUICE_NO_ACCELERATORS})
set(SLUICE_TEST_ENVIRONMENT
  "SLUICE_MACHINE_ROOT=${SLUICE_NO_ACCELERATORS}"
  "ASAN_OPTIONS=${SLUICE_ASAN_OPTIONS}:detect_stack_use_after_return=1"
  "SLUICE_TEST_PYTHON=${SLUICE_TEST_PYTHON}"
  "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1"
  "TSAN_OPTIONS=halt_on_error=1:ignore_noninstrumented_modules=1")

# For tests of what Sluice does, not of XLA's compiler, which most of their time would go into: a sanitizer makes each of its
# many allocations slow. Without its optimiser, its newer emitters and its threads a program compiles in a fifth of the time.
# Without a sanitizer, tests see what users have.
set(SLUICE_QUICK_XLA "XLA_FLAGS=")
if(SLUICE_SANITIZE)
  string(APPEND SLUICE_QUICK_XLA "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
    " --xla_cpu_parallel_codegen_split_count=1")
endif()

function(sluice_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra $<$<BOOL:${SLUICE_WERROR}>:-Werror>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # With -O2 it sees overlapping copies where a string is assigned (GCC's bug 105651).
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()
  if(SLUICE_SANITIZE)
    # With a sanitizer g++ 12 sees uninitialised members inside std::regex and LibTorch's optionals.
    target_compile_options(${target} PRIVATE -fsanitize=${SLUICE_SANITIZE} -Wno-maybe-uninitialized)
    target_link_options(${target} PRIVATE -fsanitize=${SLUICE_SANITIZE})
  endif()
endfunction()

# LibTorch as system headers: its own warnings are not ours.
function(sluice_use_torch target)
  target_link_libraries(${target} PUBLIC sluice::torch)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON)
endfunction()
