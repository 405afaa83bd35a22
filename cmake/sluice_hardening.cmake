# What keeps an error in memory from becoming a way in: a program that was built for use ends instead of going on with a
# stack, a string or a container that was written or read beyond its end, and nobody writes its tables of functions.
# docs/install.md says what each option costs, tests/structure/check_hardening.py reads the programs.
#
# Not among them: -fcf-protection, which the loader turns off unless the C library's own start files and all libraries
# have it, and those of Debian 12 and LibTorch do not.
option(SLUICE_HARDEN "Compile releases so; OFF to measure what it costs" ON)
set(SLUICE_HARDENING -fstack-protector-strong -fstack-clash-protection -D_GLIBCXX_ASSERTIONS -D_FORTIFY_SOURCE=2)
set(SLUICE_LINK_HARDENING -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)

# A project that includes this one chooses for itself, and a sanitizer sees more. _FORTIFY_SOURCE needs an optimiser.
if(PROJECT_IS_TOP_LEVEL)
  add_link_options(${SLUICE_LINK_HARDENING})
  if(SLUICE_HARDEN AND CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$" AND NOT SLUICE_SANITIZE)
    add_compile_options(${SLUICE_HARDENING})
  endif()
endif()

# For a room of inner loops that sees no stranger's bytes, only arrays whose shapes were checked: without the options that
# cost time in loops.
function(sluice_inner_loops target)
  target_compile_options(${target} PRIVATE -U_GLIBCXX_ASSERTIONS -fno-stack-protector)
endfunction()
