# Finds what the rooms are built on: Debian's libraries, and LibTorch in the place that scripts/setup found.
find_package(Threads REQUIRED)

# The allocator of our own programs. A sanitizer brings its own.
set(SLUICE_ALLOCATOR)
if(SLUICE_JEMALLOC AND NOT SLUICE_SANITIZE)
  find_library(SLUICE_JEMALLOC_LIBRARY jemalloc)
  if(NOT SLUICE_JEMALLOC_LIBRARY)
    message(FATAL_ERROR "jemalloc was not found: run scripts/setup, or choose the C library's allocator with "
                        "-DSLUICE_JEMALLOC=OFF (docs/install.md says what that costs on a CPU)")
  endif()
  set(SLUICE_ALLOCATOR jemalloc)
endif()

# Has a program of ours allocate with jemalloc. What links the library keeps its own allocator.
function(sluice_program_allocator program)
  if(SLUICE_ALLOCATOR)
    target_sources(${program} PRIVATE ${PROJECT_SOURCE_DIR}/apps/allocator.cc)
    target_link_libraries(${program} PRIVATE ${SLUICE_ALLOCATOR})
  endif()
endfunction()

include(sluice_torch)
if(SLUICE_TORCH OR SLUICE_TESTS)
  sluice_find_torch(${PROJECT_SOURCE_DIR}/.deps)
endif()
if(SLUICE_TORCH)
  if(NOT SLUICE_TORCH_ROOT)
    message(FATAL_ERROR "${SLUICE_TORCH_MISSING}")
  elseif(SLUICE_TORCH_VERSION VERSION_LESS 2.11)
    message(FATAL_ERROR "LibTorch ${SLUICE_TORCH_VERSION} in ${SLUICE_TORCH_ROOT}: 2.11 or newer is needed. Set TORCH_DIR.")
  elseif(SLUICE_TORCH_VERSION VERSION_GREATER_EQUAL 2.15)
    message(WARNING "LibTorch ${SLUICE_TORCH_VERSION} in ${SLUICE_TORCH_ROOT} was not tried: 2.11 to 2.14 were (docs/versions.md)")
  endif()
  sluice_check_machine(SLUICE_TORCH_WRONG "${SLUICE_TORCH_ROOT}/lib/libc10.so")
  if(SLUICE_TORCH_WRONG)
    message(FATAL_ERROR "${SLUICE_TORCH_WRONG}")
  endif()
  message(STATUS "LibTorch ${SLUICE_TORCH_VERSION}: ${SLUICE_TORCH_ROOT}")
  if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
    message(STATUS "${CMAKE_SYSTEM_PROCESSOR}: everything is built, with plain loops where x86 has its own "
                   "instructions; it has not run there (docs/install.md)")
  endif()
  if(SLUICE_SANITIZE MATCHES undefined)
    # Of a file that includes LibTorch these checks are a quarter of the time to compile, nearly all for the inlined
    # functions of its headers. (Null pointers are found by the address sanitizer too.)
    target_compile_options(sluice::torch INTERFACE -fno-sanitize=alignment,null,vptr)
  endif()
endif()

# What is packed names no folder of the machine that built it, not even in the texts of LibTorch's checks. Every release is
# compiled so: the compiler's cache then serves both `make build` and what is packed.
if(SLUICE_BUNDLE OR CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
  if(SLUICE_TORCH_ROOT)
    add_compile_options(-ffile-prefix-map=${SLUICE_TORCH_ROOT}/=torch/)
  endif()
endif()

# The compiler cache and the quicker linker are the top-level project's choice.
if(PROJECT_IS_TOP_LEVEL)
  find_program(SLUICE_CCACHE ccache)
  if(SLUICE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # What one clone has compiled, another finds: nothing that is cached names the clone's folder. The cache gives the
    # compiler names from the build folder; __FILE__ of a room's file begins at the project's root.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${SLUICE_CCACHE})
    file(RELATIVE_PATH root ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
    add_compile_options(-fmacro-prefix-map=${root}sluice/=sluice/)
  endif()
  find_program(SLUICE_LLD ld.lld)
  if(SLUICE_LLD)
    add_link_options(-fuse-ld=lld)
  endif()
  if(SLUICE_SANITIZE MATCHES address)
    # The sanitizer's tables are full of addresses. In a program that is loaded at a fixed address the linker resolves
    # them, which spares a third of the file and of its start; with the debug sections compressed, 86 programs take 10 GB
    # instead of 18.
    set(SLUICE_FIXED_ADDRESSES ON)
    add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie> -Wl,--gc-sections
                     -Wl,--compress-debug-sections=zlib)
  endif()
endif()
